"""Of all the records of a flight, staging holds the latest that landed."""

import datetime as dt
from typing import Any

import pytest
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.testing import assertDataFrameEqual

from backfill_assets.tables.flights import RAW_FLIGHTS, STAGING_FLIGHTS
from backfill_assets.transforms.staging_flights import build_staging_flights
from backfill_assets_tests.transforms.frames import build_frame, list_types
from backfill_engine.audit_columns import DUPLICATES, IDENTICAL

DAY = dt.date(2013, 1, 1)
RECORD: dict[str, Any] = {
    "landing_date": DAY,
    "flight_date": DAY,
    "year": 2013,
    "month": 1,
    "day": 1,
    "dep_time": 517,
    "sched_dep_time": 515,
    "dep_delay": 2,
    "arr_time": 830,
    "sched_arr_time": 819,
    "arr_delay": 11,
    "carrier": "UA",
    "flight": 1545,
    "tailnum": "N14228",
    "origin": "EWR",
    "dest": "IAH",
    "air_time": 227,
    "distance": 1400,
    "hour": 5,
    "minute": 15,
    "time_hour": dt.datetime(2013, 1, 1, 10, tzinfo=dt.UTC),
    "source_file": "flights/a.json",
}


def build_raw(spark: SparkSession, *changes: dict[str, Any]) -> DataFrame:
    """One raw record for each of `changes` to RECORD."""
    return build_frame(spark, RAW_FLIGHTS, (RECORD | change for change in changes))


def stage(spark: SparkSession, *changes: dict[str, Any]) -> list[Row]:
    return build_staging_flights(build_raw(spark, *changes)).collect()


def after(days: int) -> dt.date:
    return DAY + dt.timedelta(days=days)


def test_columns_are_those_of_the_table(spark: SparkSession) -> None:
    staged = build_staging_flights(build_raw(spark, {}))
    counted = [(DUPLICATES, "bigint"), (IDENTICAL, "bigint")]
    assert staged.dtypes == [*list_types(STAGING_FLIGHTS), *counted]
    (row,) = staged.collect()
    kept = set(STAGING_FLIGHTS.column_names) - {"scheduled_departure", "cancelled"}
    assert {name: row[name] for name in kept} == {name: RECORD[name] for name in kept}


def test_latest_landed_record_wins_whole_and_of_one_day_the_later_file(
    spark: SparkSession,
) -> None:
    rows = stage(
        spark,
        {"landing_date": after(1), "dep_delay": 20, "source_file": "flights/a.json"},
        {"landing_date": after(2), "dep_delay": 30, "source_file": "flights/0.json"},
        {"landing_date": after(0), "dep_delay": 99, "source_file": "flights/z.json"},
        {"flight": 2, "tailnum": "N1", "dep_delay": 50},
        {"flight": 2, "landing_date": after(1), "tailnum": None, "dep_delay": None},
        {"flight": 3, "source_file": "flights/b.json", "dep_delay": 1},
        {"flight": 3, "source_file": "flights/a.json", "dep_delay": 2},
    )
    found = {row.flight: (row.dep_delay, row.landing_date, row.source_file) for row in rows}
    assert found == {
        RECORD["flight"]: (30, after(2), "flights/0.json"),
        2: (None, after(1), "flights/a.json"),
        3: (1, DAY, "flights/b.json"),
    }
    assert [row.tailnum for row in rows if row.flight == 2] == [None]


def test_replaced_records_are_counted(spark: SparkSession) -> None:
    rows = stage(
        spark,
        {"flight": 1},
        {"flight": 1},
        {"flight": 1, "landing_date": after(1)},
        {"flight": 1, "landing_date": after(-1)},  # too early to count at all
        {"flight": 2},
    )
    assert {row.flight: row[DUPLICATES] for row in rows} == {1: 2, 2: 0}


@pytest.mark.parametrize(
    ("changes", "dropped", "identical"),
    [
        ([{}], 0, 0),
        ([{}, {}, {}], 2, 2),
        # The same of another day or file; and back to what was said first.
        ([{}, {"landing_date": after(1)}, {"source_file": "flights/b.json"}], 2, 2),
        ([{}, {"landing_date": after(1), "dest": "ORD"}, {"landing_date": after(2)}], 2, 0),
        ([{}, {}, {"landing_date": after(1), "dest": "ORD"}], 2, 1),
        ([{"dest": "DFW"}, {"dest": "ORD"}, {"dest": "ORD"}, {"dest": None}], 3, 1),
        # Equal but for where there is no value.
        ([{"dep_time": None, "sched_dep_time": 5}, {"dep_time": 5, "sched_dep_time": None}], 1, 0),
        ([{"dep_time": None}, {"dep_time": None}], 1, 1),
    ],
)
def test_replaced_records_that_say_the_same_are_told_from_older_ones(
    spark: SparkSession, changes: list[dict[str, Any]], dropped: int, identical: int
) -> None:
    (row,) = stage(spark, *changes)
    assert (row[DUPLICATES], row[IDENTICAL]) == (dropped, identical)


@pytest.mark.parametrize(
    "change", [{"flight_date": after(-1)}, {"carrier": "B6"}, {"flight": 1}, {"origin": "JFK"}]
)
def test_each_key_column_tells_flights_apart(spark: SparkSession, change: dict[str, Any]) -> None:
    assert len(stage(spark, {}, change)) == 2


def test_ties_do_not_depend_on_the_split_of_the_work(spark: SparkSession) -> None:
    changes = [
        {"flight": flight, "dep_delay": delay, "tailnum": f"N{delay}"}
        for flight in range(20)
        for delay in (7, 3, 9, None)
    ]
    expected = build_staging_flights(build_raw(spark, *changes).repartition(1))
    assert {row.tailnum for row in expected.collect()} == {"N9"}
    for raw in (
        build_raw(spark, *reversed(changes)).repartition(7),
        build_raw(spark, *changes).repartition(5, "dep_delay"),
    ):
        assertDataFrameEqual(build_staging_flights(raw), expected)


def test_records_that_landed_before_their_flight_date_are_ignored(spark: SparkSession) -> None:
    rows = stage(
        spark,
        {"landing_date": after(-1), "flight": 1},
        {"landing_date": after(0), "flight": 2},
        {"landing_date": after(9), "flight": 3},
    )
    assert sorted(row.flight for row in rows) == [2, 3]


def test_flight_without_departure_is_cancelled(spark: SparkSession) -> None:
    rows = stage(spark, {"flight": 1, "dep_time": None}, {"flight": 2, "dep_time": 0})
    assert {row.flight: row.cancelled for row in rows} == {1: True, 2: False}


@pytest.mark.parametrize(
    ("local", "instant"),
    [
        ((1, 1, 5, 15), "2013-01-01 10:15:00"),
        ((7, 1, 5, 15), "2013-07-01 09:15:00"),
        ((3, 10, 1, 59), "2013-03-10 06:59:00"),
        ((3, 10, 3, 0), "2013-03-10 07:00:00"),
        ((12, 31, 23, 59), "2014-01-01 04:59:00"),
        ((7, 1, None, 15), None),
    ],
    ids=["winter", "summer", "before the change", "after the change", "midnight", "unknown"],
)
def test_scheduled_departure_is_an_instant(
    spark: SparkSession, local: tuple[int | None, ...], instant: str | None
) -> None:
    month, day, hour, minute = local
    change = {"month": month, "day": day, "hour": hour, "minute": minute}
    staged = build_staging_flights(build_raw(spark, change))
    (row,) = staged.select(staged.scheduled_departure.cast("string").alias("utc")).collect()
    assert row.utc == instant
