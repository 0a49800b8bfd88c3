"""Reads of Delta tables, always at a version fixed beforehand."""

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from backfill_engine.lake.table_log import TableLog
from backfill_engine.tables.declarations import Table


def read_table(spark: SparkSession, log: TableLog) -> DataFrame:
    """Reads the table's declared columns at the version of its log.

    Unpinned, a persisted frame is computed again from newer data when the table changes, so that
    the audit would see one version and the publish write another.
    """
    return _load(spark, log).select(*log.table.column_names)


def read_table_as_it_was(spark: SparkSession, log: TableLog, table: Table) -> DataFrame:
    """Reads the columns of `table` at the version of its log; those it got since are null."""
    rows = _load(spark, log)
    return rows.select(
        *(
            F.col(column.name)
            if column.name in rows.columns
            else F.lit(None).cast(column.type).alias(column.name)
            for column in table.columns
        )
    )


def _load(spark: SparkSession, log: TableLog) -> DataFrame:
    return spark.read.format("delta").option("versionAsOf", log.version).load(log.uri)
