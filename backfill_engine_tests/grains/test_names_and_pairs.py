"""Names, and pairs of a day and a name: keys sort as partitions do, and a range is a box."""

import datetime as dt
import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backfill_engine.grains import DAYS, MONTHS, WEEKS, Buckets, Names, Pairs
from backfill_engine.grains.grain import find_hull, is_in_range
from backfill_engine.grains.names import Pair
from backfill_engine.grains.overlaps import are_comparable, find_cover, holds_whole
from backfill_engine.lake.partitions import build_partition, build_predicate
from backfill_engine.orchestration.instance.partition_definitions import build_partitions_def
from backfill_engine.orchestration.instance.ranges import find_ranges

REGIONS = Names(("US", "EU", "AP-south", "AP south", "Perú"))
CELLS = Pairs(DAYS, REGIONS, labels=("day", "region"))
FIRST, END = dt.date(2024, 2, 27), dt.date(2024, 3, 4)
KEYS = build_partitions_def(CELLS, FIRST, END).get_partition_keys()

places = st.integers(0, len(REGIONS.names) - 1)
pairs = st.builds(Pair, st.dates(dt.date(1900, 1, 1), dt.date(2100, 1, 1)), places)


@given(starts=st.lists(pairs, min_size=2))
def test_keys_stored_values_and_numbers_sort_as_pairs_do(starts: list[Pair]) -> None:
    ascending = sorted(starts)
    assert sorted(map(CELLS.find_key, starts)) == list(map(CELLS.find_key, ascending))
    assert sorted(map(CELLS.find_number, starts)) == list(map(CELLS.find_number, ascending))
    assert [CELLS.find_start(CELLS.find_key(start)) for start in starts] == starts


@given(start=pairs)
def test_a_pair_ends_where_the_next_begins_and_a_day_holds_all_of_its_names(start: Pair) -> None:
    end = CELLS.find_end(start)
    assert start < end
    assert CELLS.find_key(start) < CELLS.find_stored(end)
    day = start.day, start.day + dt.timedelta(days=1)
    assert find_cover(DAYS, start, end) == day
    first, after = find_cover(CELLS, *day)
    chain = itertools.accumulate(REGIONS.names, lambda at, _: CELLS.find_end(at), initial=first)  # type: ignore[arg-type]
    assert list(chain)[-1] == after
    assert first <= start < end <= after  # type: ignore[operator]


@given(keys=st.sets(st.sampled_from(KEYS), min_size=1))
def test_ranges_are_boxes_that_hold_exactly_the_keys(keys: set[str]) -> None:
    partitions_def = build_partitions_def(CELLS, FIRST, END)
    boxes = find_ranges(partitions_def, keys)
    held = [key for key in KEYS for box in boxes if is_in_range(key, *box)]
    assert sorted(held) == sorted(keys), "each in one box"
    hull = find_hull(keys)
    assert all(is_in_range(key, *hull) for key in keys)
    if all(is_in_range(key, *hull) == (key in keys) for key in KEYS):
        assert boxes == [hull]


@pytest.mark.parametrize("key", ["2024-03-01", "2024-03-01|XX", "XX|EU", "2024-03-01|EU|EU"])
def test_a_key_of_no_pair_is_refused(key: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        CELLS.find_start(key)


def test_a_predicate_names_what_is_known_so_that_strangers_rows_stay() -> None:
    names = Names(("EU", "US"))
    slices = [build_partition(names, place).slice for place in range(2)]
    assert build_predicate("region", slices, names) == (
        "((`region` >= 'EU' AND `region` < 'US ')) AND `region` IN ('EU', 'US')"
    )


def test_names_are_read_by_the_same_names_and_pairs_by_their_days() -> None:
    days, other = Names(("EU",)), Pairs(WEEKS, REGIONS)
    assert are_comparable(REGIONS, Names(REGIONS.names))
    assert not any(are_comparable(REGIONS, grain) for grain in (days, Buckets(1, 5), DAYS, CELLS))
    assert are_comparable(CELLS, DAYS)
    assert not any(are_comparable(CELLS, grain) for grain in (MONTHS, other))
    assert holds_whole(DAYS, CELLS)
    assert not holds_whole(CELLS, DAYS)
    assert REGIONS.slug != days.slug
