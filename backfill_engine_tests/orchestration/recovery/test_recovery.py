"""What a killed run leaves behind in the instance, and how the next step puts it right."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from dagster import AssetCheckSeverity, DagsterRun, DagsterRunStatus
from pyspark.sql import SparkSession

from backfill_engine.lake.commits import CommitAudit
from backfill_engine.lake.partitions import build_predicate
from backfill_engine.lake.reader import read_table
from backfill_engine.lake.table_log import read_log
from backfill_engine.lake.writer import build_record, overwrite_partitions
from backfill_engine.orchestration.instance.processes import identify_own_process
from backfill_engine.orchestration.recovery.recovery import find_recovery, recover_table
from backfill_engine.orchestration.runs.claims import PROCESS_TAG, fail_dead_runs, find_dead_runs
from backfill_engine.publishing.write_modes.mode import Overwrite, Revert
from backfill_engine_tests.pipeline.requesting import get_run, identify_dead_process
from backfill_engine_tests.pipeline.running import RAW, STAGING, FinishedRun, Pipeline, list_days
from backfill_engine_tests.project import CATALOG, RAW_FLIGHTS
from backfill_engine_tests.shared_fixtures import build_days

KILLED_IN = build_days("2013-01-11", 2)
LOST = [partition.key for partition in KILLED_IN]
CODE_VERSION = "0123456789abcdef"


def begin_run(pipeline: Pipeline, run_id: str, *, dead: bool) -> None:
    """A run that has started, in a process that is alive (this one) or gone."""
    run = DagsterRun("__ASSET_JOB", run_id=run_id, status=DagsterRunStatus.STARTED)
    pipeline.instance.add_run(run)
    claim = identify_dead_process() if dead else identify_own_process()
    pipeline.instance.add_run_tags(run_id, {PROCESS_TAG: claim})


def commit(
    spark: SparkSession,
    pipeline: Pipeline,
    run_id: str,
    *,
    write_mode: str = Overwrite.name,
    checksums: dict[str, str] | None = None,
    **content: Any,
) -> int:
    """Publishes two days again, as a run does before it stores its events."""
    audited = pipeline.read_checksums(RAW_FLIGHTS)
    audited = {day: audited[day] for day in LOST} | (checksums or {})
    log = read_log(pipeline.warehouse, RAW_FLIGHTS)
    predicate = build_predicate(
        RAW_FLIGHTS.partition_by, (partition.slice for partition in KILLED_IN)
    )
    rows = read_table(spark, log).where(predicate)
    record = build_record(
        RAW_FLIGHTS,
        KILLED_IN,
        run_id=run_id,
        code_version=CODE_VERSION,
        input_versions={"landing/flights": "2 files"},
        options={"write_mode": write_mode},
        rows=dict.fromkeys(LOST, 120),
        checksums=audited,
        **content,
    )
    return overwrite_partitions(rows, log, KILLED_IN, record)


def take_next_step(pipeline: Pipeline) -> None:
    """Any step that reads or writes raw; this one has nothing to publish, so it takes no time."""
    run = pipeline.run(STAGING, first="2013-02-20", last="2013-02-20")
    assert "1 of 1 partitions are not due" in run.message


def find_status(pipeline: Pipeline, run_id: str) -> DagsterRunStatus:
    return get_run(pipeline.instance, run_id).status


def test_commits_of_a_killed_run_are_recorded_and_it_is_marked_failed(
    spark: SparkSession, pipeline: Pipeline
) -> None:
    begin_run(pipeline, "killed", dead=True)
    version = commit(spark, pipeline, "killed")
    take_next_step(pipeline)

    assert find_status(pipeline, "killed") is DagsterRunStatus.FAILURE
    for day in LOST:
        recorded, before = pipeline.read_materializations(RAW, day)
        assert before.metadata["delta_version"].value == version - 1
        assert recorded.metadata["delta_version"].value == version
        assert recorded.metadata["dagster/partition_row_count"].value == 120
        checksum = before.metadata["checksum"].value
        assert recorded.metadata["checksum"].value == checksum
        assert "recovered_at" in recorded.metadata
        assert recorded.tags is not None
        assert recorded.tags["dagster/data_version"] == checksum
        assert recorded.tags["dagster/code_version"] == CODE_VERSION
    assert pipeline.find_days(RAW, "MATERIALIZED") == list_days(1, 12)
    assert len(pipeline.read_materializations(RAW, "2013-01-10")) == 1, "not of that commit"

    take_next_step(pipeline)
    assert len(pipeline.read_materializations(RAW, LOST[0])) == 2, "recorded once"


def test_a_commit_that_reads_back_differently_is_not_recorded(
    spark: SparkSession, pipeline: Pipeline
) -> None:
    """Its run died between the commit and its own reading."""
    begin_run(pipeline, "killed", dead=True)
    commit(spark, pipeline, "killed", checksums={LOST[0]: "c0ffee00c0ffee00"})
    log, now = read_log(pipeline.warehouse, RAW_FLIGHTS), datetime.now(tz=UTC)
    assert not find_recovery(pipeline.instance, log).published, "the run may still be at work"
    dead = find_dead_runs(pipeline.instance, now=now, silent_seconds=600)
    assert list(dead) == ["killed"]
    found = find_recovery(pipeline.instance, log, dead=dead)
    fail_dead_runs(pipeline.instance, now=now, silent_seconds=600)
    (recovered,) = recover_table(CATALOG, pipeline.instance, log, now=now)
    assert found == replace(recovered, log=log)
    assert [result.key for result in recovered.published] == [LOST[1]]
    assert recovered.doubtful == {LOST[0]: "120 rows are not as they were audited"}
    assert [len(pipeline.read_materializations(RAW, day)) for day in LOST] == [1, 2]


def test_what_a_run_would_have_said_is_recorded_from_its_commit(
    spark: SparkSession, pipeline: Pipeline
) -> None:
    first, second = LOST
    begin_run(pipeline, "killed", dead=True)
    commit(
        spark,
        pipeline,
        "killed",
        backfill_id="backfill",
        provisional={first: "raw/other is missing"},
        notes={second: {"restored": "version 1"}},
        audit=CommitAudit(
            accepted=({"partition": first, "check": "partition_is_valid", "reason": "known"},),
            rules=("partition_is_complete row_count", "partition_is_valid rejects"),
            figures={first: (120, 0.5), second: (120, "")},
            remarks={first: ((1, "failed", "at most 0.01"),)},
        ),
    )
    take_next_step(pipeline)

    recorded = {day: pipeline.read_materializations(RAW, day)[0].metadata for day in LOST}
    assert recorded[first]["provisional"].value == "to be run again: raw/other is missing"
    assert recorded[first]["accepted"].value == "partition_is_valid: known"
    assert recorded[first]["rejects"].value == 0.5
    assert recorded[second]["restored"].value == "version 1"
    assert "rejects" not in recorded[second]
    place = f"{pipeline.warehouse.root}/certificates/backfill/killed/raw.flights.md"
    assert recorded[first]["certificate"].value == place

    evaluations = pipeline.read_evaluations(FinishedRun("killed", success=False))
    found = {
        (evaluation.partition, evaluation.check_name): (evaluation.passed, evaluation.severity)
        for evaluation in evaluations
    }
    assert found == {
        (first, "partition_is_complete"): (True, AssetCheckSeverity.WARN),
        (first, "partition_is_valid"): (False, AssetCheckSeverity.WARN),
        (first, "partition_is_readable"): (True, AssetCheckSeverity.WARN),
        (second, "partition_is_complete"): (True, AssetCheckSeverity.WARN),
        (second, "partition_is_readable"): (True, AssetCheckSeverity.WARN),
    }


def test_a_commit_from_older_inputs_than_the_one_it_replaced_is_to_be_run_again(
    spark: SparkSession, pipeline: Pipeline
) -> None:
    """Where nothing locks a table, its run would have seen the change right after the commit."""
    base = read_log(pipeline.warehouse, RAW_FLIGHTS).version
    begin_run(pipeline, "newer", dead=False)
    newer = commit(spark, pipeline, "newer", based_on=base)
    begin_run(pipeline, "older", dead=True)
    commit(spark, pipeline, "older", based_on=base)
    now = datetime.now(tz=UTC)
    dead = fail_dead_runs(pipeline.instance, now=now, silent_seconds=600)
    assert list(dead) == ["older"]
    (recovered,) = recover_table(
        CATALOG, pipeline.instance, read_log(pipeline.warehouse, RAW_FLIGHTS), now=now
    )
    why = f"it replaced version {newer}, of newer inputs"
    assert recovered.doubtful == dict.fromkeys(LOST, why)
    assert recovered.published == ()
    assert pipeline.find_days(RAW, "FAILED") == LOST


def test_runs_that_are_alive_or_on_another_host_are_left_alone(
    spark: SparkSession, pipeline: Pipeline
) -> None:
    begin_run(pipeline, "alive", dead=False)
    begin_run(pipeline, "elsewhere", dead=True)
    elsewhere = f"another-boot/{identify_own_process().partition('/')[2]}"
    pipeline.instance.add_run_tags("elsewhere", {PROCESS_TAG: elsewhere})
    commit(spark, pipeline, "alive")
    take_next_step(pipeline)

    assert find_status(pipeline, "alive") is DagsterRunStatus.STARTED
    assert find_status(pipeline, "elsewhere") is DagsterRunStatus.STARTED
    assert len(pipeline.read_materializations(RAW, LOST[0])) == 1, "the run will record it itself"


def test_a_version_that_was_put_back_is_no_success_of_the_failed_run(
    spark: SparkSession, pipeline: Pipeline
) -> None:
    begin_run(pipeline, "unreadable", dead=True)
    commit(spark, pipeline, "unreadable", write_mode=Revert.name)
    take_next_step(pipeline)

    assert find_status(pipeline, "unreadable") is DagsterRunStatus.FAILURE
    assert len(pipeline.read_materializations(RAW, LOST[0])) == 1
