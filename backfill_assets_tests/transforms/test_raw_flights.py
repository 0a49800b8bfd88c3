"""Landed flight records become typed rows, one for each line."""

import datetime as dt
import json

import pytest
from pyspark.sql import Row, SparkSession

from backfill_assets.quality.audit_columns import REJECT_REASON, UNKNOWN_FIELDS
from backfill_assets.tables.flights import RAW_FLIGHTS
from backfill_assets.transforms.raw_flights import build_raw_flights

LANDED = dt.date(2013, 1, 2)
FLIGHT = {
    "year": 2013,
    "month": 1,
    "day": 1,
    "carrier": "UA",
    "flight": 1545,
    "origin": "EWR",
    "dep_delay": 2,
    "time_hour": "2013-01-01T10:00:00Z",
}


def build_rows(spark: SparkSession, *lines: str) -> list[Row]:
    landed = [(line, LANDED, "flights/a.json") for line in lines]
    schema = "value string, landing_date date, source_file string"
    frame = build_raw_flights(spark.createDataFrame(landed, schema))
    assert frame.columns == [*RAW_FLIGHTS.column_names, REJECT_REASON, UNKNOWN_FIELDS]
    return frame.collect()


def test_record_gets_its_flight_date_landing_day_and_file(spark: SparkSession) -> None:
    (row,) = build_rows(spark, json.dumps(FLIGHT))
    assert (row.flight_date, row.landing_date) == (dt.date(2013, 1, 1), LANDED)
    assert row.source_file == "flights/a.json"
    assert (row.carrier, row.flight, row.dep_delay, row.arr_delay) == ("UA", 1545, 2, None)
    assert row[REJECT_REASON] is None


def test_equal_records_stay_two_rows(spark: SparkSession) -> None:
    assert len(build_rows(spark, json.dumps(FLIGHT), json.dumps(FLIGHT))) == 2


@pytest.mark.parametrize(
    "change", [{"month": 13}, {"day": 0}, {"month": 2, "day": 29}, {"month": 2, "day": 30}]
)
def test_date_that_does_not_exist_is_rejected(spark: SparkSession, change: dict[str, int]) -> None:
    (row,) = build_rows(spark, json.dumps({**FLIGHT, **change}))
    assert row[REJECT_REASON] == "`year`, `month`, `day` are no date"
    assert row.landing_date == LANDED


def test_leap_day_is_a_date(spark: SparkSession) -> None:
    (row,) = build_rows(spark, json.dumps({**FLIGHT, "year": 2012, "month": 2, "day": 29}))
    assert (row.flight_date, row[REJECT_REASON]) == (dt.date(2012, 2, 29), None)


def test_reason_of_the_parser_comes_before_the_missing_date(spark: SparkSession) -> None:
    missing, broken = build_rows(spark, json.dumps({**FLIGHT, "year": None}), "{")
    assert missing[REJECT_REASON] == "`year` is missing"
    assert broken[REJECT_REASON] == "the line is not one JSON object"


def test_unknown_fields_are_passed_on(spark: SparkSession) -> None:
    (row,) = build_rows(spark, json.dumps({**FLIGHT, "gate": "B2"}))
    assert row[UNKNOWN_FIELDS] == ["gate"]
