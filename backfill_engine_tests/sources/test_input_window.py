"""A step reads its window of the inputs as they were when it began, and nothing else."""

import gzip
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.testing import assertDataFrameEqual

from backfill_engine.errors import LandingError
from backfill_engine.lake.partitions import Partition
from backfill_engine.lake.reader import SPARK_ERRORS, read_table
from backfill_engine.lake.table_log import read_log
from backfill_engine.lake.warehouse import Warehouse
from backfill_engine.lake.writer import create_table
from backfill_engine.sources.input_window import InputWindow
from backfill_engine.sources.json_landing import JsonLanding
from backfill_engine_tests.lake.readings import (
    READINGS,
    build_frame,
    build_rows,
    overwrite_readings,
)
from backfill_engine_tests.shared_fixtures import build_days

WEEK = build_days("2013-01-01", 7)
LANDING_SCHEMA = "value string, day date, source_file string"


def build_window(
    spark: SparkSession,
    warehouse: Warehouse,
    partitions: tuple[Partition, ...],
    *,
    version: int | None = None,
    landing: Path | None = None,
    dataset: str = "events",
) -> InputWindow:
    log = read_log(warehouse, READINGS, version=version)
    return InputWindow(
        spark=spark,
        target=log,
        partitions=partitions,
        inputs={READINGS.key: log},
        listing=JsonLanding(dataset).list_files(str(landing), READINGS, partitions)
        if landing
        else None,
    )


@pytest.fixture
def version(spark: SparkSession, warehouse: Warehouse) -> int:
    """The version in which READINGS hold "old" rows on each day of WEEK."""
    create_table(spark, read_log(warehouse, READINGS))
    return overwrite_readings(spark, warehouse, WEEK, build_rows(WEEK, "old"))


@pytest.fixture
def landing(tmp_path: Path) -> Path:
    (tmp_path / "landing" / "events").mkdir(parents=True)
    return tmp_path / "landing"


def land(landing: Path, day: str, name: str, content: bytes) -> None:
    year, month, of_month = day.split("-")
    folder = landing / "events" / f"year={year}" / f"month={month}" / f"day={of_month}"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(content)


def test_pinned_input_stays_when_the_table_is_rewritten(
    spark: SparkSession, warehouse: Warehouse, version: int
) -> None:
    window = build_window(spark, warehouse, WEEK, version=version)
    old = build_frame(spark, build_rows(WEEK, "old"))
    rows = window.read(READINGS, column="day").persist()
    assert rows.count() == 14
    overwrite_readings(spark, warehouse, WEEK, build_rows(WEEK, "new", ids=3))
    rows.unpersist(blocking=True)  # as when Spark runs out of memory: computed from the table again
    assertDataFrameEqual(rows, old)
    assertDataFrameEqual(window.read(READINGS, column="day"), old)
    assertDataFrameEqual(read_table(spark, read_log(warehouse, READINGS, version=version)), old)


def test_read_is_cut_to_the_partitions(
    spark: SparkSession, warehouse: Warehouse, version: int
) -> None:
    days = (WEEK[1], WEEK[2], WEEK[5])
    window = build_window(spark, warehouse, days, version=version)
    expected = build_frame(spark, build_rows(days, "old"))
    assertDataFrameEqual(window.read(READINGS, column="day"), expected)


def test_read_reaches_back_before_each_partition(
    spark: SparkSession, warehouse: Warehouse, version: int
) -> None:
    window = build_window(spark, warehouse, (WEEK[3], WEEK[6]), version=version)
    expected = build_frame(spark, build_rows((*WEEK[2:4], *WEEK[5:7]), "old"))
    assertDataFrameEqual(window.read(READINGS, column="day", days_before=1), expected)


def test_keep_drops_rows_of_other_partitions(spark: SparkSession, warehouse: Warehouse) -> None:
    window = build_window(spark, warehouse, (WEEK[0], WEEK[3]))
    kept = window.keep_partitions(build_frame(spark, build_rows(WEEK, "x")))
    assertDataFrameEqual(kept, build_frame(spark, build_rows((WEEK[0], WEEK[3]), "x")))


def test_landed_lines_come_with_day_and_file(
    spark: SparkSession, warehouse: Warehouse, landing: Path
) -> None:
    land(landing, "2013-01-01", "a.json", b'{"id":1}\n\n  \n{"id":2}')
    land(landing, "2013-01-02", "b.json.gz", gzip.compress(b'{"id":3}\n'))
    land(landing, "2013-01-03", "c.json", b'{"id":4}\n')
    window = build_window(spark, warehouse, WEEK[:2], landing=landing)
    first, second = (day.slice.start for day in WEEK[:2])
    a = "events/year=2013/month=01/day=01/a.json"
    b = "events/year=2013/month=01/day=02/b.json.gz"
    expected = [('{"id":1}', first, a), ('{"id":2}', first, a), ('{"id":3}', second, b)]
    assertDataFrameEqual(window.read_landing(), spark.createDataFrame(expected, LANDING_SCHEMA))


def test_files_that_landed_after_the_listing_are_not_read(
    spark: SparkSession, warehouse: Warehouse, landing: Path
) -> None:
    land(landing, "2013-01-01", "a.json", b'{"id":1}\n')
    window = build_window(spark, warehouse, WEEK, landing=landing)
    land(landing, "2013-01-01", "b.json", b'{"id":2}\n')
    assert [row.value for row in window.read_landing().collect()] == ['{"id":1}']


def test_lines_are_of_one_kind(spark: SparkSession, warehouse: Warehouse, landing: Path) -> None:
    land(landing, "2013-01-01", "a.json", b'{"id":1}\n')
    window = build_window(spark, warehouse, WEEK, landing=landing)
    with pytest.raises(
        LandingError, match=r"called `orders`.* read it by `window.read_landing\(\)`"
    ):
        window.read_landing("orders")


def test_landing_without_files_is_an_empty_frame(
    spark: SparkSession, warehouse: Warehouse, landing: Path
) -> None:
    lines = build_window(spark, warehouse, WEEK, landing=landing).read_landing()
    assertDataFrameEqual(lines, spark.createDataFrame([], LANDING_SCHEMA))


def test_truncated_file_fails_instead_of_losing_lines(
    spark: SparkSession, warehouse: Warehouse, landing: Path
) -> None:
    land(landing, "2013-01-01", "a.json.gz", gzip.compress(b'{"id":1}\n' * 9000, mtime=0)[:-9])
    window = build_window(spark, warehouse, WEEK, landing=landing)
    with pytest.raises(SPARK_ERRORS, match=r"a\.json\.gz"):
        window.read_landing().collect()


def test_table_without_landing_zone_has_none_to_read(
    spark: SparkSession, warehouse: Warehouse
) -> None:
    with pytest.raises(LandingError, match="declares no landing"):
        build_window(spark, warehouse, WEEK).read_landing()


def test_landed_lines_are_counted_by_partition(
    spark: SparkSession, warehouse: Warehouse, landing: Path
) -> None:
    land(landing, "2013-01-01", "a.json", b'{"id":1}\nnot JSON\n\n')
    land(landing, "2013-01-01", "b.json.gz", gzip.compress(b'{"id":3}\n'))
    land(landing, "2013-01-03", "c.json", b'{"id":4}\n')
    window = build_window(spark, warehouse, WEEK[:3], landing=landing)
    assert window.count_landing() == {"2013-01-01": 3, "2013-01-02": 0, "2013-01-03": 1}


def test_input_rows_are_counted_over_each_partitions_own_window(
    spark: SparkSession, warehouse: Warehouse, version: int
) -> None:
    window = build_window(spark, warehouse, (*WEEK[:2], WEEK[6]), version=version)
    overwrite_readings(spark, warehouse, WEEK, [])
    assert window.count_input(READINGS) == {"2013-01-01": 2, "2013-01-02": 2, "2013-01-07": 2}
    assert window.count_input(READINGS, before=2) == {
        "2013-01-01": 2,
        "2013-01-02": 4,
        "2013-01-07": 6,
    }


def test_file_names_are_names_and_no_patterns(
    spark: SparkSession, warehouse: Warehouse, tmp_path: Path
) -> None:
    folder = tmp_path / "zone [1] {a,b} *" / "flights" / "year=2013" / "month=01" / "day=01"
    folder.mkdir(parents=True)
    names = ["a*.json", "ab.json", "a[1].json", "a{1,2}.json", "a b+c.json", "a?.json"]
    for name in names:
        (folder / name).write_text(f'"{name}"\n\t\n')
    landing = tmp_path / "zone [1] {a,b} *"
    window = build_window(spark, warehouse, WEEK[:1], landing=landing, dataset="flights")
    rows = window.read_landing().collect()
    prefix = "flights/year=2013/month=01/day=01/"
    assert {(row.value, row.source_file) for row in rows} == {
        (f'"{name}"', f"{prefix}{name}") for name in names
    }
    assert len(rows) == len(names)
