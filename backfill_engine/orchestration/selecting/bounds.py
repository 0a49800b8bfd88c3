"""Ranges as dates, times or integers, half-open: which partitions they touch, of each table."""

import datetime as dt
from bisect import bisect_right
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from backfill_engine.errors import PartitionRangeError
from backfill_engine.grains.buckets import Buckets
from backfill_engine.grains.grain import SliceBound
from backfill_engine.lake.partitions import build_partitions
from backfill_engine.orchestration.instance.partition_definitions import find_partitions_def
from backfill_engine.rules.sql import INTEGERS
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


_EXAMPLES = {"DATE": "a date, as 2013-01-31", "TIMESTAMP": "a time, as 2013-01-31T18:00"}
_BIGGEST = 2**63


def is_of_partitions(tables: Iterable[Table], column: str) -> bool:
    """Tells whether a column decides the partition of all tables, so that it bounds partitions.

    Raises:
        PartitionRangeError: if it does of some of them, and of others it doesn't.
    """
    decides = {table.key: table.partition_by.lower() == column.lower() for table in tables}
    if len({*decides.values()}) > 1:
        own, others = (
            [key for key, found in decides.items() if found is so] for so in (True, False)
        )
        raise PartitionRangeError(
            f"--column {column} decides the partition of {', '.join(own)}, but not of "
            f"{', '.join(others)}: ask for these apart"
        )
    return all(decides.values())


def build_column_filter(tables: Iterable[Table], column: str, start: str, end: str) -> str:
    """Builds the row filter of the values from `start` on and before `end`.

    Args:
        tables: all have the column, of one type.
        column: its name, regardless of case.
        start: a date, a time (ISO 8601, UTC unless it says otherwise) or an integer, as the column
            is of.
        end: likewise; the first value that is no longer meant.

    Raises:
        PartitionRangeError: if a table has no such column, it is of a type that has no ranges or
            of several, a bound can't be read as that type, or the range is empty or reversed.
    """
    filters: dict[str, str] = {}
    for table in tables:
        filters.setdefault(_build_filter(table, column, start, end), table.key)
    if len(filters) > 1:
        raise PartitionRangeError(
            f"--column {column} is of another type in {' than in '.join(filters.values())}: ask "
            "for these apart"
        )
    return next(iter(filters))


def _build_filter(table: Table, column: str, start: str, end: str) -> str:
    found = next((one for one in table.columns if one.name.lower() == column.lower()), None)
    bounded = [one.name for one in table.columns if _find_reader(one.type) is not None]
    if found is None:
        raise PartitionRangeError(
            f"--column {column}: {table.key} has none of that name: choose of {', '.join(bounded)}"
        )
    read = _find_reader(found.type)
    if read is None:
        raise PartitionRangeError(
            f"--column {column}: it is {found.type} in {table.key}, which has no ranges: choose a "
            f"date, a time or an integer of {', '.join(bounded)}"
        )
    bounds = []
    for text in (start, end):
        try:
            bounds.append(read(text))
        except (ValueError, OverflowError):
            raise PartitionRangeError(
                f"{text}: the values of {found.name} in {table.key} are {found.type}: give "
                f"{_EXAMPLES.get(found.type, 'an integer of 64 bits')}"
            ) from None
    begin, stop = bounds
    if not begin < stop:
        raise PartitionRangeError(describe_empty(start, end))
    return f"`{found.name}` >= {_write(begin)} AND `{found.name}` < {_write(stop)}"


def _find_reader(column_type: str) -> Callable[[str], dt.date | int] | None:
    """Finds what reads bounds of a type; None for a type without ranges."""
    if column_type in INTEGERS:
        return _read_integer
    return {"DATE": dt.date.fromisoformat, "TIMESTAMP": read_moment}.get(column_type)


def _read_integer(text: str) -> int:
    value = int(text)
    if not -_BIGGEST <= value < _BIGGEST:
        raise ValueError(text)
    return value


def _write(bound: dt.date | int) -> str:
    match bound:
        case dt.datetime():
            return f"TIMESTAMP '{bound.isoformat(' ').replace('+00:00', 'Z')}'"
        case dt.date():
            return f"DATE '{bound.isoformat()}'"
    return str(bound)
