"""Half-open bounds and the partitions that they touch."""

import datetime as dt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backfill_engine.errors import PartitionRangeError
from backfill_engine.orchestration.selecting.selections import find_touched_partitions
from backfill_engine_tests.project import CATALOG

DAYS, HOURS, BUCKETS = (
    CATALOG.find_table(key) for key in ("staging/flights", "raw/weather", "raw/orders")
)
FIRST = dt.datetime(2013, 1, 1, tzinfo=dt.UTC)
MINUTE = dt.timedelta(minutes=1)
MINUTES = 300 * 24 * 60


@given(bounds=st.lists(st.integers(0, MINUTES), min_size=2, max_size=2, unique=True).map(sorted))
def test_all_days_with_a_minute_of_the_range_are_taken_and_no_other(bounds: list[int]) -> None:
    start, end = (FIRST + bound * MINUTE for bound in bounds)
    found = find_touched_partitions(DAYS, start.isoformat(), end.isoformat())
    days = {(FIRST + minute * MINUTE).date() for minute in range(bounds[0], bounds[1], 60)}
    days.add((end - MINUTE).date())
    assert (found.first, found.last) == (str(min(days)), str(max(days)))
    cut = [bound for bound in (start, end) if bound.time() != dt.time()]
    assert bool(found.snapped) == bool(cut)
    assert found.snapped.count(" lies in ") == len(cut)


def test_bounds_of_partitions_cut_none() -> None:
    found = find_touched_partitions(DAYS, "2013-01-10", "2013-01-15", strict=True)
    assert (found.first, found.last, found.snapped) == ("2013-01-10", "2013-01-14", "")
    found = find_touched_partitions(HOURS, "2013-01-10T05", "2013-01-10T07:00", strict=True)
    assert (found.first, found.last) == ("2013-01-10-05:00", "2013-01-10-06:00")
    found = find_touched_partitions(BUCKETS, "100000", "300000", strict=True)
    assert (found.first, found.last) == ("0100000", "0200000")


def test_a_bound_of_another_zone_is_meant_in_utc() -> None:
    found = find_touched_partitions(HOURS, "2013-01-10T00:00-05:00", "2013-01-10T01:00-05:00")
    assert (found.first, found.last) == ("2013-01-10-05:00", "2013-01-10-05:00")


def test_a_bound_inside_a_partition_takes_it_whole_and_says_so_or_is_refused() -> None:
    found = find_touched_partitions(BUCKETS, "150000", "200001")
    assert (found.first, found.last) == ("0100000", "0200000")
    assert found.snapped == (
        "raw/orders: --start 150000 lies in 0100000 and --end 200001 lies in 0200000, which is "
        "taken whole"
    )
    with pytest.raises(PartitionRangeError, match=r"would be taken whole: --strict"):
        find_touched_partitions(BUCKETS, "150000", "200000", strict=True)


@pytest.mark.parametrize(
    ("start", "end", "message"),
    [
        ("2013-01-05", "2013-01-05", "that is empty"),
        ("2013-01-05", "2013-01-04", "that is empty"),
        ("2012-01-01", "2012-02-01", "no partition of staging/flights has values"),
        ("monday", "2013-01-05", "monday: the partitions of staging/flights are days: give a date"),
    ],
)
def test_what_is_no_range_is_refused_with_its_cure(start: str, end: str, message: str) -> None:
    with pytest.raises(PartitionRangeError, match=message):
        find_touched_partitions(DAYS, start, end)
    with pytest.raises(PartitionRangeError, match="give an integer"):
        find_touched_partitions(BUCKETS, "2013-01-01", "2013-01-02")
