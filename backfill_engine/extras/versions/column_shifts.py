"""Measures how the columns of two tables differ: means, and shares of rows without a value."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from pyspark.sql import Column, DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from backfill_engine.lake.partitions import Partition, build_table_predicate
from backfill_engine.lake.reader import build_number, read_table
from backfill_engine.lake.table_log import TableLog
from backfill_engine.rules.rule import NUMBERS
from backfill_engine.tables.declarations import Table

_NUMBER, _IS_AFTER, _ROWS = "_number", "_is_after", "_rows"

_SUMMED = "decimal(28,6)"
"""As which values are summed up: to the decimals to which checksums tell fractions apart (see
`contents.checksums`). Sums of decimals are the same in any order; those of doubles are not."""

_SQUARED = "decimal(18,6)"
"""As which they are squared: what is larger would not fit."""


@dataclass(frozen=True)
class ColumnShift:
    """One column of one partition, before and after.

    A value is what is neither null nor, of numbers, NaN, infinite or 10^22 and beyond.

    Attributes:
        partition: its key.
        column: its name.
        mean_before: of the values, fractions rounded to six decimals; None if there are none, or
            the column isn't of numbers.
        mean_after: likewise.
        nulls_before: share of the rows without a value, 0 to 1; 0 of no rows.
        nulls_after: likewise.
        stddev: pooled standard deviation √((s₁² + s₂²) / 2) of the values, each partition taken as
            all there is and not as a sample; None if either mean is, or if a value is 10^12 or
            beyond.
    """

    partition: str
    column: str
    mean_before: float | None
    mean_after: float | None
    nulls_before: float
    nulls_after: float
    stddev: float | None = None

    @property
    def mean_shift(self) -> float | None:
        """Computes |after - before| / max(|before|, stddev); None if either mean is.

        Far from zero this is the relative change. Near zero, where that says nothing, it is the
        standardized mean difference (Cohen's d with the mean of both variances; P. Austin, Balance
        diagnostics, Statistics in Medicine 28, 2009): 0.1 is little, 0.5 much. Infinite if a
        constant 0 became something else.
        """
        if self.mean_before is None or self.mean_after is None:
            return None
        distance = abs(self.mean_after - self.mean_before)
        scale = max(abs(self.mean_before), self.stddev or 0.0)
        if not scale:
            return math.inf if distance else 0.0
        return distance / scale

    @property
    def null_shift(self) -> float:
        """Computes by how much the share of rows without a value moved, 0 to 1."""
        return abs(self.nulls_after - self.nulls_before)


def measure_shifts(
    spark: SparkSession, before: TableLog, after: TableLog, partitions: Sequence[Partition]
) -> list[ColumnShift]:
    """Measures all columns but the keys, in one pass over both tables.

    What comes to the driver is one row a partition and side.

    Args:
        spark: the session.
        before: of the one table, which need not exist: then it has no rows. Columns that it lacks
            read as null.
        after: of the other; it exists, and its declaration says which columns there are.
        partitions: which to measure.

    Returns:
        For each partition, ascending, each column as declared.
    """
    table = after.table
    keys = {table.partition_by, table.folder_by, *table.natural_key}
    measured = [column for column in table.columns if column.name not in keys]
    if not measured or not partitions:
        return []
    predicate = build_table_predicate(table, (partition.slice for partition in partitions))
    is_number = {column.name: column.parsed_type.kind in NUMBERS for column in measured}
    rows = _read_values(spark, after, table, predicate, is_number, is_after=True)
    if before.exists:
        rows = rows.unionAll(
            _read_values(spark, before, table, predicate, is_number, is_after=False)
        )
    figures = (
        figure.alias(f"_{at}_{name}")
        for at, numeric in enumerate(is_number.values())
        for name, figure in _build_figures(F.col(f"_{at}"), numeric=numeric).items()
    )
    counted = F.count("*").alias(_ROWS)
    grouped = rows.groupBy(_NUMBER, _IS_AFTER).agg(counted, *figures).collect()
    found = {(row[_NUMBER], row[_IS_AFTER]): row for row in grouped}
    numbered = sorted(
        (table.grain.find_number(partition.slice.start), partition.key) for partition in partitions
    )
    return [
        _compare(
            key, column.name, *(_take(found.get((number, side)), at) for side in (False, True))
        )
        for number, key in numbered
        for at, column in enumerate(measured)
    ]


def _read_values(
    spark: SparkSession,
    log: TableLog,
    table: Table,
    predicate: str,
    is_number: dict[str, bool],
    *,
    is_after: bool,
) -> DataFrame:
    """Reads one side: number of the partition, side, and of each column `_0`, `_1` … its values.

    Of numbers these are decimals; of others just whether there is one.
    """
    values = (
        F.col(f"`{name}`").try_cast(_SUMMED) if numeric else F.col(f"`{name}`").isNotNull()
        for name, numeric in is_number.items()
    )
    return (
        read_table(spark, log, table)
        .where(predicate)
        .select(
            build_number(table.grain, table.partition_by).alias(_NUMBER),
            F.lit(is_after).alias(_IS_AFTER),
            *(value.alias(f"_{at}") for at, value in enumerate(values)),
        )
    )


def _build_figures(value: Column, *, numeric: bool) -> dict[str, Column]:
    if not numeric:
        return {"values": F.count_if(value)}
    small = value.try_cast(_SQUARED)
    return {
        "values": F.count_if(value.isNotNull()),
        "sum": F.try_sum(value),
        "squared": F.count_if(small.isNotNull()),
        "squares": F.try_sum(small * small),
    }


@dataclass(frozen=True)
class _Side:
    """What one side holds of a column of a partition."""

    nulls: float = 0.0
    mean: Fraction | None = None
    variance: Fraction | None = None


def _take(row: Row | None, at: int) -> _Side:
    if row is None:
        return _Side()
    figures, rows = row.asDict(), row[_ROWS]
    values, total = figures[f"_{at}_values"], figures.get(f"_{at}_sum")
    nulls = (rows - values) / rows
    if total is None:
        return _Side(nulls)
    mean, squares = Fraction(total) / values, figures[f"_{at}_squares"]
    if squares is None or figures[f"_{at}_squared"] < values:
        return _Side(nulls, mean)
    return _Side(nulls, mean, Fraction(squares) / values - mean**2)


def _compare(key: str, column: str, before: _Side, after: _Side) -> ColumnShift:
    variances = [side.variance for side in (before, after) if side.variance is not None]
    return ColumnShift(
        partition=key,
        column=column,
        mean_before=None if before.mean is None else float(before.mean),
        mean_after=None if after.mean is None else float(after.mean),
        nulls_before=before.nulls,
        nulls_after=after.nulls,
        stddev=math.sqrt(sum(variances) / 2) if len(variances) == 2 else None,
    )
