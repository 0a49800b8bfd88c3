"""Each day has all of its hours at all stations, whatever of them was reported."""

import datetime as dt
import random
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from backfill_assets.tables.weather import MEASURED, RAW_WEATHER, STAGING_WEATHER, STATIONS
from backfill_assets.transforms.staging_weather import build_staging_weather
from backfill_assets_tests.transforms.frames import build_frame, list_types
from backfill_engine.audit_columns import DUPLICATES, IDENTICAL
from backfill_engine_tests.transforms.instants import collect_in_utc

DAY = dt.date(2013, 3, 10)
"""New York's clocks change: local days have 23 hours, those of UTC don't."""

MIDNIGHT = dt.datetime(2013, 3, 10, tzinfo=dt.UTC)
NAMES = tuple(column.name for column in MEASURED)
VALUES = {name: float(n) for n, name in enumerate(NAMES, start=20)}

Key = tuple[str, dt.datetime]


def hour(number: int) -> dt.datetime:
    return MIDNIGHT + dt.timedelta(hours=number)


def report(number: int, origin: str = "EWR", file: str = "a", **changes: Any) -> dict[str, Any]:
    """A record of RAW_WEATHER, of the hour so many after midnight."""
    nothing: dict[str, Any] = dict.fromkeys(RAW_WEATHER.column_names)
    instant = hour(number)
    landed = {"landing_hour": instant, "landing_date": instant.date(), "source_file": file}
    return nothing | landed | {"origin": origin, "time_hour": instant} | VALUES | changes


def build_raw(spark: SparkSession, *reports: dict[str, Any]) -> DataFrame:
    return build_frame(spark, RAW_WEATHER, reports)


def build_days(spark: SparkSession, *days: dt.date) -> DataFrame:
    return spark.createDataFrame([(day,) for day in days], "weather_date date")


def collect_hours(raw: DataFrame, *days: dt.date) -> dict[Key, dict[str, Any]]:
    staged = build_staging_weather(raw, build_days(raw.sparkSession, *days))
    rows = collect_in_utc(staged.select(*STAGING_WEATHER.column_names))
    hours = {(row["origin"], row["hour"]): row for row in rows}
    assert len(hours) == len(rows)
    return hours


def find_reported(hours: dict[Key, dict[str, Any]]) -> dict[Key, int]:
    return {key: row["reports"] for key, row in hours.items() if row["reports"]}


def missing(origin: str, number: int) -> dict[str, Any]:
    """The row of an hour without any report."""
    nothing: dict[str, Any] = dict.fromkeys(STAGING_WEATHER.column_names)
    instant = hour(number)
    key = {"weather_date": instant.date(), "origin": origin, "hour": instant}
    return nothing | key | {"reports": 0}


def test_columns_are_those_of_the_table(spark: SparkSession) -> None:
    staged = build_staging_weather(build_raw(spark, report(0)), build_days(spark, DAY))
    counted = [(DUPLICATES, "bigint"), (IDENTICAL, "bigint")]
    assert staged.dtypes == [*list_types(STAGING_WEATHER), *counted]


def test_reports_that_were_replaced_are_counted(spark: SparkSession) -> None:
    raw = build_raw(
        spark,
        *(report(1), report(1), report(1, file="b"), report(1, file="c", temp=50.0)),
        *(report(2), report(2, file="b")),
    )
    staged = build_staging_weather(raw, build_days(spark, DAY)).where(f"{DUPLICATES} > 0")
    rows = {row.hour.hour: (row[DUPLICATES], row[IDENTICAL]) for row in staged.collect()}
    assert rows == {1: (3, 2), 2: (1, 1)}


def test_day_without_reports_has_all_its_hours(spark: SparkSession) -> None:
    hours = collect_hours(build_raw(spark), DAY)
    assert hours == {
        (origin, hour(number)): missing(origin, number)
        for origin in STATIONS
        for number in range(24)
    }


def test_reports_fill_their_hours_and_no_others(spark: SparkSession) -> None:
    next_week = DAY + dt.timedelta(days=7)
    offset = 7 * 24
    reported = [("EWR", 0), ("JFK", 23), ("EWR", offset + 5), ("LGA", offset + 23)]
    strangers = [("EWR", -1), ("JFK", 24), ("EWR", offset - 1), ("BOS", 3)]
    raw = build_raw(spark, *(report(number, origin) for origin, number in reported + strangers))
    hours = collect_hours(raw, DAY, next_week)
    assert hours == {
        (origin, hour(number)): missing(origin, number)
        | (
            {"observed_at": hour(number), "reports": 1, **VALUES}
            if (origin, number) in reported
            else {}
        )
        for origin in STATIONS
        for number in (*range(24), *range(offset, offset + 24))
    }


def test_of_several_reports_the_later_file_wins_whole(spark: SparkSession) -> None:
    hours = collect_hours(
        build_raw(
            spark,
            report(1, file="b", temp=-5.0, dewp=None),
            report(1, file="a", temp=50.0),
            # In one file the greater record wins, compared by temperature first.
            report(2, temp=40.0, dewp=1.0),
            report(2, temp=30.0, dewp=9.0),
            report(2, temp=None, dewp=99.0),
            report(3, "JFK"),
            report(3, "JFK"),
        ),
        DAY,
    )
    assert find_reported(hours) == {
        ("EWR", hour(1)): 2,
        ("EWR", hour(2)): 3,
        ("JFK", hour(3)): 2,
    }
    first, second = hours["EWR", hour(1)], hours["EWR", hour(2)]
    assert {name: first[name] for name in NAMES} == VALUES | {"temp": -5.0, "dewp": None}
    assert {name: second[name] for name in NAMES} == VALUES | {"temp": 40.0, "dewp": 1.0}


def test_winds_that_cannot_be_are_null_and_all_else_stays(spark: SparkSession) -> None:
    winds = {
        -0.1: None,
        0.0: 0.0,
        42.5: 42.5,
        200.0: 200.0,
        200.1: None,
        1048.36058: None,
        float("inf"): None,
        float("nan"): None,
    }
    reports = [report(number, wind_speed=wind, wind_gust=wind) for number, wind in enumerate(winds)]
    hours = collect_hours(
        build_raw(spark, *reports, report(20, wind_speed=None, wind_gust=None)), DAY
    )
    staged = [hours["EWR", hour(number)] for number in (*range(len(winds)), 20)]
    for name in ("wind_speed", "wind_gust"):
        assert [row[name] for row in staged] == [*winds.values(), None]
    others = {(k, v) for k, v in VALUES.items() if k not in ("wind_speed", "wind_gust")}
    assert all(others <= row.items() for row in staged)
    assert all((row["observed_at"], row["reports"]) == (row["hour"], 1) for row in staged)


def test_rows_do_not_depend_on_order_or_split_of_the_reports(spark: SparkSession) -> None:
    chosen = random.Random(20130310)
    reports = [
        report(
            chosen.randrange(48),
            chosen.choice(STATIONS),
            file=chosen.choice("ab"),
            temp=chosen.choice([None, 1.0, 2.0]),
            wind_speed=chosen.choice([None, 5.0, 999.0]),
            visib=float(number),
        )
        for number in range(200)
    ]
    days = (DAY, DAY + dt.timedelta(days=1))
    expected = collect_hours(build_raw(spark, *reports).repartition(1), *days)
    assert sum(find_reported(expected).values()) == len(reports)
    chosen.shuffle(reports)
    assert collect_hours(build_raw(spark, *reports).repartition(7), *days) == expected
    by_file = build_raw(spark, *reversed(reports)).repartition(3, "source_file")
    assert collect_hours(by_file, *reversed(days)) == expected
