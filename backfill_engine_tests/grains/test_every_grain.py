"""What holds for every grain: each value is in one partition, and its names say the same of it."""

import datetime as dt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backfill_engine.grains.buckets import Buckets
from backfill_engine.grains.dates import DAYS, MONTHS, QUARTERS, WEEKS, YEARS, Days
from backfill_engine.grains.grain import Grain, SliceBound
from backfill_engine.grains.timestamps import HOURS, Minutes
from backfill_engine.grains.whole import WHOLE, WHOLE_KEY
from backfill_engine_tests.grains.drawing import DAY, STARTS, Spread, draw_spread

each_grain_of_time = pytest.mark.parametrize("grain", STARTS, ids=str)
spreads = draw_spread()


@given(spread=spreads)
def test_key_and_start_name_each_other(spread: Spread) -> None:
    grain, starts = spread
    for start in starts:
        key = grain.find_key(start)
        assert grain.find_start(key) == start
        assert grain.find_key(grain.find_start(key)) == key


@given(spread=spreads)
def test_keys_sort_as_starts_do(spread: Spread) -> None:
    grain, starts = spread
    ascending = [grain.find_key(start) for start in sorted(starts)]  # type: ignore[type-var]
    assert ascending == sorted(ascending)


@given(spread=spreads)
def test_partitions_touch_and_are_numbered_one_by_one(spread: Spread) -> None:
    grain, starts = spread
    for start in starts:
        end = grain.find_end(start)
        assert grain.find_start(grain.find_key(end)) == end
        assert grain.find_number(end) == grain.find_number(start) + 1


@given(spread=spreads)
def test_numbers_sort_as_starts_do(spread: Spread) -> None:
    grain, starts = spread
    ascending = sorted(starts)  # type: ignore[type-var]
    assert ascending == sorted(starts, key=grain.find_number)


def draw_inside(start: SliceBound, end: SliceBound) -> st.SearchStrategy[SliceBound]:
    if isinstance(start, int):
        return st.integers(start, end - 1)  # type: ignore[operator]
    step = dt.timedelta(microseconds=1) if isinstance(start, dt.datetime) else DAY
    return st.integers(0, (end - start) // step - 1).map(lambda steps: start + steps * step)  # type: ignore[operator]


@given(spread=spreads)
def test_stored_values_sort_as_starts_do_and_name_them(spread: Spread) -> None:
    grain, starts = spread
    stored = [grain.find_stored(start) for start in sorted(starts)]  # type: ignore[type-var]
    assert stored == sorted(stored)  # type: ignore[type-var]
    if not grain.in_daily_folders:  # A folder is a day then.
        assert [grain.find_value(str(text)) for text in stored] == sorted(starts)  # type: ignore[type-var]


@given(spread=spreads, data=st.data())
def test_value_has_the_number_of_the_partition_that_holds_it(
    spread: Spread, data: st.DataObject
) -> None:
    grain, starts = spread
    for start in starts:
        value = data.draw(draw_inside(start, grain.find_end(start)))
        assert grain.find_number(value) == grain.find_number(start)


@each_grain_of_time
@given(data=st.data())
def test_partition_lands_in_a_folder_of_its_own_in_the_folder_of_its_month(
    grain: Grain, data: st.DataObject
) -> None:
    start = data.draw(STARTS[grain])
    folder = grain.find_landing_folder(start)
    assert folder.split("/")[:2] == [f"year={start:%Y}", f"month={start:%m}"]
    found = dt.datetime.strptime(folder, grain.landing_format).replace(tzinfo=dt.UTC)
    assert (found if isinstance(start, dt.datetime) else found.date()) == start


@each_grain_of_time
@given(data=st.data())
def test_partition_is_over_from_the_first_day_on_of_which_it_holds_nothing(
    grain: Grain, data: st.DataObject
) -> None:
    start = data.draw(STARTS[grain])
    end = grain.find_end(start)
    at = end if isinstance(end, dt.datetime) else dt.datetime.combine(end, dt.time(), dt.UTC)
    last_day = (at - dt.timedelta(microseconds=1)).date()
    assert grain.is_over(start, last_day + DAY)
    assert not grain.is_over(start, last_day)


def test_names_that_tables_and_jobs_are_stored_with_stay() -> None:
    in_time = (DAYS, WEEKS, MONTHS, QUARTERS, YEARS, Days("%Y%m%d", type="INT"), HOURS, Minutes(15))
    grains = (*in_time, Buckets(100_000, 10_000_000), WHOLE)
    assert [(str(grain), grain.slug) for grain in grains] == [
        ("days", "days"),
        ("weeks", "weeks"),
        ("months", "months"),
        ("quarters", "quarters"),
        ("years", "years"),
        ("days as %Y%m%d", "days"),
        ("hours", "hours"),
        ("15 minutes", "15_minutes"),
        ("buckets of 100000", "buckets_100000_10000000"),
        ("whole tables", "whole"),
    ]
    assert WHOLE.list_keys() == [WHOLE_KEY] == ["whole"]
