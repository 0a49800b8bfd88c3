"""By night what is due is requested layer after layer, and what was withheld not over and over."""

import datetime as dt

import pytest
from dagster import RunRequest
from dagster._core.definitions.schedule_definition import ScheduleExecutionData

from backfill_engine.orchestration.instance.dagster_internals import RUN_KEY_TAG
from backfill_engine.orchestration.runs.run_tags import RANGE_END_TAG, RANGE_START_TAG
from backfill_engine_tests.pipeline.running import RAW, STAGING, Pipeline, list_days
from backfill_engine_tests.pipeline.watching import describe, evaluate_schedule, watch
from backfill_engine_tests.project import defs

NIGHT = dt.datetime(2013, 1, 11, 2, tzinfo=dt.UTC)


def tick(pipeline: Pipeline) -> ScheduleExecutionData:
    return evaluate_schedule("process_due_nightly_days", pipeline.instance, NIGHT)


def run(pipeline: Pipeline, request: RunRequest) -> bool:
    """Runs what was requested, with the tag that Dagster adds."""
    table, first, last, _ = describe(request)
    tags = {
        name: value
        for name, value in request.tags.items()
        if name not in (RANGE_START_TAG, RANGE_END_TAG)
    }
    tags[RUN_KEY_TAG] = str(request.run_key)
    return pipeline.run(table, first=first, last=last, tags=tags).success


def test_by_night_what_is_due_is_published_layer_after_layer(
    empty_pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipeline = empty_pipeline
    watch(pipeline, monkeypatch)
    pipeline.zone.land(list_days(1, 3))
    (raw,) = tick(pipeline).run_requests or []
    assert describe(raw)[:3] == (RAW, "2013-01-01", "2013-01-03")
    assert run(pipeline, raw)
    (staging,) = tick(pipeline).run_requests or []
    assert describe(staging)[:3] == (STAGING, "2013-01-01", "2013-01-03")

    pipeline.zone.land(["2013-01-04"])
    pipeline.zone.add_lines("2013-01-04", *["{"] * 5)
    raw, *_ = tick(pipeline).run_requests or []
    assert describe(raw)[:3] == (RAW, "2013-01-04", "2013-01-04")
    assert not run(pipeline, raw)
    assert RAW not in [describe(request)[0] for request in tick(pipeline).run_requests or []]
    pipeline.zone.land(["2013-01-05"])
    for _ in ("a preview, of which no run comes", "a tick"):
        raw, *_ = tick(pipeline).run_requests or []
        assert describe(raw)[:3] == (RAW, "2013-01-05", "2013-01-05"), "not with its neighbour"
    assert run(pipeline, raw)
    pipeline.zone.land(["2013-01-04"])
    raw, *_ = tick(pipeline).run_requests or []
    assert describe(raw)[:3] == (RAW, "2013-01-04", "2013-01-04")


@pytest.mark.parametrize("name", [each.name for each in defs.get_repository_def().schedule_defs])
def test_a_schedule_says_when_it_runs_and_when_to_turn_it_on(name: str) -> None:
    schedule = defs.get_repository_def().get_schedule_def(name)
    assert " UTC" in str(schedule.description)
    assert "Turn it on" in str(schedule.description)
