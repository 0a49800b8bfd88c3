"""The job that compares published partitions with their source."""

from collections.abc import Sequence

from dagster import Config, OpExecutionContext
from pydantic import Field

from backfill_engine.catalog import Catalog
from backfill_engine.extras.comparison.reconciliation import ReconciledPartition, Reconciler
from backfill_engine.lake.partitions import build_partitions
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
    tables = select_tables(
        catalog, lakehouse.warehouse(), ",".join(config.tables), first=first, last=last
    )
    compared = reconcile_tables(catalog, spark, lakehouse, tables, first=first, last=last)
    different = [f"{row.table} {row.partition}: {row.mismatch}" for row in compared if row.mismatch]
    note_reconciliation(
        context.instance, context.run_id, compared=len(compared), different=len(different)
    )
    context.add_output_metadata({"partitions": len(compared), "different": len(different)})
    if different:
        listed = "\n  ".join(shorten(different, _LISTED))
        raise build_failure(
            f"{len(different)} of {len(compared)} partitions don't agree with their source:\n"
            f"  {listed}"
        )
    return f"{len(compared)} partitions agree with their source"


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
