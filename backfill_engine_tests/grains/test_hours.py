"""Hours of UTC."""

import datetime as dt
from zoneinfo import ZoneInfo

import pytest
from dagster import HourlyPartitionsDefinition
from hypothesis import given
from hypothesis import strategies as st

from backfill_engine.grains.timestamps import HOURS
from backfill_engine_tests.grains.drawing import DAY, build_chain, count_holding

NEW_YORK = ZoneInfo("America/New_York")


def test_numbers_count_from_1970() -> None:
    assert HOURS.find_number(dt.datetime(1969, 12, 31, 23, tzinfo=dt.UTC)) == -1
    assert HOURS.find_number(dt.datetime(2013, 1, 1, 5, tzinfo=dt.UTC)) == 15_706 * 24 + 5


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


def test_hours_are_compared_with_the_same_hour_of_other_days() -> None:
    hour = dt.datetime(2013, 3, 10, 6, tzinfo=dt.UTC)
    assert HOURS.find_peer_group(hour) == HOURS.find_peer_group(hour + DAY)
    assert len({HOURS.find_peer_group(start) for start in build_chain(HOURS, hour, 23)}) == 24
