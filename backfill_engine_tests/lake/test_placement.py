"""Spark finds a row's partition as Python does: from its value, and from where it landed."""

import datetime as dt
from collections.abc import Sequence

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from backfill_engine.grains.buckets import Buckets
from backfill_engine.grains.dates import DAYS, MONTHS, QUARTERS, WEEKS, YEARS
from backfill_engine.grains.grain import Grain, SliceBound
from backfill_engine.grains.timestamps import HOURS, Minutes
from backfill_engine.lake.reader import build_number
from backfill_engine_tests.transforms.instants import collect_in_utc

HALF_HOUR = dt.timedelta(minutes=30)
MIDNIGHT = dt.datetime(2013, 3, 10, tzinfo=dt.UTC)
DATES = [
    dt.date.fromisoformat(day)
    for day in (
        *("0001-01-01", "1600-02-29", "1969-12-28", "1969-12-29", "1969-12-31", "1970-01-01"),
        *("1970-01-04", "1970-01-05", "2012-02-29", "2013-03-10", "2400-01-01", "9999-12-31"),
    )
]
INSTANTS = [
    *(MIDNIGHT + n * HALF_HOUR for n in range(48)),  # New York's clocks go on at 07:00 UTC,
    *(dt.datetime(2013, 11, 3, tzinfo=dt.UTC) + n * HALF_HOUR for n in range(48)),  # back at 06:00
    dt.datetime(1900, 1, 1, 0, 30, tzinfo=dt.UTC),
    dt.datetime(1969, 12, 31, 22, 59, 59, 999_999, tzinfo=dt.UTC),
    dt.datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=dt.UTC),
    dt.datetime(1970, 1, 1, tzinfo=dt.UTC),
    dt.datetime(2013, 1, 1, 0, 59, 59, 999_999, tzinfo=dt.UTC),
]
INTEGERS = [n * sign for n in (0, 1, 6, 7, 8, 2**31, 2**53 + 1, 2**62 + 3) for sign in (1, -1)]
STEPS = (1, 7, 2**40)


@pytest.mark.only_spark
def test_spark_numbers_partitions_as_grains_do(spark: SparkSession) -> None:
    cases: list[tuple[Grain, str, Sequence[SliceBound]]] = [
        *((grain, "DATE", DATES) for grain in (DAYS, WEEKS, MONTHS, QUARTERS, YEARS)),
        *((grain, "TIMESTAMP", INSTANTS) for grain in (HOURS, Minutes(15), Minutes(360))),
        *((Buckets(step, 100_000), "BIGINT", INTEGERS) for step in STEPS),
        *((Buckets(step, 100_000), "INT", [0, 6, 7, -1, 2**31 - 1]) for step in STEPS),
    ]
    for grain, column_type, values in cases:
        frame = spark.createDataFrame([(value,) for value in values], f"value {column_type}")
        numbers = frame.select(build_number(grain, "value").alias("number"))
        assert numbers.dtypes == [("number", "bigint")]
        found = [row.number for row in numbers.collect()]
        assert found == [grain.find_number(value) for value in values]
        firsts = [row[0] for row in frame.select(F.expr(grain.first_sql("value"))).collect()]
        if column_type != "TIMESTAMP":  # which is the moment itself
            assert firsts == [grain.find_first(value) for value in values]


def test_spark_finds_starts_from_landing_folders(spark: SparkSession) -> None:
    monday = dt.date(2012, 12, 31)
    at = dt.datetime(2013, 1, 31, 23, 45, tzinfo=dt.UTC)
    cases: list[tuple[Grain, SliceBound]] = [
        (DAYS, dt.date(2013, 2, 28)),
        (WEEKS, monday),
        (MONTHS, dt.date(2013, 12, 1)),
        (HOURS, at.replace(minute=0)),
        (Minutes(15), at),
    ]
    for grain, start in cases:
        parts = (part.split("=") for part in grain.find_landing_folder(start).split("/"))
        folder = spark.range(1).select(*(F.lit(int(value)).alias(name) for name, value in parts))
        found = folder.select(F.expr(grain.landing_start).alias("start"))
        assert collect_in_utc(found) == [{"start": start}]
