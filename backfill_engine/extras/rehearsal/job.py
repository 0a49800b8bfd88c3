"""The job that rehearses."""

from dagster import MetadataValue, OpExecutionContext

from backfill_engine.catalog import Catalog
from backfill_engine.extras.rehearsal.records import describe_rehearsal
from backfill_engine.extras.rehearsal.rehearsing import RehearsalConfig, rehearse
from backfill_engine.jobs import Work
from backfill_engine.resources import LakehouseResource, SparkResource


def rehearse_partitions(
    catalog: Catalog,
    context: OpExecutionContext,
    config: RehearsalConfig,
    spark: SparkResource,
    lakehouse: LakehouseResource,
) -> str:
    """Shows what publishing partitions would change, and publishes nothing.

    The partitions are computed and audited as a run would do it.
    """
    done = rehearse(context, config, catalog, spark, lakehouse)
    context.add_output_metadata({"differences": MetadataValue.md(describe_rehearsal(done))})
    context.log.info(f"`backfill-assets apply {done.rehearsal_id}` publishes what was rehearsed")
    return done.rehearsal_id


JOBS: dict[str, Work] = {"rehearse": rehearse_partitions}
"""By name."""
