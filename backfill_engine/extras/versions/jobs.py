"""The jobs that promote a version, and retire one."""

from collections.abc import Mapping

from dagster import MetadataValue, OpExecutionContext

from backfill_engine.catalog import Catalog
from backfill_engine.extras.versions.pages import describe_promotion, describe_refusal
from backfill_engine.extras.versions.promoting import Promoter, PromotionConfig
from backfill_engine.extras.versions.retiring import RetirementConfig, retire
from backfill_engine.jobs import OpJob
from backfill_engine.orchestration.records.failures import build_failure, fail_with_message
from backfill_engine.resources import LakehouseResource, SparkResource


def promote_version(
    catalog: Catalog,
    context: OpExecutionContext,
    config: PromotionConfig,
    spark: SparkResource,
    lakehouse: LakehouseResource,
) -> str:
    """Serves another version of a table, in one commit, if nothing stands against it."""
    with fail_with_message(context):
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
    """Empties a version that nobody reads, and protects it; returns what was done."""
    with fail_with_message(context):
        done = retire(context, config, catalog, spark, lakehouse)
    context.log.info(done)
    return done


JOBS: Mapping[str, OpJob] = {
    "promote": OpJob(
        "promote_version",
        PromotionConfig,
        promote_version,
        "Serves another version of a table to its consumers, whole and in one commit.",
    ),
    "retire": OpJob(
        "retire_version",
        RetirementConfig,
        retire_version,
        "Retires a version of a table that is no longer served: its rows go.",
    ),
}
"""By name."""
