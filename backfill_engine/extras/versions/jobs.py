"""The jobs that promote a version, and retire one."""

from dagster import MetadataValue, OpExecutionContext

from backfill_engine.catalog import Catalog
from backfill_engine.extras.versions.promoting import Promoter, PromotionConfig
from backfill_engine.extras.versions.promotions import describe_promotion, describe_refusal
from backfill_engine.extras.versions.retiring import RetirementConfig, retire
from backfill_engine.jobs import Work
from backfill_engine.orchestration.records.failures import build_failure
from backfill_engine.resources import LakehouseResource, SparkResource


def promote_version(
    catalog: Catalog,
    context: OpExecutionContext,
    config: PromotionConfig,
    spark: SparkResource,
    lakehouse: LakehouseResource,
) -> str:
    """Serves another version of a table to its consumers, whole and in one commit.

    Only if nothing stands against it.
    """
    found = Promoter(context, config, catalog, spark, lakehouse).promote()
    context.add_output_metadata(
        {
            "promotion": MetadataValue.md(describe_promotion(found)),
            "drift": MetadataValue.path(found.page or "nothing was rehearsed"),
        }
    )
    if not found.is_served and found.published is None and not config.dry_run:
        raise build_failure(describe_refusal(found))
    return found.promotion_id


def retire_version(
    catalog: Catalog,
    context: OpExecutionContext,
    config: RetirementConfig,
    spark: SparkResource,
    lakehouse: LakehouseResource,
) -> str:
    """Retires a version of a table that is no longer served: its rows go, and it is protected."""
    return retire(context, config, catalog, spark, lakehouse)


JOBS: dict[str, Work] = {"promote": promote_version, "retire": retire_version}
"""By name."""
