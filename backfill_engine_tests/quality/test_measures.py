"""What one grouped pass finds out about each partition."""

import datetime as dt
import json
import math

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from backfill_engine.audit_columns import (
    DUPLICATES,
    FIELD_SEPARATOR,
    FIELDS_SEEN,
    IDENTICAL,
    REJECT_REASON,
)
from backfill_engine.quality.measures import measure_partitions
from backfill_engine.rules.column_rules import Nulls, Values
from backfill_engine.rules.count_rules import Reconciled
from backfill_engine.rules.declared import RequiredColumns
from backfill_engine.rules.drift import Drift
from backfill_engine.rules.measured import (
    BINS,
    NOT_MEASURED,
    NULLS,
    NULLS_OF_MANY,
    PartitionMeasures,
)
from backfill_engine.tables.declarations import Column, Table, build_ddl, required
from backfill_engine_tests.lake.readings import READINGS, build_frame, build_rows
from backfill_engine_tests.shared_fixtures import build_days, count_jobs

DAYS = build_days("2013-01-01", 3)
NOTHING = PartitionMeasures(rows=0, checksum="0000000000000000")
PARSED_SCHEMA = (
    f"{build_ddl(READINGS.columns, constraints=False)}, source_file STRING, "
    f"{REJECT_REASON} STRING, {FIELDS_SEEN} STRING"
)
Parsed = tuple[dt.date, int | None, str | None, str, str | None, str]


def test_partitions_without_rows_are_all_zero(spark: SparkSession) -> None:
    measures = measure_partitions(build_frame(spark, build_rows(DAYS[1:2], "x")), READINGS, DAYS)
    assert list(measures) == [day.key for day in DAYS]
    assert measures["2013-01-01"] == measures["2013-01-03"] == NOTHING
    assert measures["2013-01-02"].rows == 2


def test_equal_rows_of_another_day_have_another_checksum(spark: SparkSession) -> None:
    measures = measure_partitions(build_frame(spark, build_rows(DAYS, "x")), READINGS, DAYS)
    assert len({measured.checksum for measured in measures.values()}) == len(DAYS)


def test_rejects_are_told_by_partition(spark: SparkSession) -> None:
    first, second, third = (dt.date(2013, 1, day) for day in (1, 2, 3))
    parsed: list[Parsed] = [
        (first, 1, "x", "a.json", None, "id"),
        (first, None, None, "b.json", "not JSON", ""),
        (first, None, None, "a.json", "not JSON", ""),
        (second, 1, "x", "b.json", None, "id"),
        (third, None, None, "c.json", "`id` is missing", "value"),
    ]
    measures = measure_partitions(spark.createDataFrame(parsed, PARSED_SCHEMA), READINGS, DAYS)
    first_day, second_day, third_day = measures.values()
    assert (first_day.rows, first_day.rejects) == (1, 2)
    assert (second_day.rows, second_day.rejects) == (1, 0)
    assert (third_day.rows, third_day.rejects) == (0, 1)
    assert third_day.checksum == NOTHING.checksum


def test_fields_of_good_records_are_gathered_by_partition(spark: SparkSession) -> None:
    first, second = (dt.date(2013, 1, day) for day in (1, 2))
    parsed: list[Parsed] = [
        (first, 1, "x", "a.json", None, FIELD_SEPARATOR.join(("id", "value"))),
        (first, None, None, "a.json", "`id` is missing", FIELD_SEPARATOR.join(("value", "wind"))),
        (second, None, None, "a.json", "not JSON", ""),
    ]
    measures = measure_partitions(spark.createDataFrame(parsed, PARSED_SCHEMA), READINGS, DAYS)
    assert [measured.fields_seen for measured in measures.values()] == [
        {"id", "value"},
        frozenset(),
        None,
    ]


@pytest.mark.only_spark
def test_fields_are_listed_only_where_a_good_record_has_others(spark: SparkSession) -> None:
    first, second = (dt.date(2013, 1, day) for day in (1, 2))
    whole, less = FIELD_SEPARATOR.join(("id", "value")), "id"
    parsed: list[Parsed] = [
        (first, 1, "x", "a.json", None, whole),
        (first, None, None, "a.json", "not JSON", ""),
        (second, None, None, "a.json", "not JSON", ""),
    ]
    jobs: list[int] = []
    for added in (None, less):
        rows = [*parsed, *([(first, 2, "y", "a.json", None, added)] if added else [])]
        frame = spark.createDataFrame(rows, PARSED_SCHEMA)
        before = count_jobs(spark)
        measures = measure_partitions(frame, READINGS, DAYS, fields=("id", "value"))
        jobs.append(count_jobs(spark) - before)
        assert [measured.fields_seen for measured in measures.values()] == [
            {"id", "value"},
            frozenset(),
            None,
        ]
    assert jobs[0] < jobs[1]


def test_rejected_rows_do_not_change_the_checksum(spark: SparkSession) -> None:
    good: Parsed = (dt.date(2013, 1, 1), 1, "x", "a.json", None, "id")
    bad: Parsed = (dt.date(2013, 1, 1), None, None, "a.json", "not JSON", "")
    with_reject = spark.createDataFrame([good, bad], PARSED_SCHEMA)
    plain = build_frame(spark, [(dt.date(2013, 1, 1), 1, "x")])
    assert (
        measure_partitions(with_reject, READINGS, DAYS)["2013-01-01"].checksum
        == measure_partitions(plain, READINGS, DAYS)["2013-01-01"].checksum
    )


def test_rows_without_a_required_value_are_counted(spark: SparkSession) -> None:
    day = build_days("2013-01-01")
    rows = [(day[0].slice.start, None, "x"), (day[0].slice.start, 1, None)]
    measures = measure_partitions(build_frame(spark, rows), READINGS, day)  # type: ignore[arg-type]
    assert measures["2013-01-01"].figures[RequiredColumns(("day", "id")).figure] == 1


def test_rows_that_share_a_key_are_counted_beyond_the_first(spark: SparkSession) -> None:
    rows = build_rows(DAYS[:2], "x", ids=3) + 2 * build_rows(DAYS[:1], "y", ids=1)
    measures = measure_partitions(build_frame(spark, rows), READINGS, DAYS)
    assert [measured.key_duplicates for measured in measures.values()] == [2, 0, 0]


def test_dropped_records_are_summed_up_where_the_transform_tells_them(spark: SparkSession) -> None:
    frame = build_frame(spark, build_rows(DAYS[:2], "x", ids=3))
    (plain, _, _) = measure_partitions(frame, READINGS, DAYS).values()
    assert (plain.duplicates_dropped, plain.identical_dropped) == (0, None)
    counted = frame.withColumns({DUPLICATES: F.col("id") + 2, IDENTICAL: F.col("id")})
    first, _, third = measure_partitions(counted, READINGS, DAYS).values()
    assert (first.duplicates_dropped, first.identical_dropped) == (9, 3)
    assert third == NOTHING


VALUES = Values("delay", -10, 10)
TOTAL = Reconciled(total_of="count")
DRIFT = Drift("delay", edges=(0, 5))
LACKING = RequiredColumns(("day",)).figure
RULED = Table(
    layer="raw",
    name="ruled",
    partition_by="day",
    columns=(
        required("day", "DATE", "Day"),
        Column("delay", "INT", "Minutes"),
        Column("count", "BIGINT", "Source records"),
    ),
    rules=(
        Nulls("delay"),
        VALUES,
        TOTAL,
        DRIFT,
    ),
)


def test_rules_get_the_figures_that_they_ask_for(spark: SparkSession) -> None:
    first, second = (dt.date(2013, 1, day) for day in (1, 2))
    delays = [None, None, -11, -10, -1, 0, 0, 4, 5, 10, 11]
    rows = [(first, delay, 2, None, 1) for delay in delays]
    rows += [(first, None, None, "rejected", 0), (second, None, None, None, 0)]
    schema = f"{build_ddl(RULED.columns, constraints=False)}, {REJECT_REASON} STRING"
    frame = spark.createDataFrame(rows, f"{schema}, {DUPLICATES} BIGINT")
    measures = measure_partitions(frame.selectExpr("*", "'a' source_file"), RULED, DAYS)
    full, nulls_only, nothing = measures.values()
    assert (full.rows, full.duplicates_dropped, full.key_duplicates) == (11, 11, 0)
    assert full.figures == {
        LACKING: 0,
        (NULLS, "delay"): 2,
        (NULLS_OF_MANY, "count"): NOT_MEASURED,
        (NULLS_OF_MANY, "delay"): NOT_MEASURED,
        VALUES.figure: 2,
        TOTAL.figure: 22,
        (BINS, DRIFT.histogram): (3, 3, 3, 2),
    }
    assert nulls_only.rows == 1
    assert nulls_only.figures == {
        LACKING: 0,
        (NULLS, "delay"): 1,
        (NULLS_OF_MANY, "count"): NOT_MEASURED,
        (NULLS_OF_MANY, "delay"): NOT_MEASURED,
        VALUES.figure: 0,
        TOTAL.figure: 0,
        (BINS, DRIFT.histogram): (0, 0, 0, 1),
    }
    assert nothing == NOTHING
    # Commits hold this; older ones are read by it.
    assert json.dumps(full.profile().to_json()) == (
        f'{{"r": 11, "n": {{"delay": 2}}, "h": {{"{DRIFT.histogram}": [3, 3, 3, 2]}}}}'
    )
    assert DRIFT.histogram == "delay/c93692c2"


def test_nulls_of_any_column_are_counted_where_there_are_rows_enough(spark: SparkSession) -> None:
    """Rows that are not to be published are none of them."""
    first, second = (dt.date(2013, 1, day) for day in (1, 2))
    rows = [(first, None, number or None, None) for number in range(50)]
    rows += [(second, None, None, None)] * 49 + [(second, None, None, "rejected")] * 9
    schema = f"{build_ddl(RULED.columns, constraints=False)}, {REJECT_REASON} STRING"
    full, few, _ = measure_partitions(spark.createDataFrame(rows, schema), RULED, DAYS).values()
    assert full.profile().nulls == {"count": 1, "delay": 50}
    assert few.profile().nulls == {"delay": 49}


def test_bounds_are_as_exact_as_the_values(spark: SparkSession) -> None:
    """As DECIMAL, SQL's 0.1 would not be the DOUBLE 0.1."""
    level = Column("the-level", "DOUBLE", "A name that must be quoted")
    bounds = ((0.1, math.inf), (-math.inf, 0.1), (0, 0.3), (0.30000000000000004, 1))
    ranges = tuple(Values(level.name, low, high) for low, high in bounds)
    edges = Drift(level.name, (0.1, 0.30000000000000004))
    table = Table(
        "raw", "levels", "day", (required("day", "DATE", "Day"), level), rules=(*ranges, edges)
    )
    levels = [0.1, 0.3, 0.30000000000000004, math.nan, math.inf, -math.inf, None]
    rows = [(dt.date(2013, 1, 1), value) for value in levels]
    frame = spark.createDataFrame(rows, "day DATE, `the-level` DOUBLE")
    (measured,) = measure_partitions(frame, table, DAYS[:1]).values()
    # NaN is larger than any number.
    assert [measured.figures[rule.figure] for rule in ranges] == [2, 4, 4, 5]
    assert measured.profile().histograms == {edges.histogram: (1, 2, 3, 1)}
