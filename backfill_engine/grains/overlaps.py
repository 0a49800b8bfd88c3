"""Partitions of a grain that hold any value of another grain's: of time, or of integers."""

import datetime as dt
from typing import Any

from backfill_engine.grains.dates import DateGrain
from backfill_engine.grains.grain import Grain, SliceBound
from backfill_engine.grains.names import Pairs, is_pair

_SAMPLE = dt.datetime(2000, 1, 1, tzinfo=dt.UTC)
_ENOUGH = 60
"""Partitions in a row: if each is made of whole ones of another grain, all are."""


def find_moment(bound: SliceBound) -> Any:
    """Finds the moment at which a day begins, UTC, also that of a pair; an integer stays."""
    if is_pair(bound):
        bound = bound.day
    if isinstance(bound, dt.date) and not isinstance(bound, dt.datetime):
        return dt.datetime.combine(bound, dt.time(), dt.UTC)
    return bound


def are_comparable(grain: Grain, other: Grain) -> bool:
    """Tells whether both grains are of time, or both of integers, or of no column at all.

    Names are comparable with the same names only, pairs with their own days, and days of a time
    zone with days of the same.
    """
    if isinstance(grain, Pairs) and isinstance(other, DateGrain):
        return grain.times.slug == other.slug
    if isinstance(other, Pairs) and isinstance(grain, DateGrain):
        return grain.slug == other.times.slug
    if grain.is_named or other.is_named:
        return grain == other
    if grain.time_zone != other.time_zone:
        return False
    is_alike = bool(grain.cron) == bool(other.cron)
    return is_alike and bool(grain.column_types) == bool(other.column_types)


def find_cover(grain: Grain, start: SliceBound, end: SliceBound) -> tuple[SliceBound, SliceBound]:
    """Finds what the partitions of a grain cover that hold any value from `start` on before `end`.

    Args:
        grain: comparable with the one that the bounds are of.
        start: a date, a moment (UTC) or an integer, whatever the grain's own values are.
        end: the first value that is no longer meant.

    Returns:
        Their first value, and the first after them, as values of the grain.
    """
    if isinstance(grain, Pairs):
        return (start, end) if is_pair(start) else grain.find_all(start, end)  # type: ignore[arg-type]
    if is_pair(end):
        # Of the names of its last day some or all are meant: each is a row's of that day.
        end = grain.find_end(end.day) if end.place else end.day
    first, last = _convert(grain, start), _convert(grain, end, before=True)
    return grain.find_first(first), grain.find_end(grain.find_first(last))


def find_before(grain: Grain, start: SliceBound) -> SliceBound:
    """Finds the start of the partition before the one that begins with `start`."""
    return grain.find_first(_convert(grain, start, before=True))


def holds_whole(outer: Grain, inner: Grain) -> bool:
    """Tells whether each partition of `inner` lies in a single partition of `outer`."""
    if outer.is_named or inner.is_named:
        return are_comparable(outer, inner) and (outer == inner or isinstance(inner, Pairs))
    start = outer.find_first(_convert(outer, _SAMPLE if outer.cron else 0))
    for _ in range(_ENOUGH if are_comparable(outer, inner) else 0):
        end = outer.find_end(start)
        if tuple(map(find_moment, find_cover(inner, start, end))) != (
            find_moment(start),
            find_moment(end),
        ):
            return False
        start = end
    return are_comparable(outer, inner)


def _convert(grain: Grain, bound: SliceBound, *, before: bool = False) -> SliceBound:
    """Finds the grain's value at a bound, or the last one before it."""
    if isinstance(bound, int):
        return bound - before
    moment = find_moment(bound)
    if before:
        moment -= dt.timedelta(microseconds=1)
    return moment if grain.bound_type == "TIMESTAMP" else moment.date()
