"""After the retention of Delta's log everything but time travel works as before."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from backfill_engine.errors import HistoryError, RollbackError
from backfill_engine.extras.comparison.diffs import diff_table
from backfill_engine.lake.partitions import build_partitions
from backfill_engine.lake.table_log import read_log
from backfill_engine.proof.table_history import list_changes
from backfill_engine.publishing.restoring import plan_rollback
from backfill_engine_tests.pipeline.aging import clean_log
from backfill_engine_tests.pipeline.landing_zone import FLIGHTS_A_DAY, build_landed
from backfill_engine_tests.pipeline.running import (
    RAW,
    STAGING,
    Pipeline,
    copy_pipeline,
    list_days,
)
from backfill_engine_tests.project import RAW_FLIGHTS, STAGING_FLIGHTS

AGAIN, FEW, GONE = "2013-01-03", "2013-01-05", "2013-01-07"


@pytest.fixture(scope="module")
def cleaned(
    spark: SparkSession, published_root: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Pipeline]:
    """Days are published, and the log has only later commits, those of one day."""
    with copy_pipeline(published_root, tmp_path_factory.mktemp("cleaned")) as pipeline:
        for _ in range(2):
            assert pipeline.run(RAW, STAGING, first=AGAIN, last=AGAIN).success
        for table in (RAW_FLIGHTS, STAGING_FLIGHTS):
            clean_log(pipeline.warehouse, table, keep=2)
        yield pipeline


def test_status_knows_all_partitions(cleaned: Pipeline) -> None:
    days = list_days(1, 10)
    (found,) = cleaned.read_statuses(STAGING_FLIGHTS, first=days[0], last=days[-1])
    shown = {
        partition.partition: (partition.rows, partition.version, partition.status)
        for partition in found.partitions
    }
    log = read_log(cleaned.warehouse, STAGING_FLIGHTS)
    rows = log.count_rows()
    assert shown == {
        day: (rows[day], log.version if day == AGAIN else 1, "materialized") for day in days
    }
    assert [change.version for change in list_changes(log)] == [3, 2]
    assert found.recovery.published == ()


def test_what_is_out_of_reach_is_named_in_one_line(cleaned: Pipeline) -> None:
    log = read_log(cleaned.warehouse, STAGING_FLIGHTS)
    again = build_partitions(STAGING_FLIGHTS, [AGAIN])
    now = log.commits[0].committed_at
    with pytest.raises(HistoryError, match="version 1 is no longer in the log, which begins with"):
        diff_table(log, again, before="1")
    with pytest.raises(RollbackError, match="version 1 is no longer in the log, which begins with"):
        plan_rollback(log, again, to_version=1, force=True, now=now)
    # The last run can be undone, and what it put back is known.
    plan = plan_rollback(log, again, before_run=log.publishes[AGAIN].record.run_id, now=now)
    assert plan.to_version == 2
    assert plan.published_by[AGAIN] is not None


def test_a_partition_whose_file_is_gone_is_not_readable(cleaned: Pipeline) -> None:
    folder = Path(cleaned.warehouse.uri(STAGING_FLIGHTS), f"flight_date={GONE}")
    (file,) = folder.glob("*.parquet")
    kept = file.read_bytes()
    file.unlink()
    try:
        checked = cleaned.run_readable_check(STAGING, first=GONE, last=GONE)
    finally:
        file.write_bytes(kept)
    of_day = [
        evaluation
        for evaluation in cleaned.read_evaluations(checked)
        if evaluation.partition == GONE
    ]
    assert [evaluation.passed for evaluation in of_day] == [False]


def test_a_day_is_compared_with_those_whose_commits_are_gone(cleaned: Pipeline) -> None:
    cleaned.zone.write(FEW, map(json.dumps, build_landed(FEW)[:3]))
    run = cleaned.run(RAW, first=FEW, last=FEW)
    assert "row_count" in run.message
    assert read_log(cleaned.warehouse, RAW_FLIGHTS).publishes[FEW].rows == FLIGHTS_A_DAY
