"""The job that rehearses."""

import datetime as dt
from collections.abc import Mapping

from dagster import Config, MetadataValue, OpExecutionContext

from backfill_engine.catalog import Catalog
from backfill_engine.extras.rehearsal.pages import describe_rehearsal
from backfill_engine.extras.rehearsal.records import remove_abandoned
from backfill_engine.extras.rehearsal.rehearsing import RehearsalConfig, rehearse
from backfill_engine.jobs import OpJob
from backfill_engine.orchestration.records.failures import fail_with_message
from backfill_engine.resources import LakehouseResource, SparkResource


def rehearse_partitions(
    catalog: Catalog,
    context: OpExecutionContext,
    config: RehearsalConfig,
    spark: SparkResource,
    lakehouse: LakehouseResource,
) -> str:
    """Computes and audits partitions as a run would, and shows how they differ; returns its id."""
    with fail_with_message(context):
        done = rehearse(context, config, catalog, spark, lakehouse)
    context.add_output_metadata({"differences": MetadataValue.md(describe_rehearsal(done))})
    context.log.info(f"`backfill-assets apply {done.rehearsal_id}` publishes what was rehearsed")
    return done.rehearsal_id


def remove_abandoned_tables(
    catalog: Catalog,
    context: OpExecutionContext,
    config: Config,
    spark: SparkResource,
    lakehouse: LakehouseResource,
) -> str:
    """Removes the tables of rehearsals that began a day ago and never ended; returns which."""
    day_ago = dt.datetime.now(tz=dt.UTC) - dt.timedelta(days=1)
    with fail_with_message(context):
        removed = remove_abandoned(lakehouse.warehouse(), before=day_ago)
    messages = [f"removed the tables of rehearsal {one}, which never ended" for one in removed]
    for message in messages:
        context.log.info(message)
    return "\n".join(messages)


JOBS: Mapping[str, OpJob] = {
    "rehearse": OpJob(
        "rehearse_partitions",
        RehearsalConfig,
        rehearse_partitions,
        "Shows what publishing partitions would change, and publishes nothing.",
    )
}
"""By name."""
