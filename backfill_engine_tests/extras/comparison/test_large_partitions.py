"""Spark's tasks prove the same of partitions as one process does."""

import datetime as dt
import json
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import Field
from deltalake.schema import PrimitiveType
from pyspark.sql import SparkSession
from typer.testing import CliRunner, Result

from backfill_engine.cli import app
from backfill_engine.contents.partition_contents import IN_THIS_PROCESS, PartitionReader
from backfill_engine.extras.comparison import contents as comparison_contents
from backfill_engine.extras.comparison.diffs import TableDiff, diff_table
from backfill_engine.extras.comparison.reconciliation import ReconciledPartition, Reconciler
from backfill_engine.lake.partitions import build_partitions
from backfill_engine.lake.table_log import TableLog, read_log
from backfill_engine.lake.warehouse import Warehouse
from backfill_engine.proof.pages import VerifiedLine
from backfill_engine.proof.untouched import prove_untouched
from backfill_engine.proof.verification import verify_run
from backfill_engine.tables.declarations import Column
from backfill_engine_tests.contents.test_read_back import EVENTS, HOURLY, publish, write_events
from backfill_engine_tests.contents.test_task_read_back import count_tasks
from backfill_engine_tests.pipeline.landing_zone import delay
from backfill_engine_tests.pipeline.running import RAW, FinishedRun, Pipeline, list_days
from backfill_engine_tests.project import CATALOG, RAW_FLIGHTS
from backfill_engine_tests.publishing.test_verifying import change_one_value, find_data_file
from backfill_engine_tests.shared_fixtures import build_days

DAYS = build_days("2013-01-01", 8)
CHANGED, ALSO_CHANGED, SPOILED = list_days(4, 6)


@pytest.fixture
def tasks(spark: SparkSession) -> PartitionReader:
    """Leaves all that has a data file to Spark's tasks."""
    return PartitionReader(lambda: spark, task_bytes=1)


@pytest.fixture
def counts(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of tasks of each reading so far."""
    return count_tasks(monkeypatch)


@pytest.fixture
def published_again(pipeline: Pipeline) -> FinishedRun:
    """Publishes days 4 to 6 of raw again; the first two then differ from before."""
    for day in (CHANGED, ALSO_CHANGED):
        pipeline.zone.change(day, delay)
    return pipeline.run(RAW, first=CHANGED, last=SPOILED).confirm()


def read_raw(pipeline: Pipeline) -> TableLog:
    return read_log(pipeline.warehouse, RAW_FLIGHTS)


def diff(pipeline: Pipeline, reader: PartitionReader) -> TableDiff:
    log = read_raw(pipeline)
    return diff_table(log, DAYS, before=str(log.version - 1), reader=reader)


def reconcile(
    spark: SparkSession, pipeline: Pipeline, reader: PartitionReader
) -> list[ReconciledPartition]:
    landing = str(pipeline.zone.root)
    reconciler = Reconciler(spark, pipeline.warehouse, landing, 4, 2**30, reader)
    return list(reconciler.reconcile(CATALOG.recipes[RAW], DAYS))


def verify(pipeline: Pipeline, run: FinishedRun, reader: PartitionReader) -> list[VerifiedLine]:
    (lines,) = verify_run([read_raw(pipeline)], run.id, reader=reader).values()
    return lines


def test_days_differ_reconcile_and_verify_as_in_one_process(
    spark: SparkSession,
    pipeline: Pipeline,
    published_again: FinishedRun,
    tasks: PartitionReader,
    counts: list[int],
) -> None:
    found = diff(pipeline, tasks)
    assert len(counts) == 2, "both versions"
    assert found == diff(pipeline, IN_THIS_PROCESS)
    differing = [key for key, day in found.partitions.items() if not day.equal]
    assert differing == [CHANGED, ALSO_CHANGED]

    assert not [day for day in reconcile(spark, pipeline, tasks) if day.mismatch]
    assert len(counts) == 4, "two chunks"
    pipeline.zone.change(SPOILED, lambda flight: delay(flight, 8))
    reconciled = reconcile(spark, pipeline, tasks)
    assert reconciled == reconcile(spark, pipeline, IN_THIS_PROCESS)
    assert [day.partition for day in reconciled if day.mismatch] == [SPOILED]

    lines = verify(pipeline, published_again, tasks)
    assert len(counts) == 7
    assert lines == verify(pipeline, published_again, IN_THIS_PROCESS)
    assert all(line.holds for line in lines)


@pytest.mark.slow
@pytest.mark.by_hand
@pytest.mark.parametrize("lost", [True, False])
def test_a_spoiled_data_file_is_found_either_way(
    spark: SparkSession,
    pipeline: Pipeline,
    published_again: FinishedRun,
    tasks: PartitionReader,
    counts: list[int],
    *,
    lost: bool,
) -> None:
    path = find_data_file(pipeline, SPOILED)
    change_one_value(path)  # of another size than the log says
    if lost:
        path.unlink()
    lines = verify(pipeline, published_again, tasks)
    assert lines == verify(pipeline, published_again, IN_THIS_PROCESS)
    (broken,) = (line for line in lines if line.holds is False)
    assert broken.statement.startswith(f"{SPOILED} holds 120 rows")

    reconciled = reconcile(spark, pipeline, tasks)
    assert reconciled == reconcile(spark, pipeline, IN_THIS_PROCESS)
    assert {day.partition: day.mismatch for day in reconciled if day.mismatch} == {
        SPOILED: "a data file of it is missing or broken"
    }

    newest = read_raw(pipeline).version
    for reader in (tasks, IN_THIS_PROCESS):
        with pytest.raises(pa.ArrowInvalid):
            diff_table(read_raw(pipeline), DAYS, before=str(newest - 1), reader=reader)
    assert counts


@pytest.mark.parametrize("read_back_bytes", ["1", "1000000000"])
def test_the_check_finds_a_spoiled_data_file_either_way(
    pipeline: Pipeline,
    counts: list[int],
    monkeypatch: pytest.MonkeyPatch,
    read_back_bytes: str,
) -> None:
    monkeypatch.setenv("BACKFILL_READ_BACK_BYTES", read_back_bytes)
    find_data_file(pipeline, SPOILED).unlink()
    run = pipeline.run_readable_check(RAW, first=DAYS[0].key, last=DAYS[-1].key).confirm()
    failed = [
        evaluation.partition
        for evaluation in pipeline.read_evaluations(run)
        if not evaluation.passed
    ]
    assert failed == [SPOILED]
    assert bool(counts) == (read_back_bytes == "1")


def test_neighbours_in_a_rewritten_folder_are_read_in_tasks_too(
    spark: SparkSession, warehouse: Warehouse, tasks: PartitionReader, counts: list[int]
) -> None:
    starts = [dt.datetime(2013, 1, 1, hour, tzinfo=dt.UTC) for hour in range(3)]
    hours = build_partitions(HOURLY, [HOURLY.grain.find_key(start) for start in starts])
    rows = [{"at": start, "code": "a", "day": start.date()} for start in starts]
    publish(spark, warehouse, HOURLY, hours, rows)
    second = hours[1:2]
    version = publish(spark, warehouse, HOURLY, second, [{**rows[1], "code": "b"}])
    log = read_log(warehouse, HOURLY)
    key = second[0].key
    proof = prove_untouched(log, [key], versions=[version], reader=tasks)
    assert len(counts) == 2, "before and after"
    assert proof == prove_untouched(log, [key], versions=[version])
    assert proof.holds
    assert proof.compared == 23
    assert prove_untouched(log, [hours[0].key], versions=[version], reader=tasks).outside == {
        key: (version,)
    }


def test_rows_are_compared_of_days_that_differ_a_few_at_a_time(
    pipeline: Pipeline, published_again: FinishedRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    together = diff(pipeline, IN_THIS_PROCESS)
    held: list[int] = []
    join = comparison_contents._join

    def count_rows(parts: list[pa.Array]) -> pa.Array:
        joined = join(parts)
        held.append(len(joined))
        return joined

    monkeypatch.setattr(comparison_contents, "_join", count_rows)
    monkeypatch.setattr(comparison_contents, "_ROWS_AT_ONCE", 1)
    assert diff(pipeline, IN_THIS_PROCESS) == together
    assert {*held} == {120}, "a day has 120 rows"
    assert together.partitions[SPOILED].duplicates is None, "equal: its rows aren't compared"


def test_a_column_that_an_older_version_lacks_is_null_there(warehouse: Warehouse) -> None:
    write_events(warehouse, {1: ["a"], 2: ["b"]})
    extra = Column("extra", "DOUBLE", "Extra")
    warehouse.open(EVENTS).alter.add_columns([Field(extra.name, PrimitiveType("double"))])
    write_events(warehouse, {2: ["c"]}, schema_mode="merge")
    log = read_log(warehouse, replace(EVENTS, columns=(*EVENTS.columns, extra)))
    found = diff_table(log, build_partitions(log.table, log.count_rows()), before="0")
    same, more = found.partitions.values()
    assert (same.equal, same.rows_after) == (True, 1)
    assert (more.added, more.removed, more.changed, more.rows_after) == (1, 0, 0, 2)


def run_diff(pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch) -> Result:
    monkeypatch.setenv("BACKFILL_WAREHOUSE", str(Path(pipeline.warehouse.root)))
    since = ("--before", "0", "--from", DAYS[0].key, "--to", DAYS[-1].key)
    return CliRunner().invoke(app, ["proof", "diff", RAW, *since, "--json"], catch_exceptions=False)


def test_a_command_says_when_it_starts_spark(
    pipeline: Pipeline,
    published_again: FinishedRun,
    counts: list[int],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    here = run_diff(pipeline, monkeypatch)
    assert (here.exit_code, here.stderr, counts) == (0, "", [])
    monkeypatch.setenv("BACKFILL_READ_BACK_BYTES", "1000")
    with_spark = run_diff(pipeline, monkeypatch)
    assert with_spark.exit_code == 0
    assert json.loads(with_spark.stdout) == json.loads(here.stdout)
    assert with_spark.stderr == (
        "1,000 bytes of data files or more are to be read: Spark's tasks read them "
        "(BACKFILL_READ_BACK_BYTES)\n"
    )
    assert len(counts) == 1, "version 0 has no data file"
