"""Ranges of values of a column that isn't the partition's: which rows count, as a row filter."""

import datetime as dt
from collections.abc import Callable, Iterable

from backfill_engine.errors import PartitionRangeError
from backfill_engine.orchestration.selecting.bounds import describe_empty, read_moment
from backfill_engine.rules.sql import INTEGERS
from backfill_engine.tables.declarations import Table

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
