"""The sensor goes on after a run that withheld something, however that was started."""

from collections.abc import Sequence

import pytest
from dagster import RunRequest

from backfill_engine.orchestration.runs.features import CODE_TAG
from backfill_engine.orchestration.runs.run_tags import (
    FOREGROUND_TAG,
    INCREMENTAL_TAG,
    PRIORITY_TAG,
    RANGE_END_TAG,
    RANGE_START_TAG,
    WITHHELD_TAG,
)
from backfill_engine.spark.remotes import SPARK_REMOTE_TAG
from backfill_engine_tests.pipeline.running import FEATURES, RAW, STAGING, Pipeline
from backfill_engine_tests.pipeline.watching import evaluate_sensor
from backfill_engine_tests.project import continue_after_withheld

FIRST, BAD, LAST = "2013-01-04", "2013-01-05", "2013-01-06"


def ask_sensor(
    pipeline: Pipeline, cursor: str | None
) -> tuple[str | None, Sequence[RunRequest], str]:
    """Its new cursor, what it requests, and why nothing; in a code location, unlike the runs."""
    tick = evaluate_sensor(continue_after_withheld, pipeline.instance, cursor)
    return tick.cursor, tick.run_requests or [], tick.skip_message or ""


@pytest.mark.parametrize("job", [None, "flights"], ids=["selected assets", "ops of a job"])
def test_a_run_that_a_shell_started_goes_on(pipeline: Pipeline, job: str | None) -> None:
    pipeline.zone.add_lines(BAD, *["{"] * 5)
    cursor, _, _ = ask_sensor(pipeline, None)
    run = pipeline.run(RAW, STAGING, first=FIRST, last=LAST, job=job)
    assert "To go on with what does not depend on them:" in run.message
    # The tags are added afterwards, as this run has its session from the test.
    carried = {
        SPARK_REMOTE_TAG: "sc://other",
        PRIORITY_TAG: "-1",
        "backfill_assets/at_most_1": "a launch",
        "backfill_assets/launched_by": "anna",
    }
    pipeline.instance.add_run_tags(run.id, {**carried, INCREMENTAL_TAG: "true"})
    _, requests, _ = ask_sensor(pipeline, cursor)
    asked = [(request.tags[RANGE_START_TAG], request.tags[RANGE_END_TAG]) for request in requests]
    assert asked == [(FIRST, FIRST), (LAST, LAST)]
    for request in requests:
        assert [key.to_user_string() for key in request.asset_selection or ()] == [STAGING]
        assert request.tags.items() >= carried.items()
        assert request.tags.keys().isdisjoint({INCREMENTAL_TAG, WITHHELD_TAG, CODE_TAG})


def test_it_says_why_nothing_can_go_on(pipeline: Pipeline) -> None:
    pipeline.zone.add_lines(BAD, *["{"] * 5)
    cursor, _, _ = ask_sensor(pipeline, None)
    alone = pipeline.run(RAW, first=BAD, last=BAD)
    cursor, requests, why = ask_sensor(pipeline, cursor)
    assert (list(requests), why) == (
        [],
        f"run {alone.id} withheld partitions of {RAW}: none of the run's assets comes after it",
    )
    blocked = pipeline.run(RAW, STAGING, FEATURES, first=BAD, last=BAD)
    _, requests, why = ask_sensor(pipeline, cursor)
    assert (list(requests), why) == (
        [],
        f"run {blocked.id} withheld partitions of {RAW}: no partition of {STAGING} can go: "
        f"{BAD}: {RAW} {BAD} is failed or withheld",
    )


def test_a_run_that_a_shell_waits_for_goes_on_there(pipeline: Pipeline) -> None:
    pipeline.zone.add_lines(BAD, *["{"] * 5)
    cursor, _, _ = ask_sensor(pipeline, None)
    run = pipeline.run(RAW, STAGING, first=FIRST, last=LAST, tags={FOREGROUND_TAG: "once"})
    _, requests, why = ask_sensor(pipeline, cursor)
    assert (list(requests), why) == ([], f"run {run.id}: `backfill-assets run` goes on by itself")
