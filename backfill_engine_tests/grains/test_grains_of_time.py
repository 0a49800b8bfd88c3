"""Days, weeks, months, hours and minutes: numbered from 1970, and called as Dagster calls them."""

import datetime as dt
from dataclasses import replace
from zoneinfo import ZoneInfo

import pytest
from dagster import (
    DailyPartitionsDefinition,
    HourlyPartitionsDefinition,
    MonthlyPartitionsDefinition,
    TimeWindowPartitionsDefinition,
    WeeklyPartitionsDefinition,
)
from hypothesis import given
from hypothesis import strategies as st

from backfill_engine import Calendar, Table, required
from backfill_engine.grains.dates import DAYS, MONTHS, QUARTERS, WEEKS, YEARS, Days
from backfill_engine.grains.grain import Grain
from backfill_engine.grains.overlaps import are_comparable
from backfill_engine.grains.timestamps import HOURS, Minutes
from backfill_engine.orchestration.instance.partition_definitions import build_partitions_def
from backfill_engine.orchestration.selecting.selections import find_touched_partitions
from backfill_engine_tests.grains.drawing import (
    DAY,
    QUARTER_HOURS,
    build_chain,
    count_holding,
    dates,
)

NEW_YORK = ZoneInfo("America/New_York")
NUMBERS: dict[Grain, dict[str, int]] = {
    DAYS: {"1970-01-01": 0, "2013-01-01": 15_706},
    WEEKS: {"1969-12-28": -1, "1969-12-29": 0, "1970-01-04": 0, "1970-01-05": 1},
    MONTHS: {"1969-12-31": -1, "1970-01-01": 0, "1970-01-31": 0, "2013-02-28": 43 * 12 + 1},
    QUARTERS: {"1969-12-31": -1, "1970-03-31": 0, "2013-05-01": 43 * 4 + 1},
    YEARS: {"1969-12-31": -1, "1970-12-31": 0, "2013-05-01": 43},
    Days("%Y%m%d"): {"1970-01-01": 0, "2013-01-01": 15_706},
    HOURS: {"1969-12-31T23:00Z": -1, "2013-01-01T05:00Z": 15_706 * 24 + 5},
    QUARTER_HOURS: {"1969-12-31T23:59Z": -1, "1970-01-01T01:15Z": 5},
}


@pytest.mark.parametrize("grain", NUMBERS, ids=str)
def test_numbers_count_from_1970(grain: Grain) -> None:
    read = (dt.date if grain.bound_type == "DATE" else dt.datetime).fromisoformat
    assert {text: grain.find_number(read(text)) for text in NUMBERS[grain]} == NUMBERS[grain]


def build_minutes(minutes: int, first: str) -> tuple[Grain, TimeWindowPartitionsDefinition, str]:
    """Three days of so many minutes."""
    grain = Minutes(minutes)
    end = f"{dt.date.fromisoformat(first) + 3 * DAY}-00:00"
    theirs = TimeWindowPartitionsDefinition(
        start=f"{first}-00:00", end=end, fmt=grain.key_format, cron_schedule=grain.cron
    )
    return grain, theirs, end


@pytest.mark.parametrize(
    ("grain", "theirs", "end"),
    [
        *(
            (DAYS, DailyPartitionsDefinition(first, end_date=end), end)
            for first, end in (
                ("2012-01-01", "2013-04-02"),
                ("2013-01-01", "2014-01-01"),
                ("1899-12-01", "1900-03-03"),
            )
        ),
        *(
            (
                WEEKS,
                WeeklyPartitionsDefinition(first, end_date="2014-01-20", day_offset=1),
                "2014-01-20",
            )
            for first in ("2012-12-31", "2013-01-01", "1899-12-01")
        ),
        *(
            (MONTHS, MonthlyPartitionsDefinition(first, end_date=end), end)
            for first, end in (("2012-01-01", "2013-04-01"), ("1899-12-15", "1901-01-01"))
        ),
        *(
            (
                grain,
                TimeWindowPartitionsDefinition(
                    start=first, end="2014-01-01", fmt="%Y-%m-%d", cron_schedule=grain.cron
                ),
                "2014-01-01",
            )
            for grain in (QUARTERS, YEARS)
            for first in ("2008-01-01", "1899-12-15")
        ),
        *(
            (HOURS, HourlyPartitionsDefinition(first, end_date=end), end)
            for first, end in (
                ("2012-02-27-00:00", "2012-03-02-00:00"),
                ("2013-02-27-00:00", "2013-03-12-00:00"),
                ("2013-11-01-00:00", "2013-11-05-00:00"),
                ("2012-12-30-00:00", "2013-01-02-00:00"),
            )
        ),
        *(
            build_minutes(minutes, first)
            for minutes in (1, 15, 20, 60, 120, 720)
            for first in ("2012-02-28", "2013-03-09", "2013-11-02")
        ),
    ],
    ids=str,
)
def test_partitions_are_called_as_dagster_calls_them(
    grain: Grain, theirs: TimeWindowPartitionsDefinition, end: str
) -> None:
    keys = theirs.get_partition_keys()
    starts = build_chain(grain, grain.find_start(keys[0]), len(keys))
    assert [grain.find_key(start) for start in starts] == [*keys, end]
    assert (grain.cron, grain.key_format) == (theirs.cron_schedule, theirs.fmt)


@pytest.mark.parametrize("first", ["2011-12-30", "2012-02-27", "2013-02-27", "2100-02-26"])
def test_date_is_in_one_day(first: str) -> None:
    starts = build_chain(DAYS, DAYS.find_start(first), 8)
    assert starts == [dt.date.fromisoformat(first) + n * DAY for n in range(9)]
    assert all(count_holding(starts, start) == 1 for start in starts[:-1])


@given(day=dates)
def test_date_is_in_its_iso_week_and_its_month_alone(day: dt.date) -> None:
    monday = dt.date.fromisocalendar(*day.isocalendar()[:2], 1)
    assert count_holding(build_chain(WEEKS, monday - 7 * DAY, 3), day) == 1
    assert WEEKS.find_number(day) == WEEKS.find_number(monday)
    first = day.replace(day=1)
    assert first <= day < MONTHS.find_end(first)
    assert MONTHS.find_number(day) == MONTHS.find_number(first)
    assert count_holding(build_chain(MONTHS, first.replace(month=1), 12), day) == 1


@pytest.mark.parametrize("shift", ["2012-12-31", "2013-03-10", "2013-11-03"])
@given(other=st.data())
def test_moment_is_in_one_hour_whatever_the_clocks_of_new_york_do(
    shift: str, other: st.DataObject
) -> None:
    midnight = dt.datetime.fromisoformat(shift)
    local = other.draw(st.datetimes(midnight, midnight + DAY, timezones=st.just(NEW_YORK)))
    starts = build_chain(HOURS, (midnight - DAY).replace(tzinfo=dt.UTC), 96)
    assert count_holding(starts, local.astimezone(dt.UTC)) == 1


def test_days_are_compared_with_the_same_weekday_and_hours_with_the_same_hour() -> None:
    day, hour = dt.date(2012, 2, 27), dt.datetime(2013, 3, 10, 6, tzinfo=dt.UTC)
    assert DAYS.find_peer_group(day) == DAYS.find_peer_group(day + 7 * DAY)
    assert len({DAYS.find_peer_group(day + n * DAY) for n in range(7)}) == 7
    assert HOURS.find_peer_group(hour) == HOURS.find_peer_group(hour + DAY)
    assert len({HOURS.find_peer_group(start) for start in build_chain(HOURS, hour, 23)}) == 24


@pytest.mark.parametrize("minutes", [-15, 0, 7, 45, 90, 24 * 60, 48 * 60])
def test_minutes_that_cron_cannot_say_are_refused(minutes: int) -> None:
    with pytest.raises(ValueError, match=f"no partitions of {minutes} minutes: choose of 1, 2, 3"):
        Minutes(minutes)


@pytest.mark.parametrize(
    ("written", "kind"),
    [("%d.%m.%Y", "STRING"), ("%Y", "STRING"), ("%Y-%m%d", "STRING"), ("%Y-%m-%d", "INT")],
)
def test_days_that_do_not_sort_as_they_are_written_are_refused(written: str, kind: str) -> None:
    with pytest.raises(ValueError, match=f"no days as {written}"):
        Days(written, type=kind)  # type: ignore[arg-type]


@pytest.mark.parametrize("text", ["2013131", "2013-01-31", "20130231", "", "__HIVE_DEFAULT__"])
def test_text_that_is_no_day_of_the_format_has_no_partition(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        Days("%Y%m%d").find_value(text)


LOCAL_DAYS = Days(type="DATE", time_zone="America/New_York")


@pytest.mark.parametrize(("day", "hours"), [("03-10", 23), ("03-11", 24), ("11-03", 25)])
def test_a_day_of_a_time_zone_lasts_as_long_as_there(day: str, hours: int) -> None:
    start = dt.date.fromisoformat(f"2024-{day}")
    begin, end = LOCAL_DAYS.find_times(start)
    assert end - begin == dt.timedelta(hours=hours)
    assert begin.hour == (5 if hours == 23 else 4)
    assert not LOCAL_DAYS.is_over(start, LOCAL_DAYS.find_end(start)), "it is still the day there"
    assert LOCAL_DAYS.is_over(start, LOCAL_DAYS.find_end(start) + dt.timedelta(days=1))


def test_days_of_a_time_zone_are_there_once_each_when_they_have_ended_there() -> None:
    partitions_def = build_partitions_def(LOCAL_DAYS, dt.date(2024, 3, 1), None)
    for now, last in (
        ("2024-03-11T03:59", "2024-03-09"),
        ("2024-03-11T04:00", "2024-03-10"),
        ("2024-11-04T04:59", "2024-11-02"),
        ("2024-11-04T05:00", "2024-11-03"),
    ):
        moment = dt.datetime.fromisoformat(now).replace(tzinfo=dt.UTC)
        keys = partitions_def.get_partition_keys(current_time=moment)
        assert keys[-1] == last
        assert len(keys) == (dt.date.fromisoformat(last) - dt.date(2024, 2, 29)).days


def test_bounds_in_utc_touch_the_day_of_the_time_zone() -> None:
    calendar = Calendar(dt.date(2024, 3, 1), dt.date(2024, 3, 20))
    table = replace(
        Table("raw", "trips", "day", (required("day", "DATE"),), grain=LOCAL_DAYS),
        calendar=calendar,
    )
    touched = find_touched_partitions(table, "2024-03-10T05:00", "2024-03-11T04:00", strict=True)
    assert (touched.first, touched.last) == ("2024-03-10", "2024-03-10")


def test_days_of_a_time_zone_are_read_by_days_of_the_same_alone() -> None:
    assert are_comparable(LOCAL_DAYS, Days(type="DATE", time_zone="America/New_York"))
    others = DAYS, HOURS, MONTHS, Days(type="DATE", time_zone="Europe/Berlin")
    assert not any(are_comparable(LOCAL_DAYS, other) for other in others)
    assert (str(LOCAL_DAYS), LOCAL_DAYS.slug) == (
        "days of America/New_York",
        "days_America_New_York",
    )


@pytest.mark.parametrize(
    ("given", "cure"),
    [({"type": "DATE"}, "write grain=DAYS"), ({"time_zone": "Mars"}, "write America/New_York")],
)
def test_days_of_no_time_zone_are_refused(given: dict[str, str], cure: str) -> None:
    with pytest.raises(ValueError, match=cure):
        Days(**given)  # type: ignore[arg-type]
