"""Measures all partitions of a range in one grouped pass."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from itertools import pairwise
from operator import or_
from typing import Any

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F

from backfill_assets.contents.checksums import build_checksum_parts, build_row_hash, format_checksum
from backfill_assets.errors import TableError
from backfill_assets.lake.placement import build_number
from backfill_assets.lake.slices import Partition
from backfill_assets.rules.profiles import PartitionProfile
from backfill_assets.tables.audit_columns import (
    DUPLICATES,
    FIELD_SEPARATOR,
    FIELDS_SEEN,
    KEPT,
    LEFT_OUT,
    NOT_OURS,
    REJECT_REASON,
)
from backfill_assets.tables.declarations import Table
from backfill_assets.tables.rules import Drift, Nulls, Reconciled, Values

_NUMBER = "_partition_number"


@dataclass(frozen=True)
class PartitionMeasures:
    """What one partition holds; all zero for one without rows.

    Attributes:
        rows: rows to publish.
        checksum: see `contents.checksums`.
        rejects: source records that can't become rows.
        rejects_due: those of them whose reason is `NOT_OURS`.
        kept: rows of these that were published before and stay.
        left_out: computed rows that a filter leaves out.
        duplicates_dropped: source records that a later version of the same row replaced.
        key_duplicates: rows whose natural key another row has too, beyond the first.
        required_nulls: rows to publish in which a required column is null.
        nulls: null values by column, for columns with a `Nulls` rule.
        out_of_range: values out of range by column, for columns with a `Values` rule.
        totals: sums by column over all computed rows, for columns that reconcile.
        histograms: rows per bin, nulls last, by the `histogram` of each `Drift` rule.
        fields_seen: fields that any good source record had; None where none was parsed.
    """

    rows: int = 0
    checksum: str = format_checksum(0, 0)
    rejects: int = 0
    rejects_due: int = 0
    kept: int = 0
    left_out: int = 0
    duplicates_dropped: int = 0
    key_duplicates: int = 0
    required_nulls: int = 0
    nulls: Mapping[str, int] = field(default_factory=dict)
    out_of_range: Mapping[str, int] = field(default_factory=dict)
    totals: Mapping[str, int] = field(default_factory=dict)
    histograms: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    fields_seen: frozenset[str] | None = None

    def profile(self) -> PartitionProfile:
        """What later partitions are compared with."""
        return PartitionProfile(self.rows, dict(self.nulls), dict(self.histograms))


def measure_partitions(
    frame: DataFrame, table: Table, partitions: Sequence[Partition]
) -> dict[str, PartitionMeasures]:
    """One grouped aggregation of numbers; the natural keys and the fields seen are counted apart.

    Apart, because beside distinct values or texts Spark aggregates all numbers the slow way: for
    each distinct value, or after sorting. What comes to the driver is one row a partition each.

    Args:
        frame: columns of `table`, and any of the audit columns; rejected rows have null table
            columns but for the partition column.
        table: its declaration.
        partitions: all partitions that `frame` may hold.

    Returns:
        Measures per partition key, for each of `partitions`.
    """
    numbers = {table.grain.find_number(one.slice.start): one.key for one in partitions}
    frame = frame.withColumn(_NUMBER, build_number(table.grain, table.partition_by))
    rows = frame.groupBy(_NUMBER).agg(*_build_aggregates(frame, table)).collect()
    outside = {row[_NUMBER] for row in rows} - set(numbers)
    if outside:
        raise TableError(
            f"{table.key}: computed rows of partitions that were not asked for, such as number "
            f"{min(outside)} of its {table.grain}"
        )
    duplicates, fields_seen = _count_key_duplicates(frame, table), _find_fields_seen(frame)
    found = {
        numbers[number]: _read_measures(
            row,
            key_duplicates=duplicates.get(number, 0),
            fields_seen=fields_seen.get(number, frozenset()) if fields_seen is not None else None,
        )
        for row in rows
        for number in [row[_NUMBER]]
    }
    return {one.key: found.get(one.key, PartitionMeasures()) for one in partitions}


def _count_key_duplicates(frame: DataFrame, table: Table) -> dict[int, int]:
    """Rows beyond the first of their natural key, by partition number; absent where none."""
    if not table.natural_key:
        return {}
    repeated = keep_rows(frame).groupBy(_NUMBER, F.xxhash64(*table.natural_key)).count()
    counted = repeated.where("count > 1").groupBy(_NUMBER).agg(F.sum(F.col("count") - 1))
    return {row[0]: row[1] for row in counted.collect()}


def _find_fields_seen(frame: DataFrame) -> dict[int, frozenset[str]] | None:
    """Fields of any good record, by partition number; None if none was parsed."""
    if FIELDS_SEEN not in frame.columns:
        return None
    combinations = keep_rows(frame).select(_NUMBER, FIELDS_SEEN).distinct()
    names = F.explode(F.split(FIELDS_SEEN, FIELD_SEPARATOR)).alias("name")
    seen = (
        combinations.select(_NUMBER, names)
        .where("name <> ''")
        .groupBy(_NUMBER)
        .agg(F.collect_set("name"))
    )
    return {row[0]: frozenset(row[1]) for row in seen.collect()}


def keep_rows(frame: DataFrame) -> DataFrame:
    """The rows to publish: neither rejected nor left out."""
    return frame.where(is_row(frame))


def is_row(frame: DataFrame) -> Column:
    """BOOLEAN: whether a row is to be published: neither rejected nor left out."""
    condition = F.expr("true")
    for name in (REJECT_REASON, LEFT_OUT):
        if name in frame.columns:
            condition &= F.col(name).isNull()
    return condition


def _build_aggregates(frame: DataFrame, table: Table) -> list[Column]:
    good = is_row(frame)
    is_computed = F.col(KEPT).isNull() if KEPT in frame.columns else F.expr("true")
    upper, lower = build_checksum_parts(F.when(good, build_row_hash(table)))
    aggregates = {"rows": F.count_if(good), "upper": upper, "lower": lower}
    lacks = [F.col(one.name).isNull() for one in table.columns if not one.nullable]
    aggregates["required_nulls"] = F.count_if(good & reduce(or_, lacks))
    if KEPT in frame.columns:
        aggregates["kept"] = F.count_if(KEPT)
    if LEFT_OUT in frame.columns:
        aggregates["left_out"] = F.count_if(LEFT_OUT)
    if REJECT_REASON in frame.columns:
        aggregates["rejects"] = F.count_if(F.col(REJECT_REASON).isNotNull())
        aggregates["rejects_due"] = F.count_if(F.col(REJECT_REASON).startswith(NOT_OURS))
    if DUPLICATES in frame.columns:
        aggregates["duplicates_dropped"] = F.sum(DUPLICATES)
    for rule in table.rules:
        match rule:
            case Nulls(column):
                aggregates[f"nulls {column}"] = F.count_if(good & F.col(column).isNull())
            case Values(column, low, high):
                aggregates[f"out {column}"] = F.count_if(good & ~F.col(column).between(low, high))
            case Reconciled(total_of=str(column)):
                aggregates[f"total {column}"] = F.sum(F.when(is_computed, F.col(column)))
            case Drift():
                aggregates[f"bins {rule.histogram}"] = F.array(
                    *(F.count_if(good & in_bin) for in_bin in _build_bins(rule))
                )
    return [aggregate.alias(name) for name, aggregate in aggregates.items()]


def _build_bins(rule: Drift) -> list[Column]:
    """Conditions, one a bin: below the first edge, between edges, from the last on, null."""
    value, edges = F.col(rule.column), rule.edges
    between = [(value >= low) & (value < high) for low, high in pairwise(edges)]
    return [value < edges[0], *between, value >= edges[-1], value.isNull()]


def _read_measures(
    row: Row, *, key_duplicates: int, fields_seen: frozenset[str] | None
) -> PartitionMeasures:
    values: dict[str, Any] = row.asDict()

    def named(prefix: str) -> dict[str, Any]:
        return {k.split(" ", 1)[1]: v or 0 for k, v in values.items() if k.startswith(f"{prefix} ")}

    return PartitionMeasures(
        rows=values["rows"],
        checksum=format_checksum(values["upper"], values["lower"]),
        rejects=values.get("rejects", 0),
        rejects_due=values.get("rejects_due", 0),
        required_nulls=values["required_nulls"],
        kept=values.get("kept", 0),
        left_out=values.get("left_out", 0),
        duplicates_dropped=values.get("duplicates_dropped") or 0,
        key_duplicates=key_duplicates,
        nulls=named("nulls"),
        out_of_range=named("out"),
        totals=named("total"),
        histograms={name: tuple(counts) for name, counts in named("bins").items()},
        fields_seen=fields_seen,
    )
