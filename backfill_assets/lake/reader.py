"""Reads of Delta tables, always at a version fixed beforehand."""

from pyspark.sql import DataFrame, SparkSession

from backfill_assets.lake.warehouse import Warehouse
from backfill_assets.tables.declarations import Table


def read_table(
    spark: SparkSession, warehouse: Warehouse, table: Table, *, version: int
) -> DataFrame:
    """The table's declared columns as of `version`.

    Unpinned, a persisted frame is computed again from newer data when the table changes, so that
    the audit would see one version and the publish write another.
    """
    return (
        spark.read.format("delta")
        .option("versionAsOf", version)
        .load(warehouse.uri(table))
        .select(*table.column_names)
    )
