"""What plans of backfills said is held against what came of these. No Spark."""

import datetime as dt
from dataclasses import replace
from pathlib import Path

import pytest
from dagster import DagsterInstance, DagsterRun
from dagster._core.execution.backfill import BulkActionStatus

from backfill_engine.orchestration.instance.dagster_internals import BACKFILL_TAG
from backfill_engine.orchestration.planning.estimates import Estimate
from backfill_engine.orchestration.planning.launching import Launch, request_planned
from backfill_engine.orchestration.planning.outcomes import Outcome
from backfill_engine.orchestration.planning.plans import Plan, TablePlan, find_foretold
from backfill_engine_tests.project import CATALOG, defs

RAW = "raw/flights"
DAYS = ("2013-01-01", "2013-01-04")
STEP = Outcome(RAW, "", dt.datetime(2013, 2, 1, tzinfo=dt.UTC), 15.0, 2, 0, 0, 0, 0, 0)


def request(instance: DagsterInstance, seconds: float | None, *, stands: int = 0) -> str:
    """A backfill of four days whose plan said how long it would take, or didn't."""
    said = Estimate(seconds, seconds, seconds, 1, 1.0) if seconds is not None else None
    table = TablePlan(RAW, "code", {}, [], [DAYS], 4, 1, 1, 0, 0, 0, said, stands=stands)
    graph = defs.get_repository_def().asset_graph
    return request_planned(CATALOG, instance, graph, Plan([table], {}), Launch()).backfill_id


def finish(instance: DagsterInstance, backfill_id: str) -> None:
    backfill = instance.get_backfill(backfill_id)
    assert backfill is not None
    instance.update_backfill(backfill.with_status(BulkActionStatus.COMPLETED_SUCCESS))


def test_only_what_had_its_turn_in_a_backfill_that_has_ended_counts(tmp_path: Path) -> None:
    with DagsterInstance.local_temp(str(tmp_path)) as instance:
        runs = {
            backfill_id: [
                instance.add_run(DagsterRun("flights", tags={BACKFILL_TAG: backfill_id})).run_id
                for _ in range(2)
            ]
            for backfill_id in (request(instance, 20.0), request(instance, None))
        }
        steps = [replace(STEP, run_id=run_id) for ids in runs.values() for run_id in ids]
        assert find_foretold(instance, steps) == {}, "it is at work"
        for backfill_id in runs:
            finish(instance, backfill_id)
        assert find_foretold(instance, steps) == {RAW: [pytest.approx(1.5)]}
        assert find_foretold(instance, steps[1:]) == {}, "two of the days never had their turn"
        assert find_foretold(instance, []) == {}


def test_what_stood_has_no_turn(tmp_path: Path) -> None:
    with DagsterInstance.local_temp(str(tmp_path)) as instance:
        for stands, seconds in ((2, 20.0), (4, 1.0)):
            backfill_id = request(instance, seconds, stands=stands)
            tags = {BACKFILL_TAG: backfill_id}
            run_id = instance.add_run(DagsterRun("flights", tags=tags)).run_id
            finish(instance, backfill_id)
            computed = replace(STEP, run_id=run_id, published=4 - stands)
            expected = {RAW: [pytest.approx(0.75)]} if computed.published else {}
            assert find_foretold(instance, [computed]) == expected
