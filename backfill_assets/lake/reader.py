"""Reads of Delta tables, always at a version fixed beforehand."""

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

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


def read_table_as_it_was(
    spark: SparkSession, warehouse: Warehouse, table: Table, *, version: int
) -> DataFrame:
    """As `read_table`, but columns that the table got since `version` are null."""
    rows = spark.read.format("delta").option("versionAsOf", version).load(warehouse.uri(table))
    return rows.select(
        *(
            F.col(one.name)
            if one.name in rows.columns
            else F.lit(None).cast(one.type).alias(one.name)
            for one in table.columns
        )
    )
