"""Where a row belongs, in Spark: the number of its partition, and its folder."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from backfill_assets.tables.declarations import Table
from backfill_assets.tables.grains import Buckets, Daily, Grain, Hourly


def build_number(grain: Grain, column: str) -> Column:
    """BIGINT: the number of the partition that holds the value of `column`.

    Args:
        grain: of the partitions.
        column: DATE, TIMESTAMP or BIGINT, as the grain takes.
    """
    value = F.col(column)
    match grain:
        case Daily():
            return F.unix_date(value).cast("bigint")
        case Hourly():
            return F.floor(F.unix_seconds(value) / F.lit(3600))
        case Buckets(step=step):
            # Integers all the way: a double has no room for large keys.
            return F.call_function("div", value - F.pmod(value, F.lit(step)), F.lit(step))


def add_folder(rows: DataFrame, table: Table) -> DataFrame:
    """Sets the folder column, so that a row is always in the folder of its partition.

    Args:
        rows: with the table's partition column; unchanged if that is the folder column too.
        table: the table.
    """
    if table.folder_by is None:
        return rows
    return rows.withColumn(table.folder_by, F.to_date(table.partition_by))
