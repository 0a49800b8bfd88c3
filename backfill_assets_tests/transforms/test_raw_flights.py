"""Landed flight records become typed rows, one for each line."""

import datetime as dt
import json
from typing import Any

import pytest
from pyspark.sql import Row, SparkSession

from backfill_assets.tables.flights import RAW_FLIGHTS
from backfill_assets.transforms.raw_flights import build_raw_flights
from backfill_engine.audit_columns import (
    BEFORE_FIRST_PARTITION,
    FIELDS_SEEN,
    REJECT_REASON,
    REJECTED_LINE,
)

BEGIN = dt.date(2012, 1, 1)
LANDED = dt.date(2013, 1, 2)
FLIGHT: dict[str, Any] = {
    "year": 2013,
    "month": 1,
    "day": 1,
    "carrier": "UA",
    "flight": 1545,
    "origin": "EWR",
    "dep_delay": 2,
    "time_hour": "2013-01-01T10:00:00Z",
}


def build_rows(
    spark: SparkSession,
    *lines: str,
    begin: dt.date = BEGIN,
    extra_fields: tuple[str, ...] = (),
) -> list[Row]:
    landed = [(line, LANDED, "flights/a.json") for line in lines]
    schema = "value string, landing_date date, source_file string"
    frame = build_raw_flights(
        spark.createDataFrame(landed, schema), begin=begin, extra_fields=extra_fields
    )
    audit_columns = [REJECT_REASON, REJECTED_LINE, FIELDS_SEEN]
    assert frame.columns == [*RAW_FLIGHTS.column_names, *extra_fields, *audit_columns]
    return frame.collect()


def test_record_gets_its_flight_date_landing_day_and_file(spark: SparkSession) -> None:
    (row,) = build_rows(spark, json.dumps(FLIGHT))
    assert (row.flight_date, row.landing_date) == (dt.date(2013, 1, 1), LANDED)
    assert row.source_file == "flights/a.json"
    assert (row.carrier, row.flight, row.dep_delay, row.arr_delay) == ("UA", 1545, 2, None)
    assert (row[REJECT_REASON], row[REJECTED_LINE]) == (None, None)


def test_equal_records_stay_two_rows(spark: SparkSession) -> None:
    assert len(build_rows(spark, json.dumps(FLIGHT), json.dumps(FLIGHT))) == 2


def test_date_that_cannot_be_is_rejected_with_its_line(spark: SparkSession) -> None:
    no_date = "`year`, `month`, `day` are no date"
    reasons = {
        json.dumps({**FLIGHT, "month": 13}): no_date,
        json.dumps({**FLIGHT, "day": 0}): no_date,
        json.dumps({**FLIGHT, "month": 2, "day": 29}): no_date,
        json.dumps({**FLIGHT, "day": 3}): "the flight date is after the landing day",
        json.dumps({**FLIGHT, "year": 2011, "month": 12, "day": 31}): (
            "the flight date is before 2012-01-01"
        ),
    }
    rows = build_rows(spark, *reasons)
    assert {row[REJECTED_LINE]: row[REJECT_REASON] for row in rows} == reasons
    assert {row.landing_date for row in rows} == {LANDED}


def test_flights_of_the_days_before_the_first_are_due_in_its_first_days(
    spark: SparkSession,
) -> None:
    lines = [json.dumps({**FLIGHT, "year": 2012, "month": 12, "day": day}) for day in (30, 31)]
    rows = build_rows(spark, *lines, begin=dt.date(2013, 1, 1))
    too_old = "the flight date is before 2013-01-01"
    # They landed on January 2.
    assert [row[REJECT_REASON] for row in rows] == [too_old, BEFORE_FIRST_PARTITION + too_old]


@pytest.mark.parametrize(
    "date",
    [dt.date(2012, 1, 1), dt.date(2012, 2, 29), dt.date(2013, 1, 2)],
    ids=["first day", "leap day", "landing day"],
)
def test_date_that_may_be_is_kept(spark: SparkSession, date: dt.date) -> None:
    parts = {"year": date.year, "month": date.month, "day": date.day}
    (row,) = build_rows(spark, json.dumps({**FLIGHT, **parts}))
    assert (row.flight_date, row[REJECT_REASON]) == (date, None)


def test_reason_of_the_parser_comes_before_the_missing_date(spark: SparkSession) -> None:
    without_year = json.dumps({**FLIGHT, "year": None})
    rows = build_rows(spark, without_year, "{")
    assert {row[REJECTED_LINE]: row[REJECT_REASON] for row in rows} == {
        without_year: "`year` is missing",
        "{": "the line is not one JSON object",
    }
