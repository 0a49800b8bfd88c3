"""The job that keeps tables quick and small, and the schedule that starts it at night."""

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass

from dagster import Config, JobDefinition, OpExecutionContext, ScheduleDefinition
from pydantic import Field
from pyspark.sql import SparkSession

from backfill_engine.catalog import Catalog
from backfill_engine.extras.rehearsal.records import remove_abandoned
from backfill_engine.lake.delta_logs import has_log
from backfill_engine.lake.partitions import Partition, build_partitions, find_folder
from backfill_engine.lake.side_table_writer import delete_rows_before
from backfill_engine.lake.side_tables import (
    REJECTED_ON,
    WITHHELD_ON,
    build_quarantine_table,
    build_withheld_table,
)
from backfill_engine.lake.table_log import read_log
from backfill_engine.lake.warehouse import Warehouse
from backfill_engine.lake.watermarks import locate_watermarks
from backfill_engine.lake.writer import optimize_partitions, vacuum_table
from backfill_engine.orchestration.instance.partition_definitions import find_partitions_def
from backfill_engine.resources import LakehouseResource, SparkResource
from backfill_engine.tables.declarations import Table

MAINTAIN = "maintain"
"""Name of the job, without its prefix."""


@dataclass(frozen=True)
class MaintainedTable:
    """What was done to one table.

    Attributes:
        optimized: keys of the partitions of which small files were joined.
        files_before: data files of these before.
        files_after: and after.
        pruned: withheld and quarantined rows that were dropped for their age.
    """

    optimized: tuple[str, ...]
    files_before: int
    files_after: int
    pruned: int


def maintain_table(
    spark: SparkSession,
    warehouse: Warehouse,
    table: Table,
    final: Sequence[Partition],
    *,
    keep_aside_since: dt.date,
) -> MaintainedTable:
    """Joins small files, removes what no promise needs, and drops old withheld and rejected rows.

    Safe while runs are at work: joining changes no data and waits for the table's lock.

    Args:
        spark: the session.
        warehouse: where the table is.
        table: the table; nothing is done if it doesn't exist.
        final: partitions of which no more late data is due; others are left alone.
        keep_aside_since: withheld and rejected rows of runs before this UTC day are dropped.
    """
    log = read_log(warehouse, table)
    files = log.count_folder_files()
    scattered = [
        partition for partition in final if files.get(find_folder(table, partition), 0) > 1
    ]
    folders = {find_folder(table, partition) for partition in scattered}
    if scattered:
        optimize_partitions(spark, warehouse, table, [partition.slice for partition in scattered])
    if files:
        vacuum_table(spark, log.uri)
    after = log.reread().count_folder_files()
    return MaintainedTable(
        optimized=tuple(partition.key for partition in scattered),
        files_before=sum(files[folder] for folder in folders),
        files_after=sum(after.get(folder, 0) for folder in folders),
        pruned=sum(
            _prune(spark, warehouse, side_table, column, keep_aside_since)
            for side_table, column in (
                (build_withheld_table(table), WITHHELD_ON),
                (build_quarantine_table(table), REJECTED_ON),
            )
        ),
    )


def _prune(
    spark: SparkSession, warehouse: Warehouse, side_table: Table, column: str, since: dt.date
) -> int:
    log = read_log(warehouse, side_table)
    if not log.exists:
        return 0
    delete_rows_before(spark, warehouse, side_table, column, since)
    vacuum_table(spark, log.uri)
    return sum(log.count_folder_rows().values()) - sum(log.reread().count_folder_rows().values())


class MaintainConfig(Config):
    """What counts as final and as old."""

    final_days: int = Field(
        default=7, ge=0, description="Partitions that end so many days ago get their files joined."
    )


def maintain_tables(
    catalog: Catalog,
    context: OpExecutionContext,
    config: MaintainConfig,
    spark: SparkResource,
    lakehouse: LakehouseResource,
) -> str:
    """Joins small files of days that are final, vacuums, drops old withheld and rejected rows.

    Of all tables. Removes the tables of rehearsals that began a day ago and never ended, too.
    """
    warehouse, now = lakehouse.warehouse(), dt.datetime.now(tz=dt.UTC)
    warehouse.check_writable()
    final_before = now.date() - dt.timedelta(days=config.final_days)
    messages: list[str] = []
    for table in catalog.tables:
        partitions = build_partitions(table, find_partitions_def(table).get_partition_keys())
        done = maintain_table(
            spark.spark_session,
            warehouse,
            table,
            [
                partition
                for partition in partitions
                if table.grain.is_over(partition.slice.start, final_before)
            ],
            keep_aside_since=now.date() - dt.timedelta(days=lakehouse.withheld_days),
        )
        messages.append(
            f"{table.key}: joined {done.files_before} files of {len(done.optimized)} partitions "
            f"to {done.files_after}; dropped {done.pruned} withheld or rejected rows"
        )
    if has_log(locate_watermarks(warehouse)):
        vacuum_table(spark.spark_session, locate_watermarks(warehouse))
    removed = remove_abandoned(warehouse, before=now - dt.timedelta(days=1))
    messages += [f"removed the tables of rehearsal {name}, which never ended" for name in removed]
    return "\n".join(messages)


def build_maintenance_schedule(maintain: JobDefinition) -> ScheduleDefinition:
    """Builds the schedule by which tables are maintained at night."""
    return ScheduleDefinition(
        name=f"{maintain.name}_nightly",
        job=maintain,
        cron_schedule="30 3 * * *",
        execution_timezone="UTC",
        description=f"At 03:30 UTC: {maintain.description} Turn it on wherever runs go on by night "
        "or all day long.",
    )
