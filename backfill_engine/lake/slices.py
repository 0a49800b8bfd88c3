"""Half-open intervals of a partition column, and the predicates that select exactly them.

Pure arithmetic: dates, UTC timestamps or integers; no Spark, no Delta, no Dagster.
"""

import datetime as dt
from collections.abc import Iterable
from dataclasses import dataclass

from backfill_engine.grains.grain import SliceBound

_NOTHING = dt.timedelta()


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


def build_predicate(column: str, slices: Iterable[Slice]) -> str:
    """Builds SQL that is true for exactly the rows in `slices`.

    Contiguous partitions become one comparison pair, the rest is joined by OR: thousands of
    literals in an `IN` list take Delta seconds to analyze, and `BETWEEN` on dates fails there.

    Raises:
        ValueError: if there is no slice. A predicate that selects nothing is never meant, and one
            that selects everything would be a disaster.
    """
    merged = merge_slices(slices)
    if not merged:
        raise ValueError("no partitions to select")
    return " OR ".join(
        f"(`{column}` >= {_literal(stretch.start)} AND `{column}` < {_literal(stretch.end)})"
        for stretch in merged
    )


def _literal(bound: SliceBound) -> str:
    if isinstance(bound, dt.datetime):
        return f"TIMESTAMP'{bound:%Y-%m-%d %H:%M:%S.%f}Z'"
    if isinstance(bound, dt.date):
        return f"DATE'{bound.isoformat()}'"
    return str(bound)
