"""Jobs beside the assets: what a person or a schedule runs over partitions that are published."""

import datetime as dt
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from dagster import (
    Config,
    JobDefinition,
    OpExecutionContext,
    ScheduleDefinition,
    in_process_executor,
    job,
    op,
)
from pydantic import Field

from backfill_engine.catalog import Catalog
from backfill_engine.errors import SettingsError
from backfill_engine.lake.maintenance import maintain_table
from backfill_engine.lake.partitions import build_partitions
from backfill_engine.lake.side_table_writer import vacuum_watermarks
from backfill_engine.lake.table_log import read_log
from backfill_engine.orchestration.instance.own_runs import OWN_STEP
from backfill_engine.orchestration.instance.partition_definitions import find_partitions_def
from backfill_engine.orchestration.instance.ranges import shorten
from backfill_engine.orchestration.instance.recovered_runs import note_reconciliation
from backfill_engine.orchestration.records.failures import build_failure, fail_with_message
from backfill_engine.orchestration.rollbacks import RollbackConfig, roll_back
from backfill_engine.orchestration.selecting.selections import find_keys_in_range, select_tables
from backfill_engine.proof.golden_comparison import compare_with_golden
from backfill_engine.proof.reconciliation import ReconciledPartition, Reconciler
from backfill_engine.resources import (
    LakehouseResource,
    SparkResource,
    build_reader,
    find_resources,
    list_resources,
)
from backfill_engine.tables.declarations import Table

_LISTED = 50


def restore_partitions(
    catalog: Catalog,
    context: OpExecutionContext,
    config: RollbackConfig,
    spark: SparkResource,
    lakehouse: LakehouseResource,
) -> str:
    """Takes partitions of a table back to what an earlier version held; returns what was done."""
    with fail_with_message(context):
        done = roll_back(catalog, context, config, spark, lakehouse)
    context.log.info(done)
    return done


class ReconcileConfig(Config):
    """What to compare with its source."""

    tables: list[str] = Field(
        default_factory=list,
        description="As staging/flights; none means all that have the partitions.",
    )
    first: str = Field(description="First partition key.")
    last: str = Field(description="Last partition key, included.")
    golden: str | None = Field(
        default=None, description="Compare one table with this Delta table, Parquet or CSV instead."
    )
    keys: list[str] = Field(
        default_factory=list, description="Columns that identify a row of it; else the natural key."
    )


def compare_with_source(
    catalog: Catalog,
    context: OpExecutionContext,
    config: ReconcileConfig,
    spark: SparkResource,
    lakehouse: LakehouseResource,
) -> str:
    """Computes the partitions again from their inputs as they are, and fails if any differs."""
    with fail_with_message(context):
        if config.golden is None:
            found = reconcile_tables(
                catalog,
                spark,
                lakehouse,
                select_tables(
                    catalog,
                    lakehouse.warehouse(),
                    ",".join(config.tables),
                    first=config.first,
                    last=config.last,
                ),
                first=config.first,
                last=config.last,
            )
            mismatches = {f"{row.table} {row.partition}": row.mismatch for row in found}
        else:
            mismatches = _compare_with_golden(catalog, lakehouse, config, config.golden)
    different = {where: what for where, what in mismatches.items() if what}
    other = config.golden or "their source"
    note_reconciliation(
        context.instance, context.run_id, compared=len(mismatches), different=len(different)
    )
    context.add_output_metadata({"partitions": len(mismatches), "different": len(different)})
    if different:
        listed = "\n  ".join(
            shorten([f"{where}: {what}" for where, what in different.items()], _LISTED)
        )
        raise build_failure(
            f"{len(different)} of {len(mismatches)} partitions don't agree with "
            f"{other}:\n  {listed}"
        )
    return f"{len(mismatches)} partitions agree with {other}"


def _compare_with_golden(
    catalog: Catalog, lakehouse: LakehouseResource, config: ReconcileConfig, golden: str
) -> dict[str, str]:
    """Says in words how many rows don't agree, by partition; empty where all do."""
    if len(config.tables) != 1:
        raise SettingsError("a golden is compared with one table: name it in `tables`")
    table = catalog.find_table(config.tables[0])
    keys = find_keys_in_range(find_partitions_def(table), first=config.first, last=config.last)
    report = compare_with_golden(
        read_log(lakehouse.warehouse(), table).require(),
        build_partitions(table, keys),
        Path(golden),
        keys=config.keys or table.natural_key,
    )
    return {
        f"{table.key} {key}": ""
        if rows.equal
        else f"{rows.removed} rows missing, {rows.added} extra, {rows.changed} differing"
        for key, rows in report.partitions.items()
    }


def reconcile_tables(
    catalog: Catalog,
    spark: SparkResource,
    lakehouse: LakehouseResource,
    tables: Sequence[Table],
    *,
    first: str,
    last: str,
) -> list[ReconciledPartition]:
    """Compares partitions with their source, by table as given, then ascending.

    Raises:
        BackfillError: if a table or a partition is unknown, or a source can't be read.
    """
    keys = {
        table.key: find_keys_in_range(find_partitions_def(table), first=first, last=last)
        for table in tables
    }
    reconciler = Reconciler(
        spark=spark.spark_session,
        warehouse=lakehouse.warehouse(),
        landing_root=lakehouse.landing_root,
        chunk_partitions=lakehouse.chunk_partitions,
        chunk_bytes=lakehouse.chunk_bytes,
        reader=build_reader(spark, lakehouse),
    )
    return [
        found
        for table in tables
        for found in reconciler.reconcile(
            catalog.recipes[table.key], build_partitions(table, keys[table.key])
        )
    ]


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
    """Joins small files of final partitions, vacuums, and drops old withheld and rejected rows."""
    with fail_with_message(context):
        return _maintain_tables(catalog, context, config, spark, lakehouse)


def _maintain_tables(
    catalog: Catalog,
    context: OpExecutionContext,
    config: MaintainConfig,
    spark: SparkResource,
    lakehouse: LakehouseResource,
) -> str:
    lakehouse.warehouse().check_writable()
    today = dt.datetime.now(tz=dt.UTC).date()
    final_before = today - dt.timedelta(days=config.final_days)
    messages: list[str] = []
    for table in catalog.tables:
        partitions = build_partitions(table, find_partitions_def(table).get_partition_keys())
        done = maintain_table(
            spark.spark_session,
            lakehouse.warehouse(),
            table,
            [
                partition
                for partition in partitions
                if table.grain.is_over(partition.slice.start, final_before)
            ],
            keep_aside_since=today - dt.timedelta(days=lakehouse.withheld_days),
        )
        messages.append(
            f"{table.key}: joined {done.files_before} files of {len(done.optimized)} partitions "
            f"to {done.files_after}; dropped {done.pruned} withheld or rejected rows"
        )
        context.log.info(messages[-1])
    vacuum_watermarks(spark.spark_session, lakehouse.warehouse())
    return "\n".join(messages)


ROLLBACK, RECONCILE, MAINTAIN = "rollback_partitions", "reconcile", "maintain"


@dataclass(frozen=True)
class OpJob:
    """A job of one op, so that its configuration is short.

    Attributes:
        op: the op's name.
        config: what configures it.
        work: what it does, given catalog, context, config, session and lakehouse; returns what was
            done.
        description: of the job.
        after: what is done likewise once that is done.
    """

    op: str
    config: type[Config]
    work: Callable[..., str]
    description: str
    after: tuple[Callable[..., str], ...] = ()


JOBS: Mapping[str, OpJob] = {
    ROLLBACK: OpJob(
        "restore_partitions",
        RollbackConfig,
        restore_partitions,
        "Takes partitions of a table back to an earlier version, in one audited commit.",
    ),
    RECONCILE: OpJob(
        "compare_with_source",
        ReconcileConfig,
        compare_with_source,
        "Compares published partitions with what follows from their source now.",
    ),
    MAINTAIN: OpJob(
        "maintain_tables",
        MaintainConfig,
        maintain_tables,
        "Joins small files, vacuums, and drops old withheld and rejected rows.",
    ),
}
"""The core's, by name."""


def build_job(catalog: Catalog, name: str, declared: OpJob) -> JobDefinition:
    """Builds a job of one op."""

    def do_work(context: OpExecutionContext, config: Config) -> str:
        spark, lakehouse = find_resources(catalog, context)
        works = (declared.work, *declared.after)
        done = [work(catalog, context, config, spark, lakehouse) for work in works]
        return "\n".join(filter(None, done))

    do_work.__annotations__["config"] = declared.config
    step = op(
        name=catalog.prefix(declared.op),
        description=inspect.getdoc(declared.work),
        tags=OWN_STEP,
        required_resource_keys=list_resources(catalog),
    )(do_work)

    @job(
        name=catalog.prefix(name),
        description=declared.description,
        executor_def=in_process_executor,
    )
    def of_one_op() -> None:
        step()

    return of_one_op


def build_maintenance_schedule(maintain: JobDefinition) -> ScheduleDefinition:
    """Builds the schedule by which tables are maintained at night."""
    return ScheduleDefinition(
        name=f"{maintain.name}_nightly",
        job=maintain,
        cron_schedule="30 3 * * *",
        execution_timezone="UTC",
        description=(
            "At 03:30 UTC: joins small files of days that are final, vacuums, and drops old "
            "withheld and rejected rows, of all tables."
        ),
    )
