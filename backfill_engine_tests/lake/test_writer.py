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
    ReadingRow,
    build_frame,
    build_readings_record,
    build_rows,
    overwrite_readings,
    read_files_by_day,
    read_rows,
)
from backfill_engine_tests.pipeline.publishing import Lake
from backfill_engine_tests.shared_fixtures import build_days

WEEK = build_days("2013-01-01", 7)
OLD = build_rows(WEEK, "old")


def read_version(lake: Lake) -> int:
    return lake.warehouse.open(READINGS).version()


def replace_rows(days: Sequence[Partition], rows: list[ReadingRow]) -> list[ReadingRow]:
    """The old rows, and others on some days."""
    return sorted(build_rows([day for day in WEEK if day not in days], "old") + rows)


def test_creation_is_idempotent(lake: Lake) -> None:
    before = read_version(lake)
    create_table(lake.spark, read_log(lake.warehouse, READINGS))
    assert read_version(lake) == before
    assert read_rows(lake.warehouse) == OLD


def test_created_table_keeps_old_versions_for_the_retention(lake: Lake) -> None:
    metadata = lake.warehouse.open(READINGS).metadata()
    assert metadata.partition_columns == ["day"]
    assert metadata.configuration["delta.logRetentionDuration"] == "interval 90 days"
    assert metadata.configuration["delta.deletedFileRetentionDuration"] == "interval 90 days"


def test_same_overwrite_twice_gives_the_same_contents(lake: Lake) -> None:
    days = WEEK[2:4]
    for _ in range(2):
        lake.overwrite_readings(days, "new")
        assert read_rows(lake.warehouse) == replace_rows(days, build_rows(days, "new"))


def test_only_the_asked_partitions_change(lake: Lake) -> None:
    days = WEEK[2:4]
    before = read_files_by_day(lake.warehouse)
    lake.overwrite_readings(days, "new")
    after = read_files_by_day(lake.warehouse)
    changed = {day for day in before if before[day] != after[day]}
    assert changed == {day.key for day in days}
    assert set(after) == set(before)


def test_separate_partitions_are_replaced_in_one_commit(lake: Lake) -> None:
    before = read_version(lake)
    days = (WEEK[0], WEEK[3], WEEK[6])
    version = lake.overwrite_readings(days, "new", ids=3)
    assert version == read_version(lake) == before + 1
    assert read_rows(lake.warehouse) == replace_rows(days, build_rows(days, "new", ids=3))


def test_partition_without_rows_becomes_empty_and_others_stay(lake: Lake) -> None:
    spark, warehouse = lake.spark, lake.warehouse
    rows = build_rows(WEEK[3:4], "new")
    overwrite_readings(spark, warehouse, WEEK[2:4], rows)
    assert read_rows(warehouse) == replace_rows(WEEK[2:4], rows)
    overwrite_readings(spark, warehouse, WEEK[3:4], [])
    assert read_rows(warehouse) == replace_rows(WEEK[2:4], [])


def test_partitions_that_never_had_rows_are_published_empty(
    spark: SparkSession, warehouse: Warehouse
) -> None:
    create_table(spark, read_log(warehouse, READINGS))
    versions = [overwrite_readings(spark, warehouse, WEEK[:2], []) for _ in range(2)]
    assert versions == [1, 2], "a commit each, or nobody knew that there is nothing"
    assert read_log(warehouse, READINGS).publishes[WEEK[0].key].rows == 0


@pytest.mark.only_spark
@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (build_rows(WEEK[2:4], "new"), "DELTA_REPLACE_WHERE_MISMATCH"),
        ([(WEEK[2].slice.start, None, "new")], "NOT_NULL"),
    ],
    ids=["outside the partitions", "null in a required column"],
)
def test_rows_that_a_table_can_not_hold_are_refused(
    lake: Lake, rows: list[ReadingRow], message: str
) -> None:
    before = read_version(lake)
    with pytest.raises(PySparkException, match=message):
        overwrite_readings(lake.spark, lake.warehouse, WEEK[2:3], rows)
    assert read_version(lake) == before
    assert read_rows(lake.warehouse) == OLD


def test_commit_carries_what_was_published(lake: Lake) -> None:
    days, warehouse = WEEK[2:4], lake.warehouse
    version = overwrite_readings(lake.spark, warehouse, days, build_rows(days[:1], "new"))
    newest, earlier, creation = read_log(warehouse, READINGS).commits
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


def test_overwrite_of_no_partitions_is_refused(lake: Lake) -> None:
    with pytest.raises(ValueError, match="no partitions"):
        lake.overwrite_readings((), "new")
    assert read_rows(lake.warehouse) == OLD


def test_partitions_that_another_run_changed_are_refused(lake: Lake) -> None:
    base = read_version(lake)
    lake.overwrite_readings(WEEK[3:6], "of the other run", run_id="run-2")
    before = read_rows(lake.warehouse)
    with pytest.raises(PartitionsChangedError) as caught:
        lake.overwrite_readings(WEEK[2:5], "stale", base_version=base)
    assert caught.value.keys == {"2013-01-04", "2013-01-05"}
    assert read_version(lake) == base + 1
    assert read_rows(lake.warehouse) == before


def test_other_partitions_and_own_commits_since_then_do_not_matter(lake: Lake) -> None:
    base = read_version(lake)
    lake.overwrite_readings(WEEK[5:], "b", run_id="run-2")
    lake.overwrite_readings(WEEK[:2], "a")
    lake.overwrite_readings(WEEK[:3], "again", base_version=base)
    changed = build_rows(WEEK[:3], "again") + build_rows(WEEK[5:], "b")
    assert read_rows(lake.warehouse) == replace_rows([*WEEK[:3], *WEEK[5:]], changed)


def test_rows_changed_by_hand_since_then_are_refused(lake: Lake) -> None:
    base = read_version(lake)
    uri = lake.warehouse.uri(READINGS)
    lake.spark.sql(f"DELETE FROM delta.`{uri}` WHERE id = 0")
    with pytest.raises(PartitionsChangedError) as caught:
        lake.overwrite_readings(WEEK[:2], "stale", base_version=base)
    assert caught.value.keys == {"2013-01-01", "2013-01-02"}


@pytest.mark.only_spark
def test_write_that_loses_a_race_is_tried_again(lake: Lake) -> None:
    stop = time.monotonic() + 3

    def alter() -> None:  # takes no lock, and conflicts with every write that it overtakes
        table = f"delta.`{lake.warehouse.uri(READINGS)}`"
        while time.monotonic() < stop:
            lake.spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('at' = '{time.monotonic()}')")

    other = threading.Thread(target=alter)
    other.start()
    try:
        for number in range(3):
            lake.overwrite_readings(WEEK, f"new {number}")
    finally:
        other.join()
    assert read_rows(lake.warehouse) == build_rows(WEEK, "new 2")


def test_reader_sees_old_or_new_and_never_a_mix(lake: Lake) -> None:
    seen: list[frozenset[tuple[str | None, int]]] = []
    done = threading.Event()

    def poll() -> None:
        while not done.is_set():
            values = [value for _, _, value in read_rows(lake.warehouse)]
            seen.append(frozenset((value, values.count(value)) for value in values))

    reader = threading.Thread(target=poll)
    reader.start()
    try:
        for generation in range(5):
            lake.overwrite_readings(WEEK, f"new {generation}", ids=3)
    finally:
        done.set()
        reader.join()
    complete = {frozenset({("old", 14)})} | {frozenset({(f"new {n}", 21)}) for n in range(5)}
    assert set(seen) <= complete
    assert len(set(seen)) >= 3, f"{len(seen)} reads did not fall between the writes"
