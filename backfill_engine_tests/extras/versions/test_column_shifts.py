"""Shifts of means and of shares of nulls don't depend on how rows lie in files."""

import math
import statistics
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from deltalake import write_deltalake
from pyspark.sql import SparkSession

from backfill_engine.extras.versions.column_shifts import ColumnShift, measure_shifts
from backfill_engine.extras.versions.promotions import DriftGates, find_beyond
from backfill_engine.lake.partitions import Partition
from backfill_engine.lake.table_log import read_log
from backfill_engine.lake.warehouse import Warehouse
from backfill_engine_tests.contents.written_rows import (
    EVENTS,
    FLIGHTS,
    WEEK,
    Row,
    as_arrow,
    build_events,
    build_flights,
    build_parts,
    find_flight,
    write_rows,
    write_versions,
)
from backfill_engine_tests.project import SERVED_CARRIER_DELAYS
from backfill_engine_tests.shared_fixtures import build_days

COLUMNS = ["delay", "gate", "departed", "miles", "cancelled"]


def measure(
    spark: SparkSession,
    warehouse: Warehouse,
    before: Sequence[Row],
    after: Sequence[Row],
    *,
    days: Sequence[Partition] = WEEK,
) -> dict[tuple[str, str], ColumnShift]:
    """Measures the shifts between two versions of FLIGHTS, by partition and column."""
    older, newer = write_versions(warehouse, FLIGHTS, before, after)
    return {
        (shift.partition, shift.column): shift
        for shift in measure_shifts(spark, older, newer, days)
    }


def test_each_column_of_each_partition_before_and_after(
    spark: SparkSession, warehouse: Warehouse
) -> None:
    before, after = build_flights(), build_flights()
    moved, other = WEEK[2], WEEK[4]
    for flight in after:
        if flight["day"] == moved.slice.start and flight["delay"] is not None:
            flight["delay"] += 2.5
    for number in (3, 4):
        find_flight(after, other, number).update(gate=None, miles=None)
    found = measure(spark, warehouse, before, after, days=WEEK[::-1])

    assert list(found) == [(day.key, name) for day in WEEK for name in COLUMNS]
    delays = [number / 4 for number in range(20) if number != 7]
    mean = statistics.fmean(delays)
    delay = found[moved.key, "delay"]
    assert delay.mean_before == pytest.approx(mean, abs=1e-12)
    assert delay.mean_after == pytest.approx(mean + 2.5, abs=1e-12)
    assert (delay.nulls_before, delay.nulls_after) == (0.05, 0.05)
    assert delay.stddev == pytest.approx(statistics.pstdev(delays), abs=1e-12)
    gate, miles = found[other.key, "gate"], found[other.key, "miles"]
    assert gate == ColumnShift(other.key, "gate", None, None, 0.0, 0.1)
    assert miles.mean_before == 950
    assert miles.mean_after == pytest.approx((19_000 - 700) / 18)
    assert miles.nulls_after == 0.1
    same = {key for key, shift in found.items() if not (shift.mean_shift or shift.null_shift)}
    assert found.keys() - same == {
        (moved.key, "delay"),
        (other.key, "gate"),
        (other.key, "miles"),
    }


def test_means_are_the_same_however_rows_are_filed(
    spark: SparkSession, warehouse: Warehouse, tmp_path: Path
) -> None:
    """Doubles that are summed up in another order give another mean."""
    rows = build_flights(WEEK[:1], count=300)
    for flight in rows:
        flight["delay"] = round(10.0 ** (flight["flight"] % 9) / 7, 6)
    assert len({sum(flight["delay"] for flight in order) for order in (rows, rows[::-1])}) == 2
    copy = Warehouse(str(tmp_path / "copy"))
    for warehouse_, order, size in ((warehouse, rows, 300), (copy, rows[::-1], 37)):
        write_rows(warehouse_, FLIGHTS, order[:size])
        for first in range(size, len(order), size):
            part = as_arrow(FLIGHTS, order[first : first + size])
            write_deltalake(warehouse_.uri(FLIGHTS), part, mode="append")
    whole, parts = (read_log(warehouse_, FLIGHTS) for warehouse_ in (warehouse, copy))
    assert (len(whole.list_files()), len(parts.list_files())) == (1, 9)
    shifts = measure_shifts(spark, whole, parts, WEEK[:1])
    assert [shift.mean_before for shift in shifts] == [shift.mean_after for shift in shifts]
    assert shifts == measure_shifts(spark, parts, whole, WEEK[:1])
    assert shifts[0].mean_before


@pytest.mark.only_spark
def test_what_is_no_number_is_no_value(spark: SparkSession, warehouse: Warehouse) -> None:
    """A mean of NaN would hide the others, and leaving NaN out silently would hide its loss."""
    before, after = build_flights(WEEK[:1], count=10), build_flights(WEEK[:1], count=10)
    for number, value in ((0, math.nan), (1, math.inf), (2, -math.inf), (3, 1e22)):
        find_flight(after, WEEK[0], number)["delay"] = value
    delay = measure(spark, warehouse, before, after)[WEEK[0].key, "delay"]
    assert (delay.nulls_before, delay.nulls_after) == (0.1, 0.5)
    assert delay.mean_after == statistics.fmean(number / 4 for number in (4, 5, 6, 8, 9))


def test_means_of_numbers_too_large_to_be_squared(
    spark: SparkSession, warehouse: Warehouse
) -> None:
    rows = build_flights(WEEK[:1], count=2)
    rows[1]["miles"] = 2**62
    miles = measure(spark, warehouse, rows, rows)[WEEK[0].key, "miles"]
    assert miles.mean_before == miles.mean_after == 2.0**61
    assert (miles.stddev, miles.mean_shift) == (None, 0)


def test_a_table_that_is_not_there_yet_has_no_rows(
    spark: SparkSession, warehouse: Warehouse
) -> None:
    write_rows(warehouse, FLIGHTS, build_flights(WEEK[:1]))
    absent = read_log(warehouse, replace(FLIGHTS, name="flights_v0"))
    days = build_days("2013-01-01", 2)
    shifts = measure_shifts(spark, absent, read_log(warehouse, FLIGHTS), days)
    assert [shift.mean_after is None for shift in shifts] == [False, True, True, False, True] + [
        True
    ] * 5
    assert {(shift.mean_before, shift.nulls_before, shift.stddev) for shift in shifts} == {
        (None, 0, None)
    }
    assert {shift.mean_shift for shift in shifts} == {None}


def test_a_column_that_came_later_was_null(spark: SparkSession, warehouse: Warehouse) -> None:
    rows = build_flights(WEEK[:1])
    narrow = replace(FLIGHTS, name="flights_v0", columns=FLIGHTS.columns[:-2], rules=())
    write_rows(warehouse, narrow, rows)
    write_rows(warehouse, FLIGHTS, rows)
    before, after = (read_log(warehouse, table) for table in (narrow, FLIGHTS))
    found = {shift.column: shift for shift in measure_shifts(spark, before, after, WEEK[:1])}
    assert found["miles"] == ColumnShift(WEEK[0].key, "miles", None, 950.0, 1.0, 0.0)
    assert found["cancelled"].nulls_before == 1
    assert found["delay"].mean_shift == 0


def test_partitions_of_integers_and_a_table_without_a_key(
    spark: SparkSession, warehouse: Warehouse
) -> None:
    rows = build_events(p0="aab", p7="c")
    rows[1]["code"] = None
    write_rows(warehouse, EVENTS, rows)
    log = read_log(warehouse, EVENTS)
    third = 1 / 3
    assert measure_shifts(spark, log, log, build_parts(7, 3, 0)) == [
        ColumnShift("part 0", "code", None, None, third, third),
        ColumnShift("part 3", "code", None, None, 0, 0),
        ColumnShift("part 7", "code", None, None, 0, 0),
    ]
    assert measure_shifts(spark, log, log, []) == []


@pytest.mark.parametrize(
    ("before", "after", "stddev", "shift"),
    [
        pytest.param(10.0, 12.0, 1.0, 0.2, id="relative"),
        pytest.param(-10.0, -12.0, 1.0, 0.2, id="negative"),
        pytest.param(0.001, 0.101, 0.5, 0.2, id="near zero"),
        pytest.param(0.0, 0.0, 0.0, 0.0, id="both zero"),
        pytest.param(0.0, 1e-6, 0.0, math.inf, id="constant zero"),
        pytest.param(4.0, 5.0, None, 0.25, id="no deviation"),
        pytest.param(None, 5.0, None, None, id="new"),
        pytest.param(5.0, None, None, None, id="gone"),
    ],
)
def test_mean_shift(
    before: float | None, after: float | None, stddev: float | None, shift: float | None
) -> None:
    found = ColumnShift("2013-01-01", "delay", before, after, 0, 0, stddev).mean_shift
    assert found == (shift if shift is None else pytest.approx(shift))


SHIFTS = [
    ColumnShift("2013-01-01", "delay", 4.0, 5.0, 0.0, 0.25, 1.0),
    ColumnShift("2013-01-01", "gate", None, None, 0.5, 0.25),
    ColumnShift("2013-01-02", "delay", 4.0, 4.5, 0.0, 0.0, 1.0),
    ColumnShift("2013-01-03", "delay", None, 4.5, 1.0, 0.0),
]


def test_without_bounds_nothing_shifted() -> None:
    assert find_beyond(SERVED_CARRIER_DELAYS, DriftGates(), [], SHIFTS) == []


def test_bounds_that_are_just_met_hold() -> None:
    table = SERVED_CARRIER_DELAYS
    assert find_beyond(table, DriftGates(0.2, 0.1, 0.1), [], SHIFTS) == [
        f"{table.key} 2013-01-01...2013-01-02: shift of the mean of delay is up to 0.250 "
        "(at most 0.1)",
        f"{table.key} 2013-01-01, 2013-01-03: shift of the share of rows without delay is up to "
        "1.000 (at most 0.1)",
        f"{table.key} 2013-01-01: shift of the share of rows without gate is up to 0.250 "
        "(at most 0.1)",
    ]
