"""The job that compares published partitions with their source, or with a golden."""

from collections.abc import Sequence
from pathlib import Path

from dagster import Config, OpExecutionContext
from pydantic import Field

from backfill_engine.catalog import Catalog
from backfill_engine.errors import SettingsError
from backfill_engine.extras.comparison.golden import compare_with_golden
from backfill_engine.extras.comparison.reconciliation import ReconciledPartition, Reconciler
from backfill_engine.jobs import Work
from backfill_engine.lake.partitions import build_partitions
from backfill_engine.lake.table_log import read_log
from backfill_engine.orchestration.instance.partition_definitions import find_partitions_def
from backfill_engine.orchestration.instance.ranges import shorten
from backfill_engine.orchestration.instance.recovered_runs import note_reconciliation
from backfill_engine.orchestration.records.failures import build_failure
from backfill_engine.orchestration.selecting.selections import find_keys_in_range, select_tables
from backfill_engine.resources import LakehouseResource, SparkResource, build_reader
from backfill_engine.tables.declarations import Table

_LISTED = 50


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
    """Compares published partitions with what follows from their source now; fails if any differs.

    The partitions are computed again from their inputs as they are.
    """
    first, last = config.first, config.last
    if config.golden is None:
        names, warehouse = ",".join(config.tables), lakehouse.warehouse()
        tables = select_tables(catalog, warehouse, names, first=first, last=last)
        found = reconcile_tables(catalog, spark, lakehouse, tables, first=first, last=last)
        mismatches = {f"{row.table} {row.partition}": row.mismatch for row in found}
    else:
        mismatches = _compare_with_golden(catalog, lakehouse, config, config.golden)
    different = [f"{where}: {mismatch}" for where, mismatch in mismatches.items() if mismatch]
    other = config.golden or "their source"
    note_reconciliation(
        context.instance, context.run_id, compared=len(mismatches), different=len(different)
    )
    context.add_output_metadata({"partitions": len(mismatches), "different": len(different)})
    if different:
        listed = "\n  ".join(shorten(different, _LISTED))
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


JOBS: dict[str, Work] = {"reconcile": compare_with_source}
"""By name."""
