"""Ranges as dates, times or integers, half-open: which partitions they touch, of each table."""

import datetime as dt
from bisect import bisect_right
from dataclasses import dataclass

from backfill_engine.errors import PartitionRangeError
from backfill_engine.grains.buckets import Buckets
from backfill_engine.grains.grain import SliceBound
from backfill_engine.lake.partitions import build_partitions
from backfill_engine.orchestration.instance.partition_definitions import find_partitions_def
from backfill_engine.tables.declarations import Table


@dataclass(frozen=True)
class TouchedPartitions:
    """The partitions of a table that a range touches.

    Attributes:
        first: key of the first.
        last: key of the last, included.
        snapped: which bounds cut a partition, so that all of it is taken, in words; empty if none.
    """

    first: str
    last: str
    snapped: str = ""


def find_touched_partitions(
    table: Table, start: str, end: str, *, strict: bool = False
) -> TouchedPartitions:
    """Finds the partitions with values from `start` on and before `end`.

    A bound inside a partition takes all of it.

    Args:
        table: has the partitions.
        start: a date, a time (ISO 8601, UTC unless it says otherwise) or an integer, as the table's
            partitions are of.
        end: likewise.
        strict: refuse bounds inside a partition.

    Raises:
        PartitionRangeError: if a bound can't be read, the range is empty or reversed, it touches no
            partition, or a bound cuts one and must not.
    """
    begin, stop = _read_bound(table, start), _read_bound(table, end)
    if not begin < stop:  # type: ignore[operator]
        raise PartitionRangeError(describe_empty(start, end))
    partitions = build_partitions(table, find_partitions_def(table).get_partition_keys())
    moments = [_as_moment(partition.slice.start) for partition in partitions]
    at = max(0, bisect_right(moments, begin) - 1)  # type: ignore[type-var]
    touched = [
        partition
        for partition in partitions[at:]
        if _as_moment(partition.slice.start) < stop and _as_moment(partition.slice.end) > begin  # type: ignore[operator]
    ]
    if not touched:
        known = f"{partitions[0].key} to {partitions[-1].key}" if partitions else "none yet"
        raise PartitionRangeError(
            f"no partition of {table.key} has values from {start} on and before {end}: there are "
            f"{known}"
        )
    first, last = touched[0], touched[-1]
    cut = [
        f"{name} {bound} lies in {partition.key}"
        for name, bound, value, partition in (
            ("--start", start, begin, first),
            ("--end", end, stop, last),
        )
        if _as_moment(partition.slice.start) < value < _as_moment(partition.slice.end)  # type: ignore[operator]
    ]
    snapped = f"{table.key}: {' and '.join(cut)}, which is taken whole" if cut else ""
    if snapped and strict:
        raise PartitionRangeError(f"{snapped.replace('is taken', 'would be taken')}: --strict")
    return TouchedPartitions(first.key, last.key, snapped)


def _read_bound(table: Table, text: str) -> SliceBound:
    is_integer = isinstance(table.grain, Buckets)
    try:
        if is_integer:
            return int(text)
        return read_moment(text)
    except (ValueError, OverflowError):
        wanted = "an integer" if is_integer else "a date or a time, as 2013-01-31 or 2013-01-31T18"
        raise PartitionRangeError(
            f"{text}: the partitions of {table.key} are {table.grain}: give {wanted}"
        ) from None


def read_moment(text: str) -> dt.datetime:
    """Reads a date or a time in ISO 8601, UTC unless it says otherwise.

    Raises:
        ValueError: if it is none.
        OverflowError: if it is before the year 1 or after 9999, UTC.
    """
    found = dt.datetime.fromisoformat(text)
    return (found if found.tzinfo else found.replace(tzinfo=dt.UTC)).astimezone(dt.UTC)


def describe_empty(start: str, end: str) -> str:
    """Says why nothing lies between two bounds, of which the second isn't after the first."""
    return (
        f"--start {start} --end {end}: that is empty; the end is the first value that is no longer "
        "meant"
    )


def _as_moment(bound: SliceBound) -> SliceBound:
    if isinstance(bound, dt.date) and not isinstance(bound, dt.datetime):
        return dt.datetime.combine(bound, dt.time(), dt.UTC)
    return bound
