"""Partitions of one grain over those of another: which overlap, and which lie in a single one."""

import datetime as dt
from itertools import product

import pytest
from dagster import (
    AllPartitionMapping,
    IdentityPartitionMapping,
    LastPartitionMapping,
    PartitionMapping,
)

from backfill_engine import Calendar, DeclarationError, Required, Table, Upstream
from backfill_engine.assembly import check_together
from backfill_engine.grains.buckets import Buckets
from backfill_engine.grains.dates import DAYS, MONTHS, QUARTERS, WEEKS, YEARS, Days
from backfill_engine.grains.grain import Grain
from backfill_engine.grains.overlaps import find_moment, holds_whole
from backfill_engine.grains.timestamps import HOURS, Minutes
from backfill_engine.lake.partitions import build_partitions, list_overlapping
from backfill_engine.orchestration.due.readiness import map_keys
from backfill_engine.orchestration.instance.partition_definitions import (
    find_partitions_def,
    map_overlap,
)
from backfill_engine.table_assets import TableAsset, table_asset
from backfill_engine.tables.declarations import required

OF_TIME = (DAYS, WEEKS, MONTHS, QUARTERS, HOURS, Minutes(360))
OF_INTEGERS = (Buckets(10, 95), Buckets(100, 1000), Buckets(15, 300))
PAIRS = [*product(OF_TIME, repeat=2), *product(OF_INTEGERS, repeat=2)]


def declare(grain: Grain, name: str = "of") -> Table:
    table = Table(
        "raw",
        name,
        "part",
        (required("part", grain.column_types[0], "Partition"), required("day", "DATE", "Day")),
        grain=grain,
        folder_by="day" if grain.in_daily_folders else None,
    )
    calendar = Calendar(dt.date(2012, 11, 9), dt.date(2013, 8, 20))
    object.__setattr__(table, "calendar", calendar)
    return table


@pytest.mark.parametrize(("grain", "read"), PAIRS, ids=str)
def test_dagster_maps_each_partition_to_those_that_hold_any_of_its_values(
    grain: Grain, read: Grain
) -> None:
    table, source = declare(grain), declare(read, "source")
    down, up = find_partitions_def(table), find_partitions_def(source)
    mapping, known = map_overlap(table, source), set(up.get_partition_keys())
    for partition in build_partitions(table, down.get_partition_keys()[:200]):
        mapped = mapping.get_upstream_mapped_partitions_result_for_partitions(
            down.subset_with_partition_keys([partition.key]), down, up
        ).partitions_subset.get_partition_keys()
        own = (partition.slice.start, partition.slice.end)
        overlapping = [other for other in list_overlapping(source, partition) if other.key in known]
        assert sorted(mapped) == [other.key for other in overlapping], partition
        for other in overlapping:
            assert max(find_moment(own[0]), find_moment(other.slice.start)) < min(
                find_moment(own[1]), find_moment(other.slice.end)
            )


@pytest.mark.parametrize(
    ("outer", "inner"),
    [
        *((grain, grain) for grain in (*OF_TIME, *OF_INTEGERS)),
        *((MONTHS, grain) for grain in (DAYS, HOURS, Minutes(360))),
        *((WEEKS, grain) for grain in (DAYS, HOURS)),
        (YEARS, QUARTERS),
        (QUARTERS, MONTHS),
        (DAYS, Minutes(360)),
        (Minutes(360), HOURS),
        (Buckets(100, 1000), Buckets(10, 95)),
    ],
    ids=str,
)
def test_partition_holds_whole_ones_of_a_finer_grain(outer: Grain, inner: Grain) -> None:
    assert holds_whole(outer, inner)
    assert holds_whole(inner, outer) == (outer == inner)


def test_keys_are_mapped_for_each_partition() -> None:
    table, source = declare(MONTHS), declare(DAYS, "source")
    down, up = find_partitions_def(table), find_partitions_def(source)
    found = map_keys(map_overlap(table, source), down, up, ["2013-01-01", "2013-02-01"])
    assert [len(days) for days in found.values()] == [31, 28]


@pytest.mark.parametrize(
    ("outer", "inner"),
    [(MONTHS, WEEKS), (WEEKS, MONTHS), (Buckets(15, 300), Buckets(10, 95)), (DAYS, Buckets(1, 9))],
    ids=str,
)
def test_partition_may_cut_others(outer: Grain, inner: Grain) -> None:
    assert not holds_whole(outer, inner)
    assert not holds_whole(inner, outer)


def test_days_are_those_of_any_other_writing() -> None:
    assert holds_whole(DAYS, Days("%Y%m%d"))
    assert holds_whole(Days("%Y%m%d"), DAYS)


def read_by(
    grain: Grain,
    read: Grain,
    mapping: PartitionMapping | None,
    required_partitions: Required = Required.ALL,
) -> TableAsset:
    upstream = Upstream(declare(read, "source"), mapping, required_partitions)
    return table_asset(declare(grain), inputs=[upstream])(lambda window: window.spark.range(0))


@pytest.mark.parametrize("mapping", [AllPartitionMapping(), LastPartitionMapping()], ids=str)
def test_mapping_that_dagster_calls_equal_is_not_taken_for_the_same_key(
    mapping: PartitionMapping,
) -> None:
    assert mapping == IdentityPartitionMapping()
    asset = read_by(DAYS, DAYS, mapping)
    assert asset.count_source is None
    source = table_asset(declare(Buckets(1, 9), "source"))(asset.compute)
    check_together([source, read_by(DAYS, Buckets(1, 9), mapping)])


def test_records_of_a_whole_input_are_counted_where_its_partitions_lie_in_one() -> None:
    assert read_by(MONTHS, DAYS, None).count_source
    assert read_by(DAYS, DAYS, None).count_source
    assert read_by(DAYS, DAYS, IdentityPartitionMapping()).count_source
    assert read_by(DAYS, MONTHS, None).count_source is None
    assert read_by(MONTHS, WEEKS, None).count_source is None


@pytest.mark.parametrize(
    ("read", "mapping", "required_partitions", "message"),
    [
        (Buckets(1, 9), None, Required.ALL, "give Upstream a mapping, such as AllPartitionMapping"),
        (DAYS, IdentityPartitionMapping(), Required.ALL, "by the same key: leave the mapping"),
        (DAYS, None, Required.OWN, "none is its OWN, so require ALL or ANY"),
    ],
)
def test_mapping_that_gives_nothing_is_refused(
    read: Grain,
    mapping: PartitionMapping | None,
    required_partitions: Required,
    message: str,
) -> None:
    asset = read_by(MONTHS, read, mapping, required_partitions)
    source = table_asset(declare(read, "source"))(asset.compute)
    with pytest.raises(DeclarationError, match=message):
        check_together([source, asset])
