"""Calendar months."""

import datetime as dt

import pytest
from dagster import MonthlyPartitionsDefinition
from hypothesis import given

from backfill_engine.grains.dates import MONTHS
from backfill_engine_tests.grains.drawing import build_chain, count_holding, dates


def test_numbers_count_from_1970() -> None:
    numbered = {"1969-12-31": -1, "1970-01-01": 0, "1970-01-31": 0, "2013-02-28": 43 * 12 + 1}
    assert {day: MONTHS.find_number(dt.date.fromisoformat(day)) for day in numbered} == numbered


@given(day=dates)
def test_date_is_in_its_month_alone(day: dt.date) -> None:
    first = day.replace(day=1)
    assert first <= day < MONTHS.find_end(first)
    assert MONTHS.find_number(day) == MONTHS.find_number(first)
    assert count_holding(build_chain(MONTHS, first.replace(month=1), 12), day) == 1


@pytest.mark.parametrize(
    ("first", "end"), [("2012-01-01", "2013-04-01"), ("1899-12-15", "1901-01-01")]
)
def test_months_are_called_as_dagster_calls_them(first: str, end: str) -> None:
    theirs = MonthlyPartitionsDefinition(first, end_date=end)
    keys = theirs.get_partition_keys()
    starts = build_chain(MONTHS, MONTHS.find_start(keys[0]), len(keys))
    assert [MONTHS.find_key(start) for start in starts] == [*keys, end]
    assert (MONTHS.cron, MONTHS.key_format) == (theirs.cron_schedule, theirs.fmt)
