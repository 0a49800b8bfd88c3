"""Tables over inputs of another grain: months over days, days over months, buckets over buckets."""

import datetime as dt
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pytest
from dagster import DagsterInstance
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from backfill_engine import (
    Calendar,
    ExternalDelta,
    InputWindow,
    Table,
    TableAsset,
    Upstream,
    required,
    table_asset,
)
from backfill_engine.grains import MONTHS, QUARTERS, Buckets, Days
from backfill_engine.rules import Reconciled, Values
from backfill_engine_tests.pipeline.mapped_tables import (
    build_mapped_tables,
    write_theirs,
)

pytestmark = pytest.mark.spark

CALENDAR = Calendar(dt.date(2024, 1, 1), dt.date(2024, 3, 1))
LITRES, READINGS = required("litres", "BIGINT"), required("readings", "BIGINT")
DAY, MONTH = required("day", "DATE"), required("month", "DATE")
STAGING = Table("staging", "days", "day", (DAY, LITRES), rules=(Values("litres", 0, 99),))
OF_MONTHS = Table(
    *("gold", "months", "month"),
    (MONTH, LITRES, READINGS),
    grain=MONTHS,
    rules=(Reconciled(total_of="readings"),),
)
SHARES = Table("gold", "shares", "day", (DAY, required("share", "DOUBLE")))
JANUARY, FEBRUARY = "2024-01-01", "2024-02-01"


def declare_days(theirs: ExternalDelta) -> list[TableAsset]:
    """Days of somebody else's, months of these, and each day's share of its month."""

    @table_asset(STAGING, inputs=[Upstream(theirs)])
    def days(window: InputWindow) -> DataFrame:
        """One row per reading."""
        return window.read(theirs, column="day")

    @table_asset(OF_MONTHS, inputs=[Upstream(STAGING)])
    def months(window: InputWindow) -> DataFrame:
        """One row per month."""
        month = F.trunc("day", "month").alias("month")
        readings = F.count("*").alias("readings")
        rows = window.read(STAGING, column="day").groupBy(month)
        return rows.agg(F.sum("litres").alias("litres"), readings)

    @table_asset(SHARES, inputs=[Upstream(STAGING), Upstream(OF_MONTHS)])
    def shares(window: InputWindow) -> DataFrame:
        """One row per reading."""
        months = window.read(OF_MONTHS, column="month").select("month", F.col("litres").alias("of"))
        days = window.read(STAGING, column="day").withColumn("month", F.trunc("day", "month"))
        rows = days.join(months, "month", "left")
        return rows.select("day", (F.col("litres") / F.col("of")).alias("share"))

    return [days, months, shares]


def test_months_and_days_read_each_other(
    spark: SparkSession, tmp_path: Path, instance: DagsterInstance
) -> None:
    location = tmp_path / "theirs"
    theirs = ExternalDelta("theirs", "days", "day", (DAY, LITRES), location=str(location))
    tables = build_mapped_tables(tmp_path, declare_days(theirs), instance, CALENDAR)

    def land(litres: int, *days: dt.date) -> None:
        write_theirs(location, "day", {"day": days, "litres": [litres] * len(days)})

    first = dt.date(2024, 1, 1)
    land(1, *(first + dt.timedelta(days=number) for number in range(60)))
    bad = dt.date(2024, 2, 10)
    land(-1, bad)
    assert not tables.run(STAGING, "2024-01-01", "2024-02-29")
    assert not tables.run(OF_MONTHS, JANUARY, FEBRUARY)
    january = {"month": first, "litres": 31, "readings": 31}
    assert tables.read_rows(OF_MONTHS) == [january], "the withheld day keeps its month back"
    assert len(tables.read_log(OF_MONTHS).publishes[JANUARY].consumed.upstream[STAGING.key]) == 31

    land(2, bad)
    assert tables.run(STAGING, str(bad))
    assert tables.find_due(OF_MONTHS, JANUARY, FEBRUARY) == [FEBRUARY]
    assert tables.run(OF_MONTHS, FEBRUARY)
    february = {"month": dt.date(2024, 2, 1), "litres": 30, "readings": 29}
    assert tables.read_rows(OF_MONTHS) == [january, february]
    assert tables.find_due(OF_MONTHS, JANUARY, FEBRUARY) == []

    assert tables.run(SHARES, "2024-01-31", "2024-02-01")
    assert [row["share"] for row in tables.read_rows(SHARES)] == [1 / 31, 1 / 30]
    land(33, dt.date(2024, 1, 31))
    assert tables.run(STAGING, "2024-01-31")
    assert tables.find_due(OF_MONTHS, JANUARY, FEBRUARY) == [JANUARY]
    assert tables.run(OF_MONTHS, JANUARY)
    assert tables.find_due(SHARES, "2024-01-31", "2024-02-01") == ["2024-01-31"]
    assert tables.run(SHARES, "2024-01-31")
    assert [row["share"] for row in tables.read_rows(SHARES)] == [33 / 63, 1 / 30]


BY = required("bucket", "BIGINT")
FINE = Table("staging", "fine", "bucket", (BY, LITRES), grain=Buckets(10, 200))
COARSE = Table(
    *("gold", "coarse", "bucket"),
    (BY, LITRES, READINGS),
    grain=Buckets(100, 200),
    rules=(Reconciled(total_of="readings"),),
)
BACK = Table("gold", "back", "bucket", (BY, LITRES), grain=Buckets(10, 200))


def declare_buckets(theirs: ExternalDelta) -> list[TableAsset]:
    """Buckets of ten integers, of a hundred, and of ten again."""

    @table_asset(FINE, inputs=[Upstream(theirs)])
    def fine(window: InputWindow) -> DataFrame:
        """One row per reading."""
        return window.read(theirs, column="bucket")

    @table_asset(COARSE, inputs=[Upstream(FINE)])
    def coarse(window: InputWindow) -> DataFrame:
        """One row per hundred."""
        bucket = F.expr("bucket - bucket % 100").alias("bucket")
        rows = window.read(FINE, column="bucket").groupBy(bucket)
        return rows.agg(F.sum("litres").alias("litres"), F.count("*").alias("readings"))

    @table_asset(BACK, inputs=[Upstream(COARSE)])
    def back(window: InputWindow) -> DataFrame:
        """One row per ten, of what their hundred has."""
        hundreds = window.read(COARSE, column="bucket").select("bucket", "litres")
        tens = window.list_partitions().withColumnRenamed("bucket", "ten")
        rows = tens.join(hundreds, F.expr("bucket = ten - ten % 100"))
        return rows.select(F.col("ten").alias("bucket"), "litres")

    return [fine, coarse, back]


def test_buckets_read_others_that_are_larger_and_smaller(
    spark: SparkSession, tmp_path: Path, instance: DagsterInstance
) -> None:
    location = tmp_path / "theirs"
    theirs = ExternalDelta(
        "theirs", "tens", "bucket", (BY, LITRES), grain=Buckets(10, 200), location=str(location)
    )
    tables = build_mapped_tables(tmp_path, declare_buckets(theirs), instance, CALENDAR)

    def land(litres: Mapping[int, int]) -> None:
        write_theirs(location, "bucket", {"bucket": [*litres], "litres": [*litres.values()]})

    def read(table: Table) -> dict[int, int]:
        return {row["bucket"]: row["litres"] for row in tables.read_rows(table)}

    land({bucket: 1 for bucket in range(0, 200, 10) if bucket != 150})
    assert not tables.run(FINE, "0000000", "0000190"), "one never came"
    assert not tables.run(COARSE, "0000000", "0000100")
    assert read(COARSE) == {0: 10}
    land({150: 5})
    assert tables.run(FINE, "0000150")
    assert tables.run(COARSE, "0000100")
    assert read(COARSE) == {0: 10, 100: 14}
    assert tables.run(BACK, "0000090", "0000100")
    assert read(BACK) == {90: 10, 100: 14}
    land({20: 7})
    assert tables.run(FINE, "0000020")
    assert tables.find_due(COARSE, "0000000", "0000100") == ["0000000"]
    assert tables.run(COARSE, "0000000")
    assert tables.find_due(BACK, "0000090", "0000100") == ["0000090"]
    assert tables.run(BACK, "0000090")
    assert read(BACK) == {90: 16, 100: 14}


DS = Days("%Y%m%d", type="INT")
WRITTEN = Table(
    *("staging", "written", "ds"),
    (required("ds", "STRING"), LITRES),
    grain=Days("%Y-%m-%d"),
    rules=(Reconciled(),),
)
OF_QUARTERS = Table(
    *("gold", "quarters", "quarter"),
    (required("quarter", "DATE"), LITRES, READINGS),
    grain=QUARTERS,
    rules=(Reconciled(total_of="readings"),),
)


def declare_quarters(theirs: ExternalDelta) -> list[TableAsset]:
    """Days of somebody else's, as texts, and quarters of these."""

    @table_asset(WRITTEN, inputs=[Upstream(theirs)])
    def written(window: InputWindow) -> DataFrame:
        """One row per reading."""
        text = F.regexp_replace(F.col("ds").cast("string"), "(....)(..)(..)", "$1-$2-$3")
        return window.read(theirs, column="ds").withColumn("ds", text)

    @table_asset(OF_QUARTERS, inputs=[Upstream(WRITTEN)])
    def quarters(window: InputWindow) -> DataFrame:
        """One row per quarter."""
        quarter = F.trunc(F.to_date("ds"), "quarter").alias("quarter")
        rows = window.read(WRITTEN, column="ds").groupBy(quarter)
        return rows.agg(F.sum("litres").alias("litres"), F.count("*").alias("readings"))

    return [written, quarters]


def test_quarters_read_days_that_are_written_as_texts_and_integers(
    spark: SparkSession, tmp_path: Path, instance: DagsterInstance
) -> None:
    location = tmp_path / "theirs"
    columns = (required("ds", "INT"), LITRES)
    theirs = ExternalDelta("theirs", "hive", "ds", columns, grain=DS, location=str(location))
    calendar = Calendar(dt.date(2023, 1, 1), dt.date(2023, 4, 1))
    tables = build_mapped_tables(tmp_path, declare_quarters(theirs), instance, calendar)
    days = [dt.date(2023, 1, 1) + dt.timedelta(days=number) for number in range(90)]

    def land(litres: int, *landed: dt.date) -> None:
        values = pa.array([DS.find_stored(day) for day in landed], pa.int32())
        write_theirs(location, "ds", {"ds": values, "litres": [litres] * len(landed)})

    land(1, *days)
    assert tables.run(WRITTEN, "2023-01-01", "2023-03-31")
    first = tables.read_rows(WRITTEN)[0]
    assert first == {"ds": "2023-01-01", "litres": 1}
    assert tables.run(OF_QUARTERS, "2023-01-01")
    assert [row["litres"] for row in tables.read_rows(OF_QUARTERS)] == [90]
    land(6, days[31])
    assert tables.find_due(WRITTEN, "2023-01-01", "2023-03-31") == ["2023-02-01"]
    assert tables.run(WRITTEN, "2023-02-01")
    assert tables.find_due(OF_QUARTERS, "2023-01-01", "2023-01-01") == ["2023-01-01"]
    assert tables.run(OF_QUARTERS, "2023-01-01")
    assert [row["litres"] for row in tables.read_rows(OF_QUARTERS)] == [95]
    assert tables.find_due(WRITTEN, "2023-01-01", "2023-03-31") == []
