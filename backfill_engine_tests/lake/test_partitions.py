"""Partitions of days, hours and buckets: their folders and predicates."""

import datetime as dt
import itertools
import random
import re
import sqlite3
from collections.abc import Callable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backfill_engine.grains.buckets import Buckets
from backfill_engine.grains.grain import SliceBound
from backfill_engine.grains.timestamps import HOURS
from backfill_engine.lake.partitions import (
    Slice,
    build_folder_predicate,
    build_partition,
    build_partitions,
    build_predicate,
    build_table_predicate,
    find_folder,
    find_partitions_in_folder,
)
from backfill_engine.tables.declarations import Table, required
from backfill_engine_tests.lake.readings import READINGS

REPORTS = Table(
    layer="raw",
    name="reports",
    partition_by="hour",
    grain=HOURS,
    folder_by="day",
    columns=(required("hour", "TIMESTAMP", "Hour"), required("day", "DATE", "Its day")),
)
ORDERS = Table(
    layer="raw",
    name="orders",
    partition_by="bucket",
    grain=Buckets(250, 10_000),
    columns=(required("bucket", "BIGINT", "First key of the bucket"),),
)
HOUR, HALF_HOUR = dt.timedelta(hours=1), dt.timedelta(minutes=30)
BEGIN = dt.datetime(2012, 12, 30, tzinfo=dt.UTC)
NEW_YEAR = BEGIN + 48 * HOUR
MOMENTS = [BEGIN + n * HALF_HOUR for n in range(-3, 5 * 48)]

each_table = pytest.mark.parametrize(
    "table", [READINGS, REPORTS, ORDERS], ids=lambda table: table.name
)
starts = {
    READINGS: st.dates(dt.date(1900, 1, 1), dt.date(2100, 1, 1)),
    REPORTS: st.integers(-600_000, 1_000_000).map(
        lambda n: dt.datetime(1970, 1, 1, tzinfo=dt.UTC) + n * HOUR
    ),
    ORDERS: st.integers(0, 39).map(lambda n: n * 250),
}
# Whole days, parts of a day, and what reaches over midnight, all of them often.
spans = st.lists(
    st.tuples(st.integers(0, 3).map(lambda day: 24 * day), st.sampled_from([24, 48]))
    | st.tuples(st.integers(0, 90), st.integers(1, 28)),
    min_size=1,
    max_size=5,
).map(lambda drawn: [(start, start + hours) for start, hours in drawn])


def build_slices(spans: Sequence[tuple[int, int]]) -> list[Slice]:
    return [Slice(BEGIN + start * HOUR, BEGIN + end * HOUR) for start, end in spans]


def select(predicate: str) -> set[dt.datetime]:
    """The moments that SQLite selects: as texts of one width, which sort as the values do."""
    sql = re.sub(r"(?<= )(DATE|TIMESTAMP)(?=')", "", predicate)
    assert "DATE" not in sql
    assert "TIMESTAMP" not in sql
    rows = [
        (n, f"{moment:%Y-%m-%d %H:%M:%S.%f}Z", f"{moment:%Y-%m-%d}")
        for n, moment in enumerate(MOMENTS)
    ]
    with sqlite3.connect(":memory:") as database:
        database.execute("CREATE TABLE reports (n INTEGER, hour TEXT, day TEXT)")
        database.executemany("INSERT INTO reports VALUES (?, ?, ?)", rows)
        found = {MOMENTS[n] for (n,) in database.execute(f"SELECT n FROM reports WHERE {sql}")}
    database.close()
    return found


def find_held(slices: Sequence[Slice]) -> set[dt.datetime]:
    return {at for at in MOMENTS if any(part.start <= at < part.end for part in slices)}  # type: ignore[operator]


@each_table
@given(data=st.data(), source=st.randoms(use_true_random=False))
def test_partitions_ascend_in_whatever_order_the_keys_come(
    table: Table, data: st.DataObject, source: random.Random
) -> None:
    drawn: list[SliceBound] = data.draw(st.lists(starts[table], unique=True))
    keys = [table.grain.find_key(start) for start in drawn]
    source.shuffle(keys)
    partitions = build_partitions(table, keys)
    assert [partition.slice.start for partition in partitions] == sorted(drawn)  # type: ignore[type-var]
    assert [partition.key for partition in partitions] == sorted(keys)
    assert all(
        partition == build_partition(table.grain, partition.slice.start) for partition in partitions
    )


@pytest.mark.parametrize(
    ("table", "key", "held", "folder"),
    [
        (READINGS, "2012-12-31", Slice(dt.date(2012, 12, 31), dt.date(2013, 1, 1)), "2012-12-31"),
        (REPORTS, "2012-12-31-23:00", Slice(NEW_YEAR - HOUR, NEW_YEAR), "2012-12-31"),
        (ORDERS, "0000250", Slice(250, 500), "250"),
    ],
)
def test_partition_is_the_slice_from_its_start_to_the_next_and_has_the_folder_of_the_log(
    table: Table, key: str, held: Slice, folder: str
) -> None:
    (partition,) = build_partitions(table, [key])
    assert partition.slice == held
    assert find_folder(table, partition) == folder


@each_table
@given(data=st.data())
def test_folder_and_its_partitions_find_each_other(table: Table, data: st.DataObject) -> None:
    partition = build_partition(table.grain, data.draw(starts[table]))
    folder = find_folder(table, partition)
    inside = find_partitions_in_folder(table, folder)
    assert partition in inside
    assert {find_folder(table, partition_inside) for partition_inside in inside} == {folder}
    assert len(inside) == (24 if table is REPORTS else 1)
    assert all(left.slice.end == right.slice.start for left, right in itertools.pairwise(inside))


@given(spans=spans)
def test_predicate_selects_exactly_the_hours(spans: list[tuple[int, int]]) -> None:
    slices = build_slices(spans)
    assert select(build_table_predicate(REPORTS, slices)) == find_held(slices)


@given(spans=spans)
def test_folder_predicate_selects_all_of_each_folder_with_such_hours(
    spans: list[tuple[int, int]],
) -> None:
    slices = build_slices(spans)
    predicate = build_folder_predicate(REPORTS, slices)
    folders = {at.date() for at in find_held(slices)}
    assert select(predicate) == {at for at in MOMENTS if at.date() in folders}
    assert "`hour`" not in predicate


@given(days=st.lists(st.integers(0, 3), min_size=1), source=st.randoms(use_true_random=False))
def test_whole_days_are_selected_by_their_folders_alone(
    days: list[int], source: random.Random
) -> None:
    hours = build_slices([(h, h + 1) for day in days for h in range(24 * day, 24 * day + 24)])
    source.shuffle(hours)
    predicate = build_table_predicate(REPORTS, hours)
    assert predicate == build_folder_predicate(REPORTS, hours)
    assert select(predicate) == find_held(hours)


def test_parts_of_days_are_selected_by_folder_and_hour() -> None:
    hours = build_slices([(0, 24), (47, 49)])
    assert build_table_predicate(REPORTS, hours) == (
        "((`day` >= DATE'2012-12-30' AND `day` < DATE'2013-01-02'))"
        " AND ((`hour` >= TIMESTAMP'2012-12-30 00:00:00.000000Z'"
        " AND `hour` < TIMESTAMP'2012-12-31 00:00:00.000000Z')"
        " OR (`hour` >= TIMESTAMP'2012-12-31 23:00:00.000000Z'"
        " AND `hour` < TIMESTAMP'2013-01-01 01:00:00.000000Z'))"
    )


@pytest.mark.parametrize(
    ("table", "keys"), [(READINGS, ["2013-01-02", "2013-01-01"]), (ORDERS, ["0000250", "0001000"])]
)
def test_tables_without_coarser_folders_are_selected_by_their_column(
    table: Table, keys: list[str]
) -> None:
    slices = [partition.slice for partition in build_partitions(table, keys)]
    predicate = build_predicate(table.partition_by, slices)
    assert build_table_predicate(table, slices) == predicate
    assert build_folder_predicate(table, slices) == predicate


@each_table
@pytest.mark.parametrize("build", [build_table_predicate, build_folder_predicate])
def test_predicate_of_no_slices_is_refused(
    table: Table, build: Callable[[Table, list[Slice]], str]
) -> None:
    with pytest.raises(ValueError, match="no partitions"):
        build(table, [])
