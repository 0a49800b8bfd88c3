"""Moves the watermark of a table over what a run has made final."""

from collections.abc import Collection, Sequence

from dagster import AssetExecutionContext, AssetPartitionStatus
from pyspark.sql import SparkSession

from backfill_engine.lake.partitions import Partition, build_partitions
from backfill_engine.lake.side_table_writer import move_watermark
from backfill_engine.lake.table_log import TableLog
from backfill_engine.orchestration.instance.partition_definitions import (
    find_feed_begin,
    find_partitions_def,
)
from backfill_engine.orchestration.runs.run_tags import INCREMENTAL_TAG
from backfill_engine.publishing.results import Run


def advance_watermark(
    context: AssetExecutionContext,
    spark: SparkSession,
    target: TableLog,
    run: Run,
    recorded: Sequence[Partition],
    final: Collection[str],
) -> None:
    """Moves the watermark over what is final of what a run recorded, and what joins on to it.

    Args:
        context: of the asset.
        spark: the session.
        target: log of the table, with the run's commits.
        run: the run.
        recorded: partitions of its range so far, ascending, at least one.
        final: keys of these that were published and need nothing more.
    """
    table = target.table
    done = [partition for partition in recorded if partition.key in final]
    # History is filled once, by no incremental run.
    (first,) = build_partitions(table, [find_feed_begin(table)])
    moved = move_watermark(
        spark,
        target.warehouse,
        table,
        [*done, *_find_done_after(context, recorded[-1].key, target)],
        first=first,
        run_id=run.run_id,
        now=run.started_at,
    )
    if moved:
        context.log.info(f"{table.key}: the watermark is at {moved.next_key}")


def _find_done_after(
    context: AssetExecutionContext, last: str, target: TableLog
) -> Sequence[Partition]:
    """Finds later partitions that are final already, as those after one that was withheld.

    For incremental runs: a backfill that is told to move the watermark moves it over its own.
    """
    if INCREMENTAL_TAG not in context.run.tags:
        return ()
    later = [
        key
        for key, publish in target.publishes.items()
        if key > last and key not in publish.record.provisional
    ]
    if not later:
        return ()
    instance, table = context.instance, target.table
    statuses = instance.get_status_by_partition(
        context.asset_key, later, find_partitions_def(table)
    )
    materialized = [
        key
        for key, status in (statuses or {}).items()
        if status is AssetPartitionStatus.MATERIALIZED
    ]
    return build_partitions(table, materialized)
