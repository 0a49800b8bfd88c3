"""What one grouped pass finds out about each partition."""

import datetime as dt

from pyspark.sql import SparkSession

from backfill_assets.lake.tables import build_ddl
from backfill_assets.quality.audit_columns import REJECT_REASON, UNKNOWN_FIELDS
from backfill_assets.quality.measures import PartitionMeasures, measure_partitions
from backfill_assets_tests.conftest import build_days
from backfill_assets_tests.lake.readings import READINGS, build_frame, build_rows

DAYS = build_days("2013-01-01", 3)
NOTHING = PartitionMeasures(
    rows=0, checksum="0000000000000000", rejects=0, reject_example=None, unknown_fields=()
)
PARSED_SCHEMA = (
    f"{build_ddl(READINGS.columns, constraints=False)}, source_file STRING, "
    f"{REJECT_REASON} STRING, {UNKNOWN_FIELDS} ARRAY<STRING>"
)
Parsed = tuple[dt.date, int | None, str | None, str, str | None, list[str]]


def test_rows_are_counted_per_partition(spark: SparkSession) -> None:
    frame = build_frame(spark, build_rows(DAYS[:1], "x", ids=5) + build_rows(DAYS[1:], "x", ids=2))
    measures = measure_partitions(frame, READINGS, DAYS)
    assert {key: one.rows for key, one in measures.items()} == {
        "2013-01-01": 5,
        "2013-01-02": 2,
        "2013-01-03": 2,
    }


def test_partitions_without_rows_are_all_zero(spark: SparkSession) -> None:
    measures = measure_partitions(build_frame(spark, build_rows(DAYS[1:2], "x")), READINGS, DAYS)
    assert list(measures) == [day.key for day in DAYS]
    assert measures["2013-01-01"] == measures["2013-01-03"] == NOTHING
    assert measures["2013-01-02"].rows == 2


def test_equal_rows_of_another_day_have_another_checksum(spark: SparkSession) -> None:
    measures = measure_partitions(build_frame(spark, build_rows(DAYS, "x")), READINGS, DAYS)
    assert len({one.checksum for one in measures.values()}) == len(DAYS)


def test_rejects_and_unknown_fields_are_told_by_partition(spark: SparkSession) -> None:
    first, second, third = (dt.date(2013, 1, day) for day in (1, 2, 3))
    parsed: list[Parsed] = [
        (first, 1, "x", "a.json", None, ["extra", "b"]),
        (first, None, None, "a.json", "not JSON", []),
        (first, None, None, "a.json", "not JSON", ["c", "b"]),
        (second, 1, "x", "b.json", None, []),
        (third, None, None, "c.json", "not JSON", []),
    ]
    measures = measure_partitions(spark.createDataFrame(parsed, PARSED_SCHEMA), READINGS, DAYS)
    one, two, three = measures.values()
    assert (one.rows, one.rejects, one.reject_example) == (1, 2, "a.json: not JSON")
    assert one.unknown_fields == ("b", "c", "extra")
    assert (two.rows, two.rejects, two.reject_example, two.unknown_fields) == (1, 0, None, ())
    assert (three.rows, three.rejects, three.checksum) == (0, 1, NOTHING.checksum)


def test_rejected_rows_do_not_change_the_checksum(spark: SparkSession) -> None:
    good: Parsed = (dt.date(2013, 1, 1), 1, "x", "a.json", None, [])
    bad: Parsed = (dt.date(2013, 1, 1), None, None, "a.json", "not JSON", [])
    with_reject = spark.createDataFrame([good, bad], PARSED_SCHEMA)
    plain = build_frame(spark, [(dt.date(2013, 1, 1), 1, "x")])
    assert (
        measure_partitions(with_reject, READINGS, DAYS)["2013-01-01"].checksum
        == measure_partitions(plain, READINGS, DAYS)["2013-01-01"].checksum
    )
