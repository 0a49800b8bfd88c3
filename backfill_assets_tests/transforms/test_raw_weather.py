"""Landed reports become typed rows, one for each line, of the hour in which they landed."""

import datetime as dt
import json
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from backfill_assets.tables.weather import RAW_WEATHER
from backfill_assets.transforms.raw_weather import build_raw_weather
from backfill_assets_tests.transforms.frames import list_types
from backfill_engine.audit_columns import (
    FIELD_SEPARATOR,
    FIELDS_SEEN,
    REJECT_REASON,
    REJECTED_LINE,
)
from backfill_engine_tests.transforms.instants import collect_in_utc

HOUR = dt.datetime(2013, 1, 2, 3, tzinfo=dt.UTC)
LANDED = {
    "landing_hour": HOUR,
    "landing_date": dt.date(2013, 1, 2),
    "source_file": "weather/a.json",
}
REPORT: dict[str, Any] = {
    "origin": "EWR",
    "year": 2013,
    "month": 1,
    "day": 1,
    "hour": 22,
    "temp": 39.02,
    "dewp": 26.06,
    "humid": 59.37,
    "wind_dir": 270,
    "wind_speed": 10.35702,
    "wind_gust": None,
    "precip": 0,
    "pressure": 1012.0,
    "visib": 10,
    "time_hour": "2013-01-02T03:00:00Z",
}
OTHER_HOUR = "the report is of another hour than it landed"


def build_raw(
    spark: SparkSession, *lines: str, extra_fields: tuple[str, ...] = ()
) -> list[dict[str, Any]]:
    frame = build_raw_weather(_build_landed(spark, *lines), extra_fields=extra_fields)
    audit_columns = [REJECT_REASON, REJECTED_LINE, FIELDS_SEEN]
    assert frame.columns == [*RAW_WEATHER.column_names, *extra_fields, *audit_columns]
    return collect_in_utc(frame)


def _build_landed(spark: SparkSession, *lines: str) -> DataFrame:
    schema = "value string, landing_hour timestamp, landing_date date, source_file string"
    return spark.createDataFrame([(line, *LANDED.values()) for line in lines], schema)


def dump(**changes: Any) -> str:
    return json.dumps(REPORT | changes)


def test_columns_are_those_of_the_table(spark: SparkSession) -> None:
    audited = build_raw_weather(_build_landed(spark, dump()))
    audit = [(name, "string") for name in (REJECT_REASON, REJECTED_LINE, FIELDS_SEEN)]
    assert audited.dtypes == [*list_types(RAW_WEATHER), *audit]


def test_report_becomes_a_typed_row_and_nulls_stay_null(spark: SparkSession) -> None:
    required = {name: REPORT[name] for name in ("origin", "time_hour")}
    rows = build_raw(spark, dump(), json.dumps(required), dump(temp=None, hour=None, visib=None))
    audit = {REJECT_REASON: None, REJECTED_LINE: None}
    every_field = {FIELDS_SEEN: FIELD_SEPARATOR.join(REPORT)}
    full = LANDED | REPORT | {"time_hour": HOUR} | audit | every_field
    assert rows == [
        full,
        dict.fromkeys(REPORT)
        | LANDED
        | audit
        | {"origin": "EWR", "time_hour": HOUR, FIELDS_SEEN: FIELD_SEPARATOR.join(required)},
        full | {"temp": None, "hour": None, "visib": None},
    ]


def test_nothing_is_dropped_or_deduplicated(spark: SparkSession) -> None:
    rows = build_raw(spark, dump(), dump(), dump(temp=1), dump(origin="JFK"), dump(origin="BOS"))
    assert sorted((row["origin"], row["temp"]) for row in rows) == [
        ("BOS", 39.02),
        ("EWR", 1.0),
        ("EWR", 39.02),
        ("EWR", 39.02),
        ("JFK", 39.02),
    ]
    assert {row[REJECT_REASON] for row in rows} == {None}


def test_report_of_another_hour_is_rejected(spark: SparkSession) -> None:
    reasons = {
        "2013-01-02T02:00:00Z": OTHER_HOUR,
        "2013-01-02T04:00:00Z": OTHER_HOUR,
        "2013-01-03T03:00:00Z": OTHER_HOUR,
        "2012-01-02T03:00:00Z": OTHER_HOUR,
        # Within the hour, but not its beginning: staging would find no place for it.
        "2013-01-02T03:30:00Z": OTHER_HOUR,
        # The local hour, said to be UTC, and as the instant that it is.
        "2013-01-01T22:00:00Z": OTHER_HOUR,
        "2013-01-01T22:00:00-05:00": None,
        "2013-01-02T03:00:00+00:00": None,
    }
    lines = {dump(time_hour=text): reason for text, reason in reasons.items()}
    rows = build_raw(spark, *lines)
    assert [row[REJECT_REASON] for row in rows] == list(lines.values())
    rejected = [line if reason else None for line, reason in lines.items()]
    assert [row[REJECTED_LINE] for row in rows] == rejected
    assert {(row["landing_hour"], row["landing_date"]) for row in rows} == {
        (HOUR, dt.date(2013, 1, 2))
    }
