"""What is noted on a run when it is created: whether it comes after others, and who works on it.

A backfill comes after the daily run, whoever asks for it, unless a person says otherwise.
"""

import logging
import sys
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
from dagster import DagsterInstance, DagsterRun, DailyPartitionsDefinition, asset, materialize
from dagster._core.execution.plan.resume_retry import ReexecutionStrategy
from dagster._core.remote_origin import InProcessCodeLocationOrigin
from dagster._core.types.loadable_target_origin import LoadableTargetOrigin
from dagster._core.workspace.context import WorkspaceProcessContext
from dagster._core.workspace.load_target import InProcessWorkspaceLoadTarget
from dagster._daemon.backfill import execute_backfill_iteration

from backfill_engine.orchestration.instance.dagster_internals import BACKFILL_TAG
from backfill_engine.orchestration.instance.own_runs import OWN_STEP
from backfill_engine.orchestration.instance.processes import identify_own_process
from backfill_engine.orchestration.planning.launching import build_launch_tags
from backfill_engine.orchestration.runs.claims import CREATOR_TAG, PROCESS_TAG, find_dead_runs
from backfill_engine.orchestration.runs.option_declarations import Launch
from backfill_engine.orchestration.runs.run_tags import (
    ABOUT_TAG,
    BACKGROUND_TAG,
    BEHIND_THE_DAILY_RUN,
    IN_BACKGROUND,
    PAUSED_TAG,
    PRIORITY_TAG,
)
from backfill_engine_tests.pipeline.requesting import (
    get_backfill,
    get_run,
    identify_dead_process,
    request,
)
from backfill_engine_tests.pipeline.running import RAW, list_days

# Dagster reads a deprecated attribute of its own where it loads definitions in the process.
pytestmark = pytest.mark.filterwarnings("ignore:.*environment_vars:DeprecationWarning")

BEHIND = str(BEHIND_THE_DAILY_RUN)


@pytest.fixture
def workspace(instance: DagsterInstance) -> Iterator[WorkspaceProcessContext]:
    """What a daemon knows of the project."""
    target = LoadableTargetOrigin(
        executable_path=sys.executable, module_name="backfill_assets.definitions"
    )
    origin = InProcessCodeLocationOrigin(target, location_name="backfill_assets")
    load_target = InProcessWorkspaceLoadTarget(origin)
    with WorkspaceProcessContext(instance, load_target) as workspace:
        yield workspace


def carry_out(workspace: WorkspaceProcessContext) -> DagsterRun:
    """Lets the daemon look at its backfills once, and returns the run that it queues."""
    errors = [*execute_backfill_iteration(workspace, logging.getLogger(__name__))]
    assert not any(errors)
    (run,) = workspace.instance.get_runs()
    return run


def retry(workspace: WorkspaceProcessContext, run: DagsterRun) -> DagsterRun:
    """What the daemon makes of a run that crashed."""
    request_context = workspace.create_request_context()
    location = request_context.get_code_location("backfill_assets")
    return workspace.instance.create_reexecuted_run(
        request_context=request_context,
        parent_run=run,
        code_location=location,
        remote_job=location.get_repository("__repository__").get_full_job(run.job_name),
        strategy=ReexecutionStrategy.ALL_STEPS,
        use_parent_run_tags=True,
    )


def test_a_run_of_a_backfill_that_says_nothing_is_behind_the_daily_run_and_so_is_its_retry(
    workspace: WorkspaceProcessContext,
) -> None:
    backfill = request(workspace.instance, RAW, days=list_days(2, 3))
    run = carry_out(workspace)
    assert run.tags[BACKFILL_TAG] == backfill
    assert IN_BACKGROUND.items() <= run.tags.items()
    assert IN_BACKGROUND.items() <= retry(workspace, run).tags.items()


@pytest.mark.parametrize("priority", ["0", "3", "-2"])
def test_what_a_person_says_of_a_backfill_wins(
    workspace: WorkspaceProcessContext, priority: str
) -> None:
    instance = workspace.instance
    backfill = get_backfill(instance, request(instance, RAW, days=list_days(2, 3)))
    instance.update_backfill(backfill._replace(tags={**backfill.tags, PRIORITY_TAG: priority}))
    run = carry_out(workspace)
    assert run.tags[PRIORITY_TAG] == priority
    assert BACKGROUND_TAG in run.tags, "the daily run finds a place all the same"
    assert retry(workspace, run).tags[PRIORITY_TAG] == priority


def test_what_is_begun_again_says_nothing_of_the_process_that_is_gone(
    workspace: WorkspaceProcessContext,
) -> None:
    instance = workspace.instance
    request(instance, RAW, days=list_days(2, 3))
    run = carry_out(workspace)
    gone = identify_dead_process()
    instance.add_run_tags(run.run_id, {PROCESS_TAG: gone, CREATOR_TAG: gone, PAUSED_TAG: "deploy"})
    killed = get_run(instance, run.run_id)
    again = retry(workspace, killed)
    assert not {PROCESS_TAG, PAUSED_TAG} & again.tags.keys()
    assert again.tags[CREATOR_TAG] == identify_own_process()
    assert again.tags[ABOUT_TAG] == run.tags[ABOUT_TAG]
    assert again.tags[BACKFILL_TAG] == run.tags[BACKFILL_TAG]
    assert again.run_id not in find_dead_runs(instance, now=datetime.now(tz=UTC), silent_seconds=60)


def test_runs_of_no_backfill_stay_as_they_are(instance: DagsterInstance) -> None:
    days = DailyPartitionsDefinition("2013-01-01", end_date="2013-01-03")

    @asset(partitions_def=days, op_tags=OWN_STEP)
    def plain() -> None:
        pass

    day = "2013-01-02"
    for tags in ({}, {BACKFILL_TAG: "abcdefgh"}):
        assert materialize([plain], partition_key=day, instance=instance, tags=tags).success
    of_backfill, daily = instance.get_runs()
    assert not IN_BACKGROUND.keys() & daily.tags.keys()
    assert IN_BACKGROUND.items() <= of_backfill.tags.items()


@pytest.mark.parametrize(
    ("priority", "expected"), [(None, None), (0, "0"), (BEHIND_THE_DAILY_RUN, BEHIND)]
)
def test_a_launch_says_its_priority_also_where_that_is_the_daily_runs(
    priority: int | None, expected: str | None
) -> None:
    assert build_launch_tags(Launch(priority=priority)).get(PRIORITY_TAG) == expected
