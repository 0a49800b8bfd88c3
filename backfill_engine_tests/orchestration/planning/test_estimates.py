"""Estimates go through what earlier steps took."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backfill_engine.orchestration.planning.planning import estimate_seconds


@given(base=st.integers(1, 60), each=st.integers(0, 5), wanted=st.integers(1, 400))
def test_steps_on_a_line_are_estimated_by_it(base: int, each: int, wanted: int) -> None:
    steps = [(base + each * count, count) for count in (1, 7, 31, 365)]
    expected = 2 * base + each * (wanted + 2)
    assert estimate_seconds(steps, 2, wanted + 2) == pytest.approx(expected, rel=1e-6, abs=1e-6)


def test_steps_like_the_one_to_come_took_as_long() -> None:
    assert estimate_seconds([(20.0, 31)], 1, 31) == pytest.approx(20.0)
    assert estimate_seconds([(20.0, 31), (22.0, 31)], 1, 31) == pytest.approx(21.0)


def test_nothing_costs_less_than_nothing() -> None:
    """Of steps that were faster the more they did, each partition costs nothing."""
    found = estimate_seconds([(30.0, 1), (10.0, 31)], 1, 365)
    assert found is not None
    assert 0 < found <= 31


def test_without_an_earlier_step_nobody_knows() -> None:
    assert estimate_seconds([], 1, 3) is None
