"""Reads Delta tables, always at a version fixed beforehand, and finds each row's partition."""

from collections.abc import Iterable, Mapping

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from backfill_engine.errors import TableError
from backfill_engine.grains.grain import Grain
from backfill_engine.lake.delta_logs import shorten_cause
from backfill_engine.lake.partitions import Partition
from backfill_engine.lake.table_log import TableLog
from backfill_engine.tables.column_types import is_widening
from backfill_engine.tables.columns import Column as DeclaredColumn
from backfill_engine.tables.declarations import Table
from backfill_engine.tables.external_delta import ExternalDelta
from backfill_engine.uris import absolute_uri, arrow_uri

SPARK_ERRORS = (PySparkException, Py4JError)
"""What Spark raises: its own exceptions where it knows the error, Py4J's where it doesn't."""


def read_table(spark: SparkSession, log: TableLog, table: Table | None = None) -> DataFrame:
    """Reads the columns of a declaration at the version of the log; those it lacked are null.

    A column that had another name or a narrower type then is read as what it was migrated to.

    Unpinned, a persisted frame is computed again from newer data when the table changes, so that
    the audit would see one version and the publish write another.

    Args:
        spark: the session.
        log: of the table.
        table: with the columns; None for the declaration that the log has.
    """
    rows = spark.read.format("delta").option("versionAsOf", log.version).load(log.uri)
    types = {field.name: field.dataType.simpleString() for field in rows.schema.fields}
    return rows.select(*(_read_column(column, types) for column in (table or log.table).columns))


def _read_column(column: DeclaredColumn, types: Mapping[str, str]) -> Column:
    name = column.find_stored_name(types)
    if name is None:
        return F.lit(None).cast(column.parsed_type.of_values).alias(column.name)
    values = F.col(name)
    if is_widening(types[name], column.type):
        values = values.cast(column.parsed_type.of_values)
    return values if name == column.name else values.alias(column.name)


def check_catalog_location(spark: SparkSession, log: TableLog) -> None:
    """Refuses somebody else's table that Spark's catalog has elsewhere than it is declared.

    Raises:
        TableError: also if the catalog doesn't know it.
    """
    table = log.table
    if not isinstance(table, ExternalDelta) or not table.catalog_name:
        return
    name = ".".join(f"`{part}`" for part in table.catalog_name.split("."))
    try:
        found = spark.sql(f"DESCRIBE DETAIL {name}").collect()[0]["location"]
    except SPARK_ERRORS as error:
        raise TableError(
            f"{table.key}: Spark's catalog doesn't say where {table.catalog_name} is "
            f"({shorten_cause(error)}): correct its `catalog_name`, or leave it out"
        ) from error
    if arrow_uri(absolute_uri(found)) != arrow_uri(log.uri):
        raise TableError(
            f"{table.key}: {table.catalog_name} is at {found} now, and {log.uri} is declared: "
            "correct its `location`; nothing was written"
        )


def build_number(grain: Grain, column: str) -> Column:
    """Builds the number, BIGINT, of the partition that holds the value of `column`.

    Args:
        grain: of the partitions.
        column: of a type that the grain takes.
    """
    return F.expr(grain.number_sql(column)).cast("bigint")


def add_folder(rows: DataFrame, table: Table) -> DataFrame:
    """Sets the folder column, so that a row is always in the folder of its partition.

    Args:
        rows: with the table's partition column; unchanged if that is the folder column too.
        table: the table.
    """
    if table.folder_by is None:
        return rows
    return rows.withColumn(table.folder_by, F.to_date(table.partition_by))


def count_by(
    rows: DataFrame, column: str, grain: Grain, partitions: Iterable[Partition]
) -> dict[str, int]:
    """Counts rows by partition key; 0 where there are none.

    Args:
        rows: with `column`.
        column: with values as the partition column's. For a raw key of a bucket, any integer will
            do.
        grain: of the partitions.
        partitions: which to count.
    """
    numbers = rows.groupBy(build_number(grain, column).alias("number")).count().collect()
    counted = {row[0]: row[1] for row in numbers}
    return {
        partition.key: counted.get(grain.find_number(partition.slice.start), 0)
        for partition in partitions
    }
