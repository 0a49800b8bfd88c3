"""Slices are sets of values: whatever is done to them, the set is what counts."""

import datetime as dt
import itertools
import random
from collections.abc import Callable, Iterable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backfill_engine.lake.partitions import (
    Slice,
    SliceBound,
    build_predicate,
    merge_slices,
    widen_slices,
)

# Slices are drawn on a small grid, so that they overlap, touch and miss each other often.
Bound = Callable[[int], SliceBound]
GRID = range(-5, 45)
BEGIN = dt.datetime(2013, 1, 1, tzinfo=dt.UTC)
BOUNDS: dict[str, Bound] = {
    "integers": lambda n: n,
    "dates": lambda n: BEGIN.date() + dt.timedelta(days=n),
    "timestamps": lambda n: BEGIN + dt.timedelta(hours=n),
}
spans = st.lists(
    st.tuples(st.integers(0, 30), st.integers(1, 9)).map(lambda drawn: (drawn[0], sum(drawn))),
    max_size=12,
)
each_type = pytest.mark.parametrize("bound", BOUNDS.values(), ids=BOUNDS)


def build_slices(bound: Bound, spans: Iterable[tuple[int, int]]) -> list[Slice]:
    return [Slice(bound(start), bound(end)) for start, end in spans]


def find_covered(bound: Bound, slices: Sequence[Slice]) -> set[int]:
    return {n for n in GRID if any(part.start <= bound(n) < part.end for part in slices)}  # type: ignore[operator]


@each_type
@given(spans=spans)
def test_merge_covers_exactly_the_same_values(bound: Bound, spans: list[tuple[int, int]]) -> None:
    slices = build_slices(bound, spans)
    assert find_covered(bound, merge_slices(slices)) == find_covered(bound, slices)


@each_type
@given(spans=spans)
def test_merged_slices_ascend_and_neither_overlap_nor_touch(
    bound: Bound, spans: list[tuple[int, int]]
) -> None:
    merged = merge_slices(build_slices(bound, spans))
    assert all(left.end < right.start for left, right in itertools.pairwise(merged))  # type: ignore[operator]


@each_type
@given(spans=spans, source=st.randoms(use_true_random=False))
def test_merge_is_idempotent_and_ignores_order(
    bound: Bound,
    spans: list[tuple[int, int]],
    source: random.Random,
) -> None:
    slices = build_slices(bound, spans)
    merged = merge_slices(slices)
    assert merge_slices(merged) == merged
    source.shuffle(slices)
    assert merge_slices(slices) == merged


@given(spans=spans, days=st.integers(0, 5))
def test_widen_reaches_back_from_every_slice(spans: list[tuple[int, int]], days: int) -> None:
    bound = BOUNDS["dates"]
    widened = widen_slices(build_slices(bound, spans), before=dt.timedelta(days=days))
    wanted = {n for start, end in spans for n in range(start - days, end)}
    assert find_covered(bound, widened) == wanted
    assert merge_slices(widened) == widened


def test_predicate_of_contiguous_days_is_one_comparison_pair() -> None:
    days = build_slices(BOUNDS["dates"], [(n, n + 1) for n in range(365)])
    assert build_predicate("day", days) == (
        "(`day` >= DATE'2013-01-01' AND `day` < DATE'2014-01-01')"
    )


def test_predicate_joins_separate_slices_by_or() -> None:
    slices = build_slices(BOUNDS["integers"], [(7, 9), (1, 2)])
    assert build_predicate("id", slices) == ("(`id` >= 1 AND `id` < 2) OR (`id` >= 7 AND `id` < 9)")


def test_predicate_writes_timestamps_to_the_microsecond_and_in_utc() -> None:
    moment = dt.datetime(2013, 7, 1, 4, 5, 6, 7, tzinfo=dt.UTC)
    assert build_predicate("at", [Slice(moment, moment + dt.timedelta(hours=1))]) == (
        "(`at` >= TIMESTAMP'2013-07-01 04:05:06.000007Z'"
        " AND `at` < TIMESTAMP'2013-07-01 05:05:06.000007Z')"
    )


@each_type
@pytest.mark.parametrize("end", [3, 2], ids=["empty", "reversed"])
def test_slice_without_values_is_refused(bound: Bound, end: int) -> None:
    with pytest.raises(ValueError, match="empty or reversed"):
        Slice(bound(3), bound(end))


@pytest.mark.parametrize("zone", [None, dt.timezone(dt.timedelta(hours=1))])
def test_timestamps_that_are_not_utc_are_refused(zone: dt.tzinfo | None) -> None:
    start = dt.datetime(2013, 1, 1, tzinfo=zone)
    with pytest.raises(ValueError, match="UTC"):
        Slice(start, start + dt.timedelta(hours=1))


def test_bounds_of_different_types_are_refused() -> None:
    with pytest.raises(TypeError, match="different types"):
        Slice(dt.date(2013, 1, 1), BEGIN + dt.timedelta(days=1))
