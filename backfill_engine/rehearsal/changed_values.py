"""Counts in which columns the rows of the same key differ."""

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from backfill_engine.audit_columns import ENGINE_PREFIX
from backfill_engine.lake.partitions import Partition, build_table_predicate
from backfill_engine.lake.reader import build_number, read_table
from backfill_engine.lake.table_log import TableLog
from backfill_engine.tables.declarations import Table

_NUMBER = f"{ENGINE_PREFIX}number"

_DECIMALS = 6
"""To which checksums tell fractions apart (see `contents.checksums`)."""


def count_changed_values(
    spark: SparkSession, before: TableLog, after: TableLog, partitions: Sequence[Partition]
) -> dict[str, dict[str, int]]:
    """Counts, by partition key and column, rows of the same key with another value; in one job.

    Args:
        spark: the session.
        before: of the one table; it exists.
        after: of the other, of the same declaration.
        partitions: which to compare; at least one.

    Returns:
        Columns without a difference are left out, and partitions without any. Nothing of a table
        without a natural key.
    """
    table = before.table
    keys = [table.partition_by, *(key for key in table.natural_key if key != table.partition_by)]
    others = [name for name in table.column_names if name not in (*keys, table.folder_by)]
    if not table.natural_key or not others:
        return {}
    mine = build_table_predicate(table, (partition.slice for partition in partitions))
    sides = (read_table(spark, log).where(mine) for log in (before, after))
    old, new = (
        _number(side, table, keys, others).alias(name)
        for side, name in zip(sides, ("old", "new"), strict=True)
    )
    counts = (F.count_if(~_equals(table, name)).alias(f"_{at}") for at, name in enumerate(others))
    rows = old.join(new, [_NUMBER, *keys]).groupBy(_NUMBER).agg(*counts).collect()
    by_number = {table.grain.find_number(one.slice.start): one.key for one in partitions}
    found = {
        by_number[row[_NUMBER]]: {
            name: row[f"_{at}"] for at, name in enumerate(others) if row[f"_{at}"]
        }
        for row in rows
    }
    return {key: columns for key, columns in sorted(found.items()) if columns}


def _number(rows: DataFrame, table: Table, keys: Sequence[str], others: Sequence[str]) -> DataFrame:
    number = build_number(table.grain, table.partition_by).alias(_NUMBER)
    return rows.select(number, *keys, *others)


def _equals(table: Table, name: str) -> Column:
    types = {column.name: column.type for column in table.columns}
    old, new = F.col(f"old.`{name}`"), F.col(f"new.`{name}`")
    if types[name] in ("DOUBLE", "FLOAT"):
        old, new = F.round(old, _DECIMALS), F.round(new, _DECIMALS)
    return old.eqNullSafe(new)
