"""Reading back in Spark's tasks finds what reading back in one process finds, whatever is wrong."""

import datetime as dt
import venv
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake
from pyspark.sql import Row, SparkSession

from backfill_engine.contents import task_read_back
from backfill_engine.contents.partition_contents import (
    UNREADABLE,
    PartitionReader,
    ReadBack,
    read_back,
)
from backfill_engine.contents.rows import PartitionIndex
from backfill_engine.contents.task_read_back import FileShare, TableFiles, sum_share
from backfill_engine.errors import SparkUnavailableError
from backfill_engine.lake.partitions import Partition, Slice
from backfill_engine.lake.reader import read_table
from backfill_engine.lake.table_log import TableLog, read_log
from backfill_engine.lake.warehouse import Warehouse
from backfill_engine.tables.declarations import Column
from backfill_engine_tests.contents.test_read_back import (
    EVERYTHING,
    HOURLY,
    NOTHING,
    build_rows,
    find_files,
    measure_with_spark,
    publish,
    write_events,
)
from backfill_engine_tests.contents.written_rows import EVENTS, WEEK, build_parts

pytestmark = pytest.mark.only_spark  # Spark's workers.

UTC = dt.UTC
PARTS = build_parts(0, 1, 2, 3)


@pytest.fixture
def events(warehouse: Warehouse) -> Warehouse:
    """A warehouse whose EVENTS have two rows in each of the parts 0 to 3, written by delta-rs."""
    write_events(warehouse, {part: ["a", "b"] for part in range(4)})
    return warehouse


def read_in_tasks(
    spark: SparkSession, log: TableLog, partitions: Sequence[Partition]
) -> dict[str, ReadBack]:
    return PartitionReader(lambda: spark, task_bytes=0).read_back(log, partitions)


def count_tasks(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of tasks of each reading from here on, filled while they run."""
    counts: list[int] = []
    sum_in_tasks = task_read_back._sum_in_tasks

    def count(
        spark: SparkSession, table: TableFiles, tasks: Sequence[Sequence[FileShare]]
    ) -> list[Row]:
        counts.append(len(tasks))
        return sum_in_tasks(spark, table, tasks)

    monkeypatch.setattr(task_read_back, "_sum_in_tasks", count)
    return counts


@pytest.mark.parametrize("task_bytes", [2**13, 2**25])
def test_every_type_is_summed_as_in_one_process(
    spark: SparkSession, warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch, task_bytes: int
) -> None:
    filled = [day for day in WEEK if day != WEEK[3]]
    version = publish(spark, warehouse, EVERYTHING, WEEK, build_rows(filled))
    log = read_log(warehouse, EVERYTHING, version=version)
    monkeypatch.setattr(task_read_back, "_TASK_BYTES", task_bytes)
    counts = count_tasks(monkeypatch)
    found = read_in_tasks(spark, log, WEEK[::-1])
    assert list(found) == [day.key for day in WEEK[::-1]]
    assert found == read_back(log, WEEK)
    assert found[WEEK[3].key] == NOTHING
    assert counts[0] == 1 if task_bytes == 2**25 else counts[0] > 6


def test_row_groups_of_a_file_are_shared_out(warehouse: Warehouse) -> None:
    codes = {1: [str(number) for number in range(10_000)]}
    write_events(warehouse, codes)
    (file,) = find_files(warehouse, EVENTS, "part=1")
    rows = pq.ParquetFile(file).read()
    pq.write_table(rows, file, row_group_size=700)
    log = read_log(warehouse, EVENTS)
    shares = [FileShare(f"part=1/{file.name}", file.stat().st_size, "1", n, 4) for n in range(4)]
    index = PartitionIndex(EVENTS, PARTS)
    files = TableFiles(log.uri, EVENTS.columns, "part", "part", index)
    sums = [sum_share(files, share).to_pylist() for share in shares]
    assert [[part["partition"] for part in parts] for parts in sums] == [[1]] * 4
    assert [part["rows"] for (part,) in sums] == [2800, 2800, 2300, 2100]
    (whole,) = sum_share(files, FileShare(shares[0].path, shares[0].size, "1")).to_pylist()
    assert (sum(part["checksum"] for (part,) in sums) - whole["checksum"]) % 2**64 == 0


def test_hours_in_one_folder_are_told_apart(spark: SparkSession, warehouse: Warehouse) -> None:
    hours = [dt.datetime(2013, 1, 1, hour, tzinfo=UTC) for hour in range(4)]
    partitions = [Partition(str(hour), Slice(hour, hour + dt.timedelta(hours=1))) for hour in hours]
    rows = [
        {"at": hour + dt.timedelta(minutes=minute), "code": str(minute), "day": hour.date()}
        for hour in hours
        for minute in range(hour.hour)
    ]
    version = publish(spark, warehouse, HOURLY, partitions, rows)
    log = read_log(warehouse, HOURLY, version=version)
    for subset in (partitions, partitions[1:3], partitions[:1]):
        assert read_in_tasks(spark, log, subset) == read_back(log, subset)


DAMAGES: dict[str, Callable[[Path], object]] = {
    "lost": Path.unlink,
    "truncated": lambda file: file.write_bytes(file.read_bytes()[: file.stat().st_size // 2]),
    "overwritten": lambda file: file.write_bytes(b"x" * file.stat().st_size),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_file_is_found_in_the_same_words(
    spark: SparkSession, events: Warehouse, damage: str
) -> None:
    log = read_log(events, EVENTS)
    before = read_in_tasks(spark, log, PARTS)
    (file,) = find_files(events, EVENTS, "part=2")
    DAMAGES[damage](file)
    after = read_in_tasks(spark, log, PARTS)
    assert after == read_back(log, PARTS)
    assert after == before | {"part 2": UNREADABLE}


def test_a_changed_value_of_equal_size_is_found(spark: SparkSession, warehouse: Warehouse) -> None:
    write_events(warehouse, {1: ["<one>"], 2: ["<two>"]})
    log = read_log(warehouse, EVENTS)
    before = read_in_tasks(spark, log, PARTS)
    (file,) = find_files(warehouse, EVENTS, "part=2")
    contents = file.read_bytes()
    assert b"<two>" in contents
    file.write_bytes(contents.replace(b"<two>", b"<tow>"))
    after = read_in_tasks(spark, log, PARTS)
    assert after == read_back(log, PARTS)
    assert [key for key in after if after[key] != before[key]] == ["part 2"]


def test_old_files_lack_columns_and_others_are_ignored(
    spark: SparkSession, events: Warehouse
) -> None:
    spark.sql(f"ALTER TABLE delta.`{events.uri(EVENTS)}` ADD COLUMNS (extra DOUBLE)")
    columns = (*EVENTS.columns, Column("extra", "DOUBLE", "Extra"))
    wider = replace(EVENTS, columns=columns)
    rows = pa.table({"part": pa.array([3], pa.int32()), "code": ["c"], "extra": [0.5]})
    write_deltalake(events.uri(EVENTS), rows, mode="append")
    for table in (EVENTS, wider):
        log = read_log(events, table)
        found = read_in_tasks(spark, log, PARTS)
        assert found == read_back(log, PARTS)
        assert found == measure_with_spark(read_table(spark, log), table, PARTS)
    assert found != read_back(read_log(events, EVENTS), PARTS)


def test_files_that_are_not_all_of_their_rows_are_read_by_who_knows_the_log(
    spark: SparkSession, events: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = find_files(events, EVENTS, "part=2")
    spark.sql(
        f"ALTER TABLE delta.`{events.uri(EVENTS)}` "
        "SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')"
    )
    spark.sql(f"DELETE FROM delta.`{events.uri(EVENTS)}` WHERE part = 2 AND code = 'a'")
    assert find_files(events, EVENTS, "part=2") == files
    counts, log = count_tasks(monkeypatch), read_log(events, EVENTS)
    found = read_in_tasks(spark, log, PARTS)
    assert found["part 2"].rows == 1
    assert found == measure_with_spark(read_table(spark, log), EVENTS, PARTS)
    assert counts == []


def test_tasks_read_from_the_threshold_on(
    spark: SparkSession, events: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    log, counts = read_log(events, EVENTS), count_tasks(monkeypatch)
    size = sum(Path(file).stat().st_size for file in find_files(events, EVENTS, "part=1"))
    single_part = build_parts(1)
    for task_bytes in (None, size + 1):
        PartitionReader(lambda: spark, task_bytes).read_back(log, single_part)
    assert counts == []
    found = PartitionReader(lambda: spark, size).read_back(log, single_part)
    assert counts == [1]
    assert found == read_back(log, single_part)


def test_no_partitions_and_no_files_are_nothing_to_read(
    spark: SparkSession, events: Warehouse
) -> None:
    log = read_log(events, EVENTS)
    assert read_in_tasks(spark, log, []) == {}
    assert read_in_tasks(spark, log, build_parts(7)) == {"part 7": NOTHING}


@pytest.mark.parametrize("with_python", [True, False])
def test_workers_that_lack_what_the_tasks_need_are_one_sentence(
    spark: SparkSession,
    events: Warehouse,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    *,
    with_python: bool,
) -> None:
    if with_python:
        venv.create(tmp_path / "bare", with_pip=False)
    python = str(tmp_path / "bare" / "bin" / "python")
    monkeypatch.setattr(spark.sparkContext, "pythonExec", python)
    with pytest.raises(SparkUnavailableError) as caught:
        read_in_tasks(spark, read_log(events, EVENTS), PARTS)
    assert "\n" not in str(caught.value)
    assert "install this version of backfill_assets with its dependencies there" in str(
        caught.value
    )
