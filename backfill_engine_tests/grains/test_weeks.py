"""ISO weeks."""

import datetime as dt

import pytest
from dagster import WeeklyPartitionsDefinition
from hypothesis import given

from backfill_engine.grains.dates import WEEKS
from backfill_engine_tests.grains.drawing import DAY, build_chain, count_holding, dates


def test_numbers_count_from_the_week_of_1970() -> None:
    numbered = {"1969-12-28": -1, "1969-12-29": 0, "1970-01-04": 0, "1970-01-05": 1}
    assert {day: WEEKS.find_number(dt.date.fromisoformat(day)) for day in numbered} == numbered


@given(day=dates)
def test_date_is_in_its_iso_week_alone(day: dt.date) -> None:
    monday = dt.date.fromisocalendar(*day.isocalendar()[:2], 1)
    assert count_holding(build_chain(WEEKS, monday - 7 * DAY, 3), day) == 1
    assert WEEKS.find_number(day) == WEEKS.find_number(monday)


@pytest.mark.parametrize("first", ["2012-12-31", "2013-01-01", "1899-12-01"])
def test_weeks_are_called_as_dagster_calls_them(first: str) -> None:
    theirs = WeeklyPartitionsDefinition(first, end_date="2014-01-20", day_offset=1)
    keys = theirs.get_partition_keys()
    starts = build_chain(WEEKS, WEEKS.find_start(keys[0]), len(keys))
    assert [WEEKS.find_key(start) for start in starts] == [*keys, "2014-01-20"]
    assert (WEEKS.cron, WEEKS.key_format) == (theirs.cron_schedule, theirs.fmt)
