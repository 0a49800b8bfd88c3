"""Overwrites of partitions in a real Delta table; read back with delta-rs."""

import threading
import time
from collections.abc import Sequence

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from backfill_engine.lake.partitions import Partition, build_predicate
from backfill_engine.lake.table_log import read_log
from backfill_engine.lake.warehouse import Warehouse
from backfill_engine.lake.writer import (
    PartitionsChangedError,
    create_table,
    overwrite_partitions,
)
from backfill_engine_tests.lake.readings import (
    READINGS,
    build_frame,
    build_readings_record,
    build_rows,
    overwrite_readings,
    read_files_by_day,
    read_rows,
)
from backfill_engine_tests.shared_fixtures import build_days

WEEK = build_days("2013-01-01", 7)


@pytest.fixture
def published(spark: SparkSession, warehouse: Warehouse) -> Warehouse:
    """A warehouse whose READINGS hold two "old" rows on each day of WEEK."""
    create_table(spark, read_log(warehouse, READINGS))
    overwrite_readings(spark, warehouse, WEEK, build_rows(WEEK, "old"))
    return warehouse


def days_except(days: Sequence[Partition]) -> list[Partition]:
    return [day for day in WEEK if day not in days]


def test_creation_is_idempotent(spark: SparkSession, published: Warehouse) -> None:
    before = published.open(READINGS).version()
    create_table(spark, read_log(published, READINGS))
    assert published.open(READINGS).version() == before
    assert read_rows(published) == build_rows(WEEK, "old")


def test_created_table_keeps_old_versions_for_the_retention(
    spark: SparkSession, warehouse: Warehouse
) -> None:
    create_table(spark, read_log(warehouse, READINGS))
    metadata = warehouse.open(READINGS).metadata()
    assert metadata.partition_columns == ["day"]
    assert metadata.configuration["delta.logRetentionDuration"] == "interval 90 days"
    assert metadata.configuration["delta.deletedFileRetentionDuration"] == "interval 90 days"


def test_folders_with_spaces_and_umlauts_hold_tables(spark: SparkSession, tmp_path) -> None:
    warehouse = Warehouse(str(tmp_path / "mein Lager für 50%"))
    create_table(spark, read_log(warehouse, READINGS))
    overwrite_readings(spark, warehouse, WEEK[:1], build_rows(WEEK[:1], "x"))
    assert read_rows(warehouse) == build_rows(WEEK[:1], "x")


def test_same_overwrite_twice_gives_the_same_contents(
    spark: SparkSession, published: Warehouse
) -> None:
    days = WEEK[2:4]
    for _ in range(2):
        overwrite_readings(spark, published, days, build_rows(days, "new"))
        expected = build_rows(days_except(days), "old") + build_rows(days, "new")
        assert read_rows(published) == sorted(expected)


def test_only_the_asked_partitions_change(spark: SparkSession, published: Warehouse) -> None:
    days = WEEK[2:4]
    before = read_files_by_day(published)
    overwrite_readings(spark, published, days, build_rows(days, "new"))
    after = read_files_by_day(published)
    changed = {day for day in before if before[day] != after[day]}
    assert changed == {day.key for day in days}
    assert set(after) == set(before)


def test_separate_partitions_are_replaced_in_one_commit(
    spark: SparkSession, published: Warehouse
) -> None:
    before = published.open(READINGS).version()
    days = (WEEK[0], WEEK[3], WEEK[6])
    version = overwrite_readings(spark, published, days, build_rows(days, "new", ids=3))
    assert version == published.open(READINGS).version() == before + 1
    expected = build_rows(days_except(days), "old") + build_rows(days, "new", ids=3)
    assert read_rows(published) == sorted(expected)


def test_partition_without_rows_becomes_empty_and_others_stay(
    spark: SparkSession, published: Warehouse
) -> None:
    overwrite_readings(spark, published, WEEK[2:4], build_rows(WEEK[3:4], "new"))
    expected = build_rows(days_except(WEEK[2:4]), "old") + build_rows(WEEK[3:4], "new")
    assert read_rows(published) == sorted(expected)
    overwrite_readings(spark, published, WEEK[3:4], [])
    assert read_rows(published) == build_rows(days_except(WEEK[2:4]), "old")


def test_partitions_that_never_had_rows_are_published_empty(
    spark: SparkSession, warehouse: Warehouse
) -> None:
    create_table(spark, read_log(warehouse, READINGS))
    versions = [overwrite_readings(spark, warehouse, WEEK[:2], []) for _ in range(2)]
    assert versions == [1, 2], "a commit each, or nobody knew that there is nothing"
    assert read_log(warehouse, READINGS).publishes[WEEK[0].key].rows == 0


def test_rows_outside_the_partitions_are_refused(spark: SparkSession, published: Warehouse) -> None:
    before = published.open(READINGS).version()
    stray = build_rows(WEEK[2:4], "new")
    with pytest.raises(PySparkException, match="DELTA_REPLACE_WHERE_MISMATCH"):
        overwrite_readings(spark, published, WEEK[2:3], stray)
    assert published.open(READINGS).version() == before
    assert read_rows(published) == build_rows(WEEK, "old")


def test_null_in_a_required_column_is_refused(spark: SparkSession, published: Warehouse) -> None:
    before = published.open(READINGS).version()
    day = WEEK[0].slice.start
    with pytest.raises(PySparkException, match="NOT_NULL"):
        overwrite_readings(spark, published, WEEK[:1], [(day, None, "new")])  # type: ignore[list-item]
    assert published.open(READINGS).version() == before


def test_commit_carries_what_was_published(spark: SparkSession, published: Warehouse) -> None:
    days = WEEK[2:4]
    version = overwrite_readings(spark, published, days, build_rows(days[:1], "new"))
    newest, earlier, creation = read_log(published, READINGS).commits
    assert newest.version == version
    record = newest.record
    assert record is not None
    assert (record.asset_key, record.run_id) == ("raw/readings", "run-1")
    assert (record.code_version, record.input_versions) == ("code-1", {"raw/source": 3})
    assert record.rows == {"2013-01-03": 2, "2013-01-04": 0}
    assert record.checksums == {"2013-01-03": f"{2:016x}", "2013-01-04": f"{0:016x}"}
    assert record.predicate == build_predicate("day", (day.slice for day in days))
    assert record.write_mode == "overwrite"
    assert earlier.record is not None
    assert earlier.record.commit_id != record.commit_id
    assert creation.record is None


@pytest.mark.parametrize("described", [[], [0], [0, 1, 2]], ids=["none", "fewer", "more"])
def test_record_must_be_of_exactly_the_partitions(
    spark: SparkSession, warehouse: Warehouse, described: list[int]
) -> None:
    keys = [WEEK[at].key for at in described]
    rows, checksums = dict.fromkeys(keys, 0), dict.fromkeys(keys, "")
    record = build_readings_record(WEEK[:2], rows=rows, checksums=checksums)
    log = read_log(warehouse, READINGS)
    with pytest.raises(ValueError, match="the record must be of exactly the partitions"):
        overwrite_partitions(build_frame(spark, []), log, WEEK[:2], record)


def test_overwrite_of_no_partitions_is_refused(spark: SparkSession, published: Warehouse) -> None:
    with pytest.raises(ValueError, match="no partitions"):
        overwrite_readings(spark, published, (), [])
    assert read_rows(published) == build_rows(WEEK, "old")


def test_partitions_that_another_run_changed_are_refused(
    spark: SparkSession, published: Warehouse
) -> None:
    base = published.open(READINGS).version()
    others = build_rows(WEEK[3:6], "of the other run")
    overwrite_readings(spark, published, WEEK[3:6], others, run_id="run-2")
    before = read_rows(published)
    with pytest.raises(PartitionsChangedError) as caught:
        rows = build_rows(WEEK[2:5], "stale")
        overwrite_readings(spark, published, WEEK[2:5], rows, base_version=base)
    assert caught.value.keys == {"2013-01-04", "2013-01-05"}
    assert published.open(READINGS).version() == base + 1
    assert read_rows(published) == before


def test_other_partitions_and_own_commits_since_then_do_not_matter(
    spark: SparkSession, published: Warehouse
) -> None:
    base = published.open(READINGS).version()
    overwrite_readings(spark, published, WEEK[5:], build_rows(WEEK[5:], "b"), run_id="run-2")
    overwrite_readings(spark, published, WEEK[:2], build_rows(WEEK[:2], "a"))
    again = build_rows(WEEK[:3], "again")
    overwrite_readings(spark, published, WEEK[:3], again, base_version=base)
    expected = again + build_rows(WEEK[3:5], "old") + build_rows(WEEK[5:], "b")
    assert read_rows(published) == expected


def test_rows_changed_by_hand_since_then_are_refused(
    spark: SparkSession, published: Warehouse
) -> None:
    base = published.open(READINGS).version()
    spark.sql(f"DELETE FROM delta.`{published.uri(READINGS)}` WHERE id = 0")
    with pytest.raises(PartitionsChangedError) as caught:
        rows = build_rows(WEEK[:2], "stale")
        overwrite_readings(spark, published, WEEK[:2], rows, base_version=base)
    assert caught.value.keys == {"2013-01-01", "2013-01-02"}


def test_write_that_loses_a_race_is_tried_again(spark: SparkSession, published: Warehouse) -> None:
    stop = time.monotonic() + 3

    def alter() -> None:  # takes no lock, and conflicts with every write that it overtakes
        while time.monotonic() < stop:
            table = f"delta.`{published.uri(READINGS)}`"
            spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('at' = '{time.monotonic()}')")

    other = threading.Thread(target=alter)
    other.start()
    try:
        for number in range(3):
            overwrite_readings(spark, published, WEEK, build_rows(WEEK, f"new {number}"))
    finally:
        other.join()
    assert read_rows(published) == build_rows(WEEK, "new 2")


def test_reader_sees_old_or_new_and_never_a_mix(spark: SparkSession, published: Warehouse) -> None:
    seen: list[frozenset[tuple[str | None, int]]] = []
    done = threading.Event()

    def poll() -> None:
        while not done.is_set():
            values = [value for _, _, value in read_rows(published)]
            seen.append(frozenset((value, values.count(value)) for value in values))

    reader = threading.Thread(target=poll)
    reader.start()
    try:
        for generation in range(5):
            rows = build_rows(WEEK, f"new {generation}", ids=3)
            overwrite_readings(spark, published, WEEK, rows)
    finally:
        done.set()
        reader.join()
    complete = {frozenset({("old", 14)})} | {frozenset({(f"new {n}", 21)}) for n in range(5)}
    assert set(seen) <= complete
    assert len(set(seen)) >= 3, f"{len(seen)} reads did not fall between the writes"
