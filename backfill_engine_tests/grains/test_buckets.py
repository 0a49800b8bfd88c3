"""Buckets of integers."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backfill_engine.grains.buckets import Buckets, require_buckets
from backfill_engine.grains.dates import DAYS
from backfill_engine_tests.grains.drawing import (
    build_chain,
    count_holding,
    draw_buckets,
    draw_starts,
)


@given(wide=draw_buckets(), other=st.data())
def test_keys_of_one_space_sort_as_numbers_whatever_the_step(
    wide: Buckets, other: st.DataObject
) -> None:
    narrow = Buckets(max(1, wide.step // 2 + 1, -(-wide.space // 100_000)), wide.space)
    keys = {
        grain.find_key(start)
        for grain in (wide, narrow)
        for start in other.draw(st.lists(draw_starts(grain)))
    }
    assert [int(key) for key in sorted(keys)] == sorted(int(key) for key in keys)


@given(grain=draw_buckets(), other=st.data())
def test_integer_is_in_the_bucket_that_is_found_and_in_no_other(
    grain: Buckets, other: st.DataObject
) -> None:
    value = other.draw(st.integers(0, grain.space - 1))
    start = value // grain.step * grain.step
    assert start <= value < grain.find_end(start)
    assert start == grain.find_number(value) * grain.step
    assert count_holding(build_chain(grain, max(0, start - 2 * grain.step), 5), value) == 1


@given(grain=draw_buckets(most=300))
def test_keys_cover_the_space_without_gaps(grain: Buckets) -> None:
    keys = grain.list_keys()
    starts = [grain.find_start(key) for key in keys]
    assert starts == build_chain(grain, 0, grain.count - 1)
    assert starts[-1] < grain.space <= grain.find_end(starts[-1])
    assert {len(key) for key in keys} == {max(7, len(str(grain.space - 1)))}


def test_keys_are_padded_to_seven_digits_and_to_the_width_of_the_space() -> None:
    assert Buckets(4, 10).list_keys() == ["0000000", "0000004", "0000008"]
    assert Buckets(10**8, 2 * 10**8).list_keys() == ["000000000", "100000000"]
    assert Buckets(5 * 10**7, 10**8).list_keys() == ["00000000", "50000000"]


@pytest.mark.parametrize(("step", "space"), [(0, 10), (-1, 10), (10, 0), (10, -1)])
def test_buckets_of_nothing_are_refused(step: int, space: int) -> None:
    with pytest.raises(ValueError, match=f"step of {step} over a key space of {space} is no"):
        Buckets(step, space)


@given(space=st.integers(100_001, 10**18), other=st.data())
def test_too_many_buckets_are_refused_with_the_least_step_that_works(
    space: int, other: st.DataObject
) -> None:
    step = other.draw(st.integers(1, (space - 1) // 100_000))
    with pytest.raises(ValueError, match="choose a step of") as caught:
        Buckets(step, space)
    named = re.search(r"choose a step of (\d+) or more$", str(caught.value))
    assert named is not None
    assert Buckets(int(named[1]), space).count <= 100_000
    with pytest.raises(ValueError, match="choose a step of"):
        Buckets(int(named[1]) - 1, space)


def test_as_many_buckets_as_dagster_takes_are_not_refused() -> None:
    assert Buckets(1, 100_000).count == 100_000
    with pytest.raises(ValueError, match="makes 100,001 partitions: choose a step of 2 or more"):
        Buckets(1, 100_001)


def test_buckets_are_all_alike() -> None:
    buckets = Buckets(5, 50)
    assert buckets.find_peer_group(0) == buckets.find_peer_group(45)


def test_what_takes_integer_keys_refuses_another_grain() -> None:
    assert require_buckets(Buckets(5, 50), "raw/orders") == Buckets(5, 50)
    with pytest.raises(ValueError, match="raw/orders must be in buckets of its keys, and not in d"):
        require_buckets(DAYS, "raw/orders")


def test_buckets_have_no_folders_to_land_in() -> None:
    with pytest.raises(ValueError, match="buckets of 5 have no folders to land in"):
        Buckets(5, 50).find_landing_folder(5)
