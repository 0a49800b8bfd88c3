"""Partitions of a table: from keys to slices, to folders, and to the predicate that selects them.

A table's grain says what a partition is; its folders may be coarser, as of hours in daily folders.
"""

import datetime as dt
from collections.abc import Iterable
from contextlib import suppress

from backfill_engine.grains.grain import Grain, SliceBound
from backfill_engine.lake.slices import Partition, Slice, build_predicate, merge_slices
from backfill_engine.tables.declarations import Table


def build_partitions(table: Table, keys: Iterable[str]) -> tuple[Partition, ...]:
    """Builds partitions of the table from their keys, ascending."""
    starts = sorted(map(table.grain.find_start, keys))
    return tuple(build_partition(table.grain, start) for start in starts)


def build_partition(grain: Grain, start: SliceBound) -> Partition:
    """Builds the partition that begins with `start`."""
    return Partition(grain.find_key(start), Slice(start, grain.find_end(start)))


def find_folder(table: Table, partition: Partition) -> str:
    """Finds the folder that holds the partition: its value as the log has it."""
    start = partition.slice.start
    if table.folder_by is not None:
        assert isinstance(start, dt.datetime)
        return str(start.date())
    return str(start)


def find_partitions_in_folder(table: Table, folder: str) -> tuple[Partition, ...]:
    """Finds the partitions whose rows are in a folder, ascending."""
    if table.folder_by is None:
        return (build_partition(table.grain, table.grain.find_start(folder)),)
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
        return build_predicate(table.partition_by, merged)
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
        return build_predicate(table.partition_by, slices)
    return build_predicate(table.folder_by, map(_cover_days, slices))


def _cover_days(times: Slice) -> Slice:
    assert isinstance(times.start, dt.datetime)
    assert isinstance(times.end, dt.datetime)
    last = (times.end - dt.timedelta(microseconds=1)).date()
    return Slice(times.start.date(), last + dt.timedelta(days=1))


def _find_midnight(day: SliceBound) -> dt.datetime:
    assert isinstance(day, dt.date)
    return dt.datetime.combine(day, dt.time(), dt.UTC)
