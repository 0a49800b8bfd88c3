"""Grains: each value is in one partition, and keys, starts and numbers say the same of it."""

import datetime as dt
import itertools
import re
from zoneinfo import ZoneInfo

import pytest
from dagster import DailyPartitionsDefinition, HourlyPartitionsDefinition
from hypothesis import given
from hypothesis import strategies as st

from backfill_assets.tables.declarations import Column, Table, required
from backfill_assets.tables.grains import DAYS, HOURS, Buckets, Grain, SliceBound

NEW_YORK = ZoneInfo("America/New_York")
DAY = dt.timedelta(days=1)
Spread = tuple[Grain, list[SliceBound]]


@st.composite
def draw_buckets(draw: st.DrawFn, most: int = 100_000) -> Buckets:
    step, count = draw(st.integers(1, 10**12)), draw(st.integers(1, most))
    return Buckets(step, step * (count - 1) + draw(st.integers(1, step)))


days = st.dates(dt.date(1900, 1, 1), dt.date(2100, 12, 31))
hours = st.integers(-600_000, 1_100_000).map(
    lambda number: dt.datetime(1970, 1, 1, tzinfo=dt.UTC) + number * dt.timedelta(hours=1)
)


def draw_starts(grain: Grain) -> st.SearchStrategy[SliceBound]:
    if grain == DAYS:
        return days
    if grain == HOURS:
        return hours
    assert isinstance(grain, Buckets)
    return st.integers(0, grain.count - 1).map(lambda number: number * grain.step)


@st.composite
def draw_spread(draw: st.DrawFn) -> Spread:
    """A grain, and starts of some of its partitions."""
    grain = draw(st.sampled_from([DAYS, HOURS]) | draw_buckets())
    return grain, draw(st.lists(draw_starts(grain), min_size=1, max_size=8))


spreads = draw_spread()


def build_chain(grain: Grain, first: SliceBound, count: int) -> list[SliceBound]:
    """The starts of consecutive partitions, and the end of the last."""
    return list(
        itertools.accumulate(range(count), lambda start, _: grain.find_end(start), initial=first)
    )


def count_holding(starts: list[SliceBound], value: SliceBound) -> int:
    return sum(start <= value < end for start, end in itertools.pairwise(starts))  # type: ignore[operator]


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


def test_numbers_count_from_1970_and_from_zero() -> None:
    assert DAYS.find_number(dt.date(1970, 1, 1)) == 0
    assert DAYS.find_number(dt.date(2013, 1, 1)) == 15_706
    assert HOURS.find_number(dt.datetime(1969, 12, 31, 23, tzinfo=dt.UTC)) == -1
    assert HOURS.find_number(dt.datetime(2013, 1, 1, 5, tzinfo=dt.UTC)) == 15_706 * 24 + 5
    assert Buckets(250, 1000).find_number(750) == 3


@given(grain=draw_buckets(), other=st.data())
def test_integer_is_in_the_bucket_that_is_found_and_in_no_other(
    grain: Buckets, other: st.DataObject
) -> None:
    value = other.draw(st.integers(0, grain.space - 1))
    start = grain.find_bucket(value)
    assert start <= value < grain.find_end(start)
    assert start == grain.find_number(value) * grain.step
    assert count_holding(build_chain(grain, max(0, start - 2 * grain.step), 5), value) == 1


@pytest.mark.parametrize("first", ["2011-12-30", "2012-02-27", "2013-02-27", "2100-02-26"])
def test_date_is_in_one_day(first: str) -> None:
    starts = build_chain(DAYS, DAYS.find_start(first), 8)
    assert starts == [dt.date.fromisoformat(first) + n * DAY for n in range(9)]
    assert all(count_holding(starts, start) == 1 for start in starts[:-1])


@pytest.mark.parametrize("shift", ["2012-12-31", "2013-03-10", "2013-11-03"])
@given(other=st.data())
def test_moment_is_in_one_hour_whatever_the_clocks_of_new_york_do(
    shift: str, other: st.DataObject
) -> None:
    midnight = dt.datetime.fromisoformat(shift)
    local = other.draw(st.datetimes(midnight, midnight + DAY, timezones=st.just(NEW_YORK)))
    starts = build_chain(HOURS, (midnight - DAY).replace(tzinfo=dt.UTC), 96)
    assert count_holding(starts, local.astimezone(dt.UTC)) == 1


@pytest.mark.parametrize(
    ("first", "end"),
    [("2012-01-01", "2013-04-02"), ("2013-01-01", "2014-01-01"), ("1899-12-01", "1900-03-03")],
)
def test_days_are_called_as_dagster_calls_them(first: str, end: str) -> None:
    theirs = DailyPartitionsDefinition(first, end_date=end).get_partition_keys()
    starts = build_chain(DAYS, DAYS.find_start(first), len(theirs))
    assert [DAYS.find_key(start) for start in starts] == [*theirs, end]


@pytest.mark.parametrize(
    ("first", "end"),
    [
        ("2012-02-27", "2012-03-02"),
        ("2013-02-27", "2013-03-12"),
        ("2013-11-01", "2013-11-05"),
        ("2012-12-30", "2013-01-02"),
    ],
)
def test_hours_are_called_as_dagster_calls_them(first: str, end: str) -> None:
    first, end = f"{first}-00:00", f"{end}-00:00"
    theirs = HourlyPartitionsDefinition(first, end_date=end).get_partition_keys()
    starts = build_chain(HOURS, HOURS.find_start(first), len(theirs))
    assert [HOURS.find_key(start) for start in starts] == [*theirs, end]


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


def test_partitions_are_compared_with_their_like() -> None:
    day, hour = dt.date(2012, 2, 27), dt.datetime(2013, 3, 10, 6, tzinfo=dt.UTC)
    assert DAYS.find_peer_group(day) == DAYS.find_peer_group(day + 7 * DAY)
    assert len({DAYS.find_peer_group(day + n * DAY) for n in range(7)}) == 7
    assert HOURS.find_peer_group(hour) == HOURS.find_peer_group(hour + DAY)
    assert len({HOURS.find_peer_group(start) for start in build_chain(HOURS, hour, 23)}) == 24
    buckets = Buckets(5, 50)
    assert buckets.find_peer_group(0) == buckets.find_peer_group(45)


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


COLUMNS = (
    required("day", "DATE", "Day"),
    required("hour", "TIMESTAMP", "Hour"),
    required("id", "BIGINT", "Number"),
    required("small", "INT", "Number that is never large"),
    required("name", "STRING", "Name"),
    Column("maybe", "DATE", "Day, if known"),
)


def declare(partition_by: str, grain: Grain, folder_by: str | None = None) -> Table:
    return Table("raw", "readings", partition_by, COLUMNS, grain=grain, folder_by=folder_by)


@pytest.mark.parametrize(
    ("partition_by", "grain", "folder_by", "folder_column"),
    [
        ("day", DAYS, None, "day"),
        ("hour", HOURS, "day", "day"),
        ("id", Buckets(10, 100), None, "id"),
        ("small", Buckets(10, 100), None, "small"),
    ],
)
def test_folders_are_of_the_partition_column_but_for_hours(
    partition_by: str, grain: Grain, folder_by: str | None, folder_column: str
) -> None:
    assert declare(partition_by, grain, folder_by).folder_column == folder_column


@pytest.mark.parametrize(
    ("partition_by", "grain", "folder_by", "message"),
    [
        ("hour", DAYS, None, "`hour` must be DATE, to be partitioned by days"),
        ("id", DAYS, None, "`id` must be DATE, to be partitioned by days"),
        ("day", HOURS, "day", "`day` must be TIMESTAMP, to be partitioned by hours"),
        ("name", Buckets(9, 90), None, "`name` must be BIGINT, to be partitioned by buckets of 9"),
        ("day", Buckets(9, 90), None, "`day` must be BIGINT, to be partitioned by buckets of 9"),
    ],
)
def test_partition_column_of_another_type_than_the_grains_is_refused(
    partition_by: str, grain: Grain, folder_by: str | None, message: str
) -> None:
    with pytest.raises(ValueError, match=f"^raw/readings: {message}$"):
        declare(partition_by, grain, folder_by)


@pytest.mark.parametrize(
    ("partition_by", "grain", "folder_by"),
    [
        ("hour", HOURS, None),
        ("hour", HOURS, "hour"),
        ("hour", HOURS, "name"),
        ("day", DAYS, "day"),
        ("id", Buckets(10, 100), "day"),
    ],
    ids=["hours without", "not a date", "text", "days with", "buckets with"],
)
def test_folders_of_a_day_are_of_hourly_tables_only(
    partition_by: str, grain: Grain, folder_by: str | None
) -> None:
    with pytest.raises(ValueError, match="`folder_by` is the DATE column of an hourly table"):
        declare(partition_by, grain, folder_by)


@pytest.mark.parametrize("folder_by", ["maybe", "month"])
def test_folder_column_must_be_declared_and_required(folder_by: str) -> None:
    with pytest.raises(ValueError, match=f"`{folder_by}` must be a declared, required column"):
        declare("hour", HOURS, folder_by)
