"""Calendar days."""

import datetime as dt

import pytest
from dagster import DailyPartitionsDefinition

from backfill_engine.grains.dates import DAYS
from backfill_engine_tests.grains.drawing import DAY, build_chain, count_holding


def test_numbers_count_from_1970() -> None:
    assert DAYS.find_number(dt.date(1970, 1, 1)) == 0
    assert DAYS.find_number(dt.date(2013, 1, 1)) == 15_706


@pytest.mark.parametrize("first", ["2011-12-30", "2012-02-27", "2013-02-27", "2100-02-26"])
def test_date_is_in_one_day(first: str) -> None:
    starts = build_chain(DAYS, DAYS.find_start(first), 8)
    assert starts == [dt.date.fromisoformat(first) + n * DAY for n in range(9)]
    assert all(count_holding(starts, start) == 1 for start in starts[:-1])


@pytest.mark.parametrize(
    ("first", "end"),
    [("2012-01-01", "2013-04-02"), ("2013-01-01", "2014-01-01"), ("1899-12-01", "1900-03-03")],
)
def test_days_are_called_as_dagster_calls_them(first: str, end: str) -> None:
    theirs = DailyPartitionsDefinition(first, end_date=end).get_partition_keys()
    starts = build_chain(DAYS, DAYS.find_start(first), len(theirs))
    assert [DAYS.find_key(start) for start in starts] == [*theirs, end]


def test_days_are_compared_with_the_same_weekday() -> None:
    day = dt.date(2012, 2, 27)
    assert DAYS.find_peer_group(day) == DAYS.find_peer_group(day + 7 * DAY)
    assert len({DAYS.find_peer_group(day + n * DAY) for n in range(7)}) == 7
