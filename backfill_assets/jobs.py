"""Jobs beside the assets: what a person or a schedule runs over partitions that are published."""

import datetime as dt
from collections.abc import Sequence
from pathlib import Path

from dagster import (
    Config,
    MetadataValue,
    OpExecutionContext,
    ScheduleDefinition,
    job,
    op,
)
from pydantic import Field

from backfill_assets.catalog import find_table, list_tables
from backfill_assets.errors import SettingsError
from backfill_assets.lake.maintenance import maintain_table
from backfill_assets.lake.partitions import build_partitions
from backfill_assets.lake.table_log import read_log
from backfill_assets.lake.watermark_writer import vacuum_watermarks
from backfill_assets.orchestration.instance.own_runs import OWN_STEP
from backfill_assets.orchestration.instance.partition_definitions import find_partitions_def
from backfill_assets.orchestration.instance.ranges import shorten
from backfill_assets.orchestration.instance.reconciled_runs import note_reconciliation
from backfill_assets.orchestration.promoting import Promoter
from backfill_assets.orchestration.records.failures import build_failure, fail_with_message
from backfill_assets.orchestration.records.promotion_pages import (
    describe_promotion,
    describe_refusal,
)
from backfill_assets.orchestration.records.rehearsal_pages import describe_rehearsal
from backfill_assets.orchestration.rehearsing import RehearsalConfig
from backfill_assets.orchestration.rehearsing import rehearse as run_rehearsal
from backfill_assets.orchestration.retiring import RetirementConfig
from backfill_assets.orchestration.retiring import retire as run_retirement
from backfill_assets.orchestration.rollbacks import RollbackConfig, roll_back
from backfill_assets.orchestration.runs.promotion_options import PromotionConfig
from backfill_assets.orchestration.selecting.selections import find_keys_in_range, select_tables
from backfill_assets.pipelines import list_recipes
from backfill_assets.proof.golden_comparison import compare_with_golden
from backfill_assets.proof.reconciliation import ReconciledPartition, Reconciler
from backfill_assets.rehearsal.records import remove_abandoned
from backfill_assets.resources import LakehouseResource, SparkResource, build_reader
from backfill_assets.tables.declarations import Table

_LISTED = 50


@op(tags=OWN_STEP)
def restore_partitions(
    context: OpExecutionContext,
    config: RollbackConfig,
    spark: SparkResource,
    lakehouse: LakehouseResource,
) -> str:
    """Takes partitions of a table back to what an earlier version held; returns what was done."""
    with fail_with_message(context):
        done = roll_back(context, config, spark, lakehouse)
    context.log.info(done)
    return done


@job(description="Takes partitions of a table back to an earlier version, in one audited commit.")
def rollback_partitions() -> None:
    """One op, so that its configuration is short."""
    restore_partitions()


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


@op(tags=OWN_STEP)
def compare_with_source(
    context: OpExecutionContext,
    config: ReconcileConfig,
    spark: SparkResource,
    lakehouse: LakehouseResource,
) -> str:
    """Computes the partitions again from their inputs as they are, and fails if any differs."""
    with fail_with_message(context):
        if config.golden is None:
            found = reconcile_tables(
                spark,
                lakehouse,
                select_tables(
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
            mismatches = _compare_with_golden(lakehouse, config, config.golden)
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
    lakehouse: LakehouseResource, config: ReconcileConfig, golden: str
) -> dict[str, str]:
    """Says in words how many rows don't agree, by partition; empty where all do."""
    if len(config.tables) != 1:
        raise SettingsError("a golden is compared with one table: name it in `tables`")
    table = find_table(config.tables[0])
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


@job(description="Compares published partitions with what follows from their source now.")
def reconcile() -> None:
    """One op, so that its configuration is short."""
    compare_with_source()


def reconcile_tables(
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
            list_recipes()[table.key], build_partitions(table, keys[table.key])
        )
    ]


@op(tags=OWN_STEP)
def rehearse_partitions(
    context: OpExecutionContext,
    config: RehearsalConfig,
    spark: SparkResource,
    lakehouse: LakehouseResource,
) -> str:
    """Computes and audits partitions as a run would, and shows how they differ; returns its id."""
    with fail_with_message(context):
        done = run_rehearsal(context, config, list_recipes(), spark, lakehouse)
    context.add_output_metadata({"differences": MetadataValue.md(describe_rehearsal(done))})
    context.log.info(f"`backfill-assets apply {done.rehearsal_id}` publishes what was rehearsed")
    return done.rehearsal_id


@job(description="Shows what publishing partitions would change, and publishes nothing.")
def rehearse() -> None:
    """One op, so that its configuration is short."""
    rehearse_partitions()


@op(tags=OWN_STEP)
def promote_version(
    context: OpExecutionContext,
    config: PromotionConfig,
    spark: SparkResource,
    lakehouse: LakehouseResource,
) -> str:
    """Serves another version of a table, in one commit, if nothing stands against it."""
    with fail_with_message(context):
        found = Promoter(context, config, list_recipes(), spark, lakehouse).promote()
    context.add_output_metadata(
        {
            "promotion": MetadataValue.md(describe_promotion(found)),
            "drift": MetadataValue.path(found.page or "nothing was rehearsed"),
        }
    )
    if not found.is_served and found.published is None and not config.dry_run:
        raise build_failure(describe_refusal(found))
    return found.promotion_id


@job(description="Serves another version of a table to its consumers, whole and in one commit.")
def promote() -> None:
    """One op, so that its configuration is short."""
    promote_version()


@op(tags=OWN_STEP)
def retire_version(
    context: OpExecutionContext,
    config: RetirementConfig,
    spark: SparkResource,
    lakehouse: LakehouseResource,
) -> str:
    """Empties a version that nobody reads, and protects it; returns what was done."""
    with fail_with_message(context):
        done = run_retirement(context, config, list_recipes(), spark, lakehouse)
    context.log.info(done)
    return done


@job(description="Retires a version of a table that is no longer served: its rows go.")
def retire() -> None:
    """One op, so that its configuration is short."""
    retire_version()


class MaintainConfig(Config):
    """What counts as final and as old."""

    final_days: int = Field(
        default=7, ge=0, description="Partitions that end so many days ago get their files joined."
    )


@op(tags=OWN_STEP)
def maintain_tables(
    context: OpExecutionContext,
    config: MaintainConfig,
    spark: SparkResource,
    lakehouse: LakehouseResource,
) -> str:
    """Joins small files of final partitions, vacuums, and drops old withheld and rejected rows."""
    with fail_with_message(context):
        return _maintain_tables(context, config, spark, lakehouse)


def _maintain_tables(
    context: OpExecutionContext,
    config: MaintainConfig,
    spark: SparkResource,
    lakehouse: LakehouseResource,
) -> str:
    lakehouse.warehouse().check_writable()
    today = dt.datetime.now(tz=dt.UTC).date()
    final_before = today - dt.timedelta(days=config.final_days)
    messages: list[str] = []
    for table in list_tables():
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
    day_ago = dt.datetime.now(tz=dt.UTC) - dt.timedelta(days=1)
    for rehearsal_id in remove_abandoned(lakehouse.warehouse(), before=day_ago):
        messages.append(f"removed the tables of rehearsal {rehearsal_id}, which never ended")
        context.log.info(messages[-1])
    vacuum_watermarks(spark.spark_session, lakehouse.warehouse())
    return "\n".join(messages)


@job(description="Joins small files, vacuums, and drops old withheld and rejected rows.")
def maintain() -> None:
    """One op, so that its configuration is short."""
    maintain_tables()


maintain_nightly = ScheduleDefinition(
    name="maintain_nightly",
    job=maintain,
    cron_schedule="30 3 * * *",
    execution_timezone="UTC",
    description=(
        "At 03:30 UTC: joins small files of days that are final, vacuums, and drops old withheld "
        "and rejected rows, of all tables."
    ),
)
