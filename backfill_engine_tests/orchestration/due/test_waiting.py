"""A step waits for what another run is at work on, and not for ever."""

import time
from collections.abc import Iterator
from threading import Timer

import pytest
from dagster import AssetKey, DagsterRun, DagsterRunStatus

from backfill_engine.orchestration.instance.processes import identify_own_process
from backfill_engine.orchestration.instance.recovered_runs import enter_materialization, enter_plan
from backfill_engine.orchestration.runs.claims import PROCESS_TAG
from backfill_engine_tests.pipeline.requesting import identify_dead_process
from backfill_engine_tests.pipeline.running import RAW, STAGING, Pipeline

DAY = "2013-01-05"


@pytest.fixture
def at_work(pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch) -> Iterator[Pipeline]:
    """Another run is about to materialize a day of raw again."""
    monkeypatch.setattr("backfill_engine.orchestration.steps._LOOK_AGAIN_SECONDS", 0.2)
    tags = {PROCESS_TAG: identify_own_process()}
    run = DagsterRun("__ASSET_JOB", run_id="other", status=DagsterRunStatus.STARTED, tags=tags)
    pipeline.instance.add_run(run)
    enter_plan(pipeline.instance, "other", AssetKey.from_user_string(RAW), DAY)
    assert pipeline.find_days(RAW, "IN_PROGRESS") == [DAY]
    yield pipeline


def test_a_step_goes_on_when_the_other_run_has_published(at_work: Pipeline) -> None:
    (before,) = at_work.read_materializations(RAW, DAY)
    finish = Timer(4, enter_materialization, (at_work.instance, "other", before))
    finish.start()
    begun = time.monotonic()
    run = at_work.run(STAGING, first=DAY, last=DAY)
    finish.join()
    assert run.success, run.message
    assert time.monotonic() - begun > 3
    messages = [entry.user_message for entry in at_work.instance.all_logs(run.id)]
    assert f"waiting for {RAW} {DAY}, for up to 900 s" in messages


def test_a_step_that_waited_in_vain_withholds_what_is_still_in_progress(at_work: Pipeline) -> None:
    run = at_work.run(STAGING, first="2013-01-04", last=DAY, wait_seconds=1)
    assert "withheld 1 of 2" in run.message
    assert f"{DAY}: partition_is_complete: upstream_is_published" in run.message
    assert f"({RAW} {DAY} is still in progress)" in run.message


def test_a_step_does_not_wait_for_a_run_that_died(at_work: Pipeline) -> None:
    at_work.instance.add_run_tags("other", {PROCESS_TAG: identify_dead_process()})
    begun = time.monotonic()
    run = at_work.run(STAGING, first=DAY, last=DAY)
    assert f"({RAW} {DAY} is failed or withheld)" in run.message
    assert time.monotonic() - begun < 60
