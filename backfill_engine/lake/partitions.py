"""Partitions of a table: from keys to slices, to folders, and to the predicate that selects them.

A table's grain says what a partition is; its folders may be coarser, as of hours in daily folders.

Slices are half-open intervals of the partition column: dates, UTC timestamps or integers. Pure
arithmetic: no Spark, no Delta, no Dagster.
"""

import datetime as dt
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass

from backfill_engine.grains.grain import Grain, SliceBound
from backfill_engine.grains.overlaps import find_cover
from backfill_engine.grains.whole import WHOLE_KEY
from backfill_engine.tables.declarations import Table

_NOTHING = dt.timedelta()

EVERY_ROW = "true"
"""The predicate of a table without partitions."""


@dataclass(frozen=True)
class Slice:
    """The values `start <= value < end` of a partition column. Never empty."""

    start: SliceBound
    end: SliceBound

    def __post_init__(self) -> None:
        if type(self.start) is not type(self.end):
            raise TypeError(f"bounds of different types: {self.start!r}, {self.end!r}")
        if isinstance(self.start, dt.datetime) and self.start.tzinfo != dt.UTC:
            raise ValueError(f"timestamps must be UTC: {self.start!r}")
        if not self.start < self.end:  # type: ignore[operator]
            raise ValueError(f"empty or reversed slice: {self.start!r}, {self.end!r}")


@dataclass(frozen=True)
class Partition:
    """A unit of data that is replaced as a whole: its key and the values it covers."""

    key: str
    slice: Slice


def merge_slices(slices: Iterable[Slice]) -> tuple[Slice, ...]:
    """Merges slices into the fewest that cover the same values, ascending.

    Touching ones become one.
    """
    merged: list[Slice] = []
    for current in sorted(slices, key=lambda slice_: slice_.start):  # type: ignore[arg-type,return-value]
        if merged and current.start <= merged[-1].end:  # type: ignore[operator]
            end = max(merged[-1].end, current.end)  # type: ignore[type-var]
            merged[-1] = Slice(merged[-1].start, end)
        else:
            merged.append(current)
    return tuple(merged)


def widen_slices(
    slices: Iterable[Slice], *, before: dt.timedelta, after: dt.timedelta = _NOTHING
) -> tuple[Slice, ...]:
    """Widens the slices of a time column by `before` and `after`, and merges them.

    Each reaches back by `before` and on by `after`. Without either, they may be of any column.
    """
    if not before and not after:
        return merge_slices(slices)
    return merge_slices(Slice(slice_.start - before, slice_.end + after) for slice_ in slices)  # type: ignore[operator]


def build_predicate(column: str, slices: Iterable[Slice], grain: Grain | None = None) -> str:
    """Builds SQL that is true for exactly the rows in `slices`.

    Args:
        column: its name.
        slices: in any order.
        grain: as whose partition column it holds the values; None if it holds them as they are.

    Contiguous partitions become one comparison pair, the rest is joined by OR: thousands of
    literals in an `IN` list take Delta seconds to analyze, and `BETWEEN` on dates fails there.

    Raises:
        ValueError: if there is no slice. A predicate that selects nothing is never meant, and one
            that selects everything would be a disaster.
    """
    merged = merge_slices(slices)
    if not merged:
        raise ValueError("no partitions to select")
    write = grain.find_stored if grain else lambda bound: bound
    within = " OR ".join(
        f"(`{column}` >= {_literal(write(stretch.start))} AND "
        f"`{column}` < {_literal(write(stretch.end))})"
        for stretch in merged
    )
    known = grain.known_sql(column) if grain else ""
    return f"({within}) AND {known}" if known else within


def _literal(bound: SliceBound | str) -> str:
    if isinstance(bound, str):
        return f"'{bound}'"
    if isinstance(bound, dt.datetime):
        return f"TIMESTAMP'{bound:%Y-%m-%d %H:%M:%S.%f}Z'"
    if isinstance(bound, dt.date):
        return f"DATE'{bound.isoformat()}'"
    return str(bound)


def build_partitions(table: Table, keys: Iterable[str]) -> tuple[Partition, ...]:
    """Builds partitions of the table from their keys, ascending."""
    starts = sorted(map(table.grain.find_start, keys))
    return tuple(build_partition(table.grain, start) for start in starts)


def sort_partitions(partitions: Iterable[Partition]) -> tuple[Partition, ...]:
    """Sorts partitions by their first value, each once."""
    return tuple(sorted(set(partitions), key=lambda partition: partition.slice.start))  # type: ignore[arg-type,return-value]


def build_partition(grain: Grain, start: SliceBound) -> Partition:
    """Builds the partition that begins with `start`."""
    return Partition(grain.find_key(start), Slice(start, grain.find_end(start)))


def list_overlapping(table: Table, partition: Partition) -> list[Partition]:
    """Lists the partitions of a table that hold any value of another table's, ascending."""
    start, end = find_cover(table.grain, partition.slice.start, partition.slice.end)
    found: list[Partition] = []
    while start < end:  # type: ignore[operator]
        found.append(build_partition(table.grain, start))
        start = found[-1].slice.end
    return found


def find_folder(table: Table, partition: Partition) -> str:
    """Finds the folder that holds the partition: its value as the log has it.

    A table without partitions has none: all of it counts as a folder of its only key.
    """
    start = partition.slice.start
    if not table.folder_column:
        return WHOLE_KEY
    if table.folder_by is not None:
        assert isinstance(start, dt.datetime)
        return str(start.date())
    return str(table.grain.find_stored(start))


def find_partitions_in_folder(table: Table, folder: str) -> tuple[Partition, ...]:
    """Finds the partitions whose rows are in a folder, ascending."""
    if table.folder_by is None:
        return (build_partition(table.grain, table.grain.find_value(folder)),)
    midnight = _find_midnight(dt.date.fromisoformat(folder))
    found = [build_partition(table.grain, midnight)]
    while found[-1].slice.end < midnight + dt.timedelta(days=1):  # type: ignore[operator]
        found.append(build_partition(table.grain, found[-1].slice.end))
    return tuple(found)


def find_keys_in_folders(table: Table, folders: Iterable[str]) -> tuple[str, ...]:
    """Finds the keys of the partitions in folders, ascending.

    A folder whose value is none of the grain's, as another program may write it, has none.
    """
    keys: list[str] = []
    for folder in folders:
        with suppress(ValueError):
            keys += [partition.key for partition in find_partitions_in_folder(table, folder)]
    return tuple(sorted(keys))


def build_table_predicate(table: Table, slices: Iterable[Slice]) -> str:
    """Builds SQL that is true for exactly the table's rows in `slices`.

    It lets Delta skip other folders. Whole days of a table in daily folders are selected by
    their folders alone: Delta then replaces them without reading a row.

    Raises:
        ValueError: if there is no slice.
    """
    merged = merge_slices(slices)
    if table.folder_by is None:
        return build_folder_predicate(table, merged)
    days = [_cover_days(times) for times in merged]
    whole = all(
        (times.start, times.end) == (_find_midnight(cover.start), _find_midnight(cover.end))
        for times, cover in zip(merged, days, strict=True)
    )
    by_folder = build_predicate(table.folder_by, days)
    if whole:
        return by_folder
    return f"({by_folder}) AND ({build_predicate(table.partition_by, merged)})"


def build_folder_predicate(table: Table, slices: Iterable[Slice]) -> str:
    """Builds SQL over the folder column alone, true for every folder with rows in `slices`.

    Raises:
        ValueError: if there is no slice.
    """
    if table.folder_by is None:
        predicate = build_predicate(table.partition_by, slices, table.grain)
        return predicate if table.partition_by else EVERY_ROW
    return build_predicate(table.folder_by, map(_cover_days, slices))


def _cover_days(times: Slice) -> Slice:
    assert isinstance(times.start, dt.datetime)
    assert isinstance(times.end, dt.datetime)
    last = (times.end - dt.timedelta(microseconds=1)).date()
    return Slice(times.start.date(), last + dt.timedelta(days=1))


def _find_midnight(day: SliceBound) -> dt.datetime:
    assert isinstance(day, dt.date)
    return dt.datetime.combine(day, dt.time(), dt.UTC)
