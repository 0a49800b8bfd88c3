"""Minutes of UTC."""

import datetime as dt

import pytest
from dagster import TimeWindowPartitionsDefinition

from backfill_engine.grains.timestamps import Minutes
from backfill_engine_tests.grains.drawing import build_chain


def test_numbers_count_from_1970() -> None:
    quarters = Minutes(15)
    assert quarters.find_number(dt.datetime(1969, 12, 31, 23, 59, tzinfo=dt.UTC)) == -1
    assert quarters.find_number(dt.datetime(1970, 1, 1, 1, 15, tzinfo=dt.UTC)) == 5


@pytest.mark.parametrize("minutes", [1, 15, 20, 60, 120, 720])
@pytest.mark.parametrize("first", ["2012-02-28", "2013-03-09", "2013-11-02"])
def test_minutes_are_called_as_dagster_calls_them(minutes: int, first: str) -> None:
    grain, day = Minutes(minutes), dt.date.fromisoformat(first)
    end = day + dt.timedelta(days=3)
    theirs = TimeWindowPartitionsDefinition(
        start=f"{day}-00:00", end=f"{end}-00:00", fmt=grain.key_format, cron_schedule=grain.cron
    ).get_partition_keys()
    starts = build_chain(grain, grain.find_start(theirs[0]), len(theirs))
    assert len(theirs) == 3 * 24 * 60 / minutes
    assert [grain.find_key(start) for start in starts] == [*theirs, f"{end}-00:00"]


@pytest.mark.parametrize("minutes", [-15, 0, 7, 45, 90, 24 * 60, 48 * 60])
def test_minutes_that_cron_cannot_say_are_refused(minutes: int) -> None:
    with pytest.raises(ValueError, match=f"no partitions of {minutes} minutes: choose of 1, 2, 3"):
        Minutes(minutes)
