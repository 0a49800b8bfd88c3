"""`partition_is_readable`: on its own over what is published, and right after a publish."""

from pathlib import Path
from typing import Any
from weakref import WeakSet

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

from backfill_engine.contents import task_read_back
from backfill_engine.contents.partition_contents import PartitionReader, ReadBack
from backfill_engine.errors import SparkUnavailableError
from backfill_engine.lake.table_log import read_log
from backfill_engine.lake.warehouse import Warehouse
from backfill_engine.publishing.recipes import Recipe
from backfill_engine.publishing.results import PartitionResult, describe_failures
from backfill_engine.publishing.write_modes.mode import Revert
from backfill_engine.sources.input_window import InputWindow
from backfill_engine_tests.contents.test_task_read_back import count_tasks
from backfill_engine_tests.lake.readings import (
    READINGS,
    build_rows,
    overwrite_readings,
)
from backfill_engine_tests.pipeline.publishing import COPIES, Lake
from backfill_engine_tests.pipeline.running import RAW, Pipeline, list_days
from backfill_engine_tests.project import RAW_FLIGHTS
from backfill_engine_tests.shared_fixtures import build_days

TAMPERED = "2013-01-06"
DAY = build_days("2013-01-01")


def find_data_file(pipeline: Pipeline, day: str) -> Path:
    log = read_log(pipeline.warehouse, RAW_FLIGHTS)
    (path,) = (path for folder, path in log.list_files("path") if folder == day)
    return Path(log.uri) / path


def change_one_value(path: Path) -> None:
    """Rewrites a data file with one distance changed."""
    flights = pq.ParquetFile(path).read()
    at = flights.column_names.index("distance")
    distances = flights.column(at).to_pylist()
    changed = pa.array([distances[0] + 1, *distances[1:]], flights.schema.field(at).type)
    pq.write_table(flights.set_column(at, flights.schema.field(at), changed), path)


def fill_up(path: Path, size: int) -> None:
    """Rewrites a data file as one of `size` bytes, of which some mean nothing."""
    rows = pq.ParquetFile(path).read().replace_schema_metadata(None)
    filler = 0
    for _ in range(3):  # the length of the filler takes a byte or two itself
        with pq.ParquetWriter(path, rows.schema, compression="zstd", store_schema=False) as writer:
            writer.write_table(rows)
            writer.add_key_value_metadata({"filler": "." * filler})
        filler += size - path.stat().st_size
    assert path.stat().st_size == size


@pytest.mark.parametrize("same_size", [True, False])
def test_the_check_alone_fails_for_exactly_the_partition_whose_data_file_was_changed(
    pipeline: Pipeline, *, same_size: bool
) -> None:
    path = find_data_file(pipeline, TAMPERED)
    size = path.stat().st_size
    change_one_value(path)
    if same_size:
        fill_up(path, size)
    run = pipeline.run_readable_check(RAW, first="2013-01-01", last="2013-01-20")
    assert run.success, run.message
    evaluations = pipeline.read_evaluations(run)
    failed = [evaluation.partition for evaluation in evaluations if not evaluation.passed]
    assert failed == [TAMPERED], "and nothing without a partition, which would stand above it"
    passed = [evaluation.partition for evaluation in evaluations if evaluation.passed]
    assert passed == [*(day for day in list_days(1, 12) if day != TAMPERED), None]
    (summary,) = (evaluation for evaluation in evaluations if evaluation.partition is None)
    assert summary.description == f"not as audited: {TAMPERED}"
    assert summary.metadata["different"].value == [TAMPERED]
    assert summary.metadata["never published"].value == 8
    assert set(pipeline.find_days(RAW, "MATERIALIZED")) == {*list_days(1, 12)}


def publish_unreadable(lake: Lake, source: Path) -> list[PartitionResult]:
    """Two days, of which the second is rewritten, and the cache lost, after its audit."""

    def compute(window: InputWindow) -> DataFrame:
        return window.spark.read.schema("day date, id int, value string").csv(str(source))

    def lose_cache(window: InputWindow) -> dict[str, int]:
        source.write_text(source.read_text().replace("2013-01-02,1,new", "2013-01-02,1,odd"))
        window.spark.catalog.clearCache()
        return {}

    days = build_days("2013-01-01", 2)
    source.write_text("2013-01-01,1,old\n2013-01-02,1,old\n")
    lake.publish(Recipe(READINGS, compute), days, run_id="first")
    source.write_text("2013-01-01,1,new\n2013-01-02,1,new\n")
    recipe = Recipe(READINGS, compute, count_source=lose_cache)
    return lake.publish(recipe, days, run_id="second")


def read_values(warehouse: Warehouse) -> dict[str, str]:
    """The value of each day."""
    rows = warehouse.open(READINGS).to_pyarrow_table().to_pylist()
    return {row["day"].isoformat(): row["value"] for row in rows}


@pytest.mark.only_spark
@pytest.mark.parametrize("task_bytes", [None, 0])
def test_a_publish_that_reads_back_differently_is_taken_back(
    spark: SparkSession, warehouse: Warehouse, tmp_path: Path, task_bytes: int | None
) -> None:
    lake = Lake(spark, warehouse, task_bytes=task_bytes)
    good, bad = publish_unreadable(lake, tmp_path / "source.csv")

    assert (good.version is None, bad.version) == (False, None)
    assert "partition_is_readable: content_is_as_audited = 1 (1 rows with" in (
        describe_failures(bad.verdict)
    )
    assert read_values(warehouse) == {"2013-01-01": "new", "2013-01-02": "old"}
    newest = read_log(warehouse, READINGS).publishes["2013-01-02"].record
    assert newest.write_mode == Revert.name


@pytest.mark.only_spark
def test_what_another_run_has_published_meanwhile_is_not_taken_back(
    spark: SparkSession, warehouse: Warehouse, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    second = build_days("2013-01-02", 1)

    read_back = PartitionReader.read_back

    def read_back_late(*arguments: Any) -> dict[str, ReadBack]:
        found = read_back(*arguments)
        if "odd" in read_values(warehouse).values():
            rows = build_rows(second, "theirs", ids=1)
            overwrite_readings(spark, warehouse, second, rows, run_id="other")
        return found

    monkeypatch.setattr(PartitionReader, "read_back", read_back_late)
    good, bad = publish_unreadable(Lake(spark, warehouse), tmp_path / "source.csv")
    assert good.version is not None
    assert bad.version is None
    assert read_values(warehouse) == {"2013-01-01": "new", "2013-01-02": "theirs"}


@pytest.fixture
def without_workers(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark can't start Python for its tasks."""
    monkeypatch.setattr(spark.sparkContext, "pythonExec", "/nowhere/python")
    monkeypatch.setattr(task_read_back, "_CHECKED", WeakSet())


def build_reading(window: InputWindow) -> DataFrame:
    """A row of which nothing tells beforehand how much it is; no Python in its tasks."""
    return window.spark.sql("SELECT DATE'2013-01-01' AS day, 1 AS id, 'one' AS value")


def publish_reading(lake: Lake) -> PartitionResult:
    (result,) = lake.publish(Recipe(READINGS, build_reading), DAY)
    return result


def measure_readings(warehouse: Warehouse) -> int:
    """Bytes of data files."""
    return sum(read_log(warehouse, READINGS).sum_folder_bytes().values())


@pytest.mark.only_spark
@pytest.mark.usefixtures("without_workers")
def test_workers_that_can_not_read_a_large_commit_back_are_found_before_it(
    spark: SparkSession, warehouse: Warehouse
) -> None:
    publish_reading(Lake(spark, warehouse))
    lake = Lake(spark, warehouse, task_bytes=measure_readings(warehouse))
    with pytest.raises(SparkUnavailableError, match="install this version of backfill_assets"):
        lake.publish(COPIES, DAY)
    assert not warehouse.exists(COPIES.table), "nothing is written"


@pytest.mark.only_spark
@pytest.mark.usefixtures("without_workers")
def test_what_has_become_larger_than_its_inputs_is_read_back_here(
    spark: SparkSession, warehouse: Warehouse
) -> None:
    assert publish_reading(Lake(spark, warehouse, task_bytes=1)).version is not None


def test_workers_are_asked_once_in_a_session(
    spark: SparkSession, warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(task_read_back, "_CHECKED", WeakSet())
    counts = count_tasks(monkeypatch)
    publish_reading(Lake(spark, warehouse))
    lake = Lake(spark, warehouse, task_bytes=2 * measure_readings(warehouse))
    for _ in range(2):
        lake.publish(COPIES, DAY)
    assert counts == [1], "these commits are too small for more than the question"
