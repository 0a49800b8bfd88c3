"""Estimates go through what earlier steps took."""

import datetime as dt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backfill_engine.orchestration.planning.estimates import (
    Estimate,
    add_estimates,
    estimate_seconds,
)
from backfill_engine.orchestration.planning.outcomes import Outcome


def took(partitions: int, seconds: float, *, chunks: int = 1) -> Outcome:
    began = dt.datetime(2013, 1, 1, tzinfo=dt.UTC)
    return Outcome("raw/flights", "run", began, seconds, partitions, 0, 0, 0, 0, 0, chunks)


@given(base=st.integers(1, 60), each=st.integers(0, 5), wanted=st.integers(1, 400))
def test_steps_on_a_line_are_estimated_by_it(base: int, each: int, wanted: int) -> None:
    steps = [took(count, base + each * count) for count in (1, 7, 31, 365)]
    found = estimate_seconds(steps, [wanted, 2])
    assert found is not None
    expected = pytest.approx(2 * base + each * (wanted + 2), rel=1e-6)
    assert (found.seconds, found.low, found.high) == (expected, expected, expected)
    assert found.off_by == pytest.approx(1)


def test_chunks_cost_what_those_of_earlier_steps_did() -> None:
    whole = [took(count, 5 + 0.1 * count) for count in (1, 31, 365)]
    chunked = [took(365, 5 + 1.5 * 11 + 36.5, chunks=12), took(31, 5 + 1.5 * 3 + 3.1, chunks=4)]
    by_months = estimate_seconds([*whole, *chunked], [365], chunks=12)
    at_once = estimate_seconds([*whole, *chunked], [365], chunks=1)
    unknown = estimate_seconds(whole, [365], chunks=12)
    assert by_months and at_once and unknown
    assert by_months.seconds == pytest.approx(5 + 1.5 * 11 + 36.5)
    assert (at_once.seconds, unknown.seconds) == pytest.approx((41.5, 41.5))
    assert by_months.off_by == pytest.approx(1)


def test_one_step_is_all_that_is_known() -> None:
    found = estimate_seconds([took(31, 20.0), took(0, 1.0)], [365])
    assert found is not None
    assert (found.seconds, found.steps) == (20.0, 1)
    assert estimate_seconds([took(0, 1.0)], [3]) is None


def test_what_was_foretold_and_came_otherwise_says_how_good_the_next_estimate_is() -> None:
    found = estimate_seconds([took(10, 10.0)], [10], [0.5, 1.0, 2.0, 4.0])
    assert found is not None
    assert (found.seconds, found.foretold) == (10.0, 4)
    assert found.off_by == pytest.approx(2.0)


def test_steps_that_vary_say_by_how_much() -> None:
    found = estimate_seconds([took(10, seconds) for seconds in (8.0, 10.0, 12.0)], [10])
    assert found is not None
    assert (found.low, found.seconds, found.high) == pytest.approx((8, 10, 12))
    assert found.off_by == pytest.approx(1.2)


ESTIMATES = st.builds(
    lambda seconds, less, more, off_by: Estimate(
        seconds, seconds * less, seconds * more, 5, off_by
    ),
    st.floats(0.1, 1e4),
    st.floats(0.1, 1),
    st.floats(1, 10),
    st.floats(1, 10),
)


@given(
    tables=st.lists(st.tuples(ESTIMATES, st.floats(-1, 1)), min_size=1, max_size=6),
    level=st.floats(0, 1),
)
def test_a_total_is_off_by_no_more_than_it_says(
    tables: list[tuple[Estimate, float]], level: float
) -> None:
    total = add_estimates([one for one, _ in tables])
    assert total is not None
    together = sum(one.low + level * (one.high - one.low) for one, _ in tables)
    assert total.low <= together * (1 + 1e-9)
    assert together <= total.high * (1 + 1e-9)
    took = sum(one.seconds * one.off_by**share for one, share in tables)
    ratio = took / total.seconds
    assert max(ratio, 1 / ratio) <= total.off_by * (1 + 1e-9)


def test_a_total_is_known_if_all_of_it_is() -> None:
    first, second = Estimate(30.0, 20, 60, 4, 1.0), Estimate(10.0, 8, 11, 3, 2.0, foretold=2)
    assert add_estimates([first, second]) == Estimate(40.0, 28, 71, 7, 1.25, 2)
    assert add_estimates([first]) == first
    assert add_estimates([first, None]) is None
    assert add_estimates([]) is None
    nothing = Estimate(0.0, 0, 0, 3, 1.0)
    assert add_estimates([nothing, nothing]) == Estimate(0.0, 0, 0, 6, 1.0)
