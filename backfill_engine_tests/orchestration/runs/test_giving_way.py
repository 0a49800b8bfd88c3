"""A backfill gives its place to what comes first, and to nothing else; it doesn't wait for ever."""

import datetime as dt
from collections.abc import Iterator
from pathlib import Path

import pytest
from dagster import DagsterInstance, DagsterRun, DagsterRunStatus
from dagster._core.remote_origin import (
    RegisteredCodeLocationOrigin,
    RemoteJobOrigin,
    RemoteRepositoryOrigin,
)

from backfill_engine.orchestration.runs.claims import PROCESS_TAG
from backfill_engine.orchestration.runs.pausing import (
    LONGEST_WAIT,
    find_why_giving_way,
    put_forward_waited,
)
from backfill_engine.orchestration.runs.run_tags import PRIORITY_TAG

QUEUED, STARTED = DagsterRunStatus.QUEUED, DagsterRunStatus.STARTED


@pytest.fixture
def instance(tmp_path: Path) -> Iterator[DagsterInstance]:
    """With two places for runs."""
    overrides = {"concurrency": {"runs": {"max_concurrent_runs": 2}}}
    with DagsterInstance.local_temp(str(tmp_path), overrides=overrides) as instance:
        yield instance


def add(
    instance: DagsterInstance,
    run_id: str,
    status: DagsterRunStatus,
    priority: str | None = None,
    *,
    is_ours: bool = True,
    **others: str,
) -> DagsterRun:
    tags = {PROCESS_TAG: "elsewhere"} if is_ours else {}
    if priority is not None:
        tags[PRIORITY_TAG] = priority
    tags |= {f"backfill_assets/{name}": value for name, value in others.items()}
    repository = RemoteRepositoryOrigin(RegisteredCodeLocationOrigin("location"), "repository")
    run = DagsterRun(
        "job",
        run_id=run_id,
        status=status,
        tags=tags,
        remote_job_origin=RemoteJobOrigin(repository, "job"),
    )
    instance.add_run(run)
    return run


def test_only_where_what_comes_first_has_no_place(instance: DagsterInstance) -> None:
    backfill = add(instance, "backfill", STARTED, "-5")
    assert not find_why_giving_way(instance, backfill)
    add(instance, "daily-run", QUEUED)
    assert not find_why_giving_way(instance, backfill), (
        "there is a place: it waits for other things"
    )
    add(instance, "other", STARTED)
    assert find_why_giving_way(instance, backfill) == (
        "run daily-ru comes first, by its priority, and had no place"
    )


@pytest.mark.parametrize("priority", [None, "0", "-5", "-7", "no number"])
def test_not_to_what_is_no_more_urgent(instance: DagsterInstance, priority: str | None) -> None:
    backfill = add(instance, "backfill", STARTED, "0")
    add(instance, "other", STARTED)
    add(instance, "waits", QUEUED, priority)
    assert not find_why_giving_way(instance, backfill)


def test_not_to_a_run_that_waits_for_others_of_its_launch(instance: DagsterInstance) -> None:
    backfill = add(instance, "backfill", STARTED, "-5")
    add(instance, "of-a-launch", STARTED, at_most_1="mine")
    add(instance, "its-next", QUEUED, "3", at_most_1="mine")
    assert not find_why_giving_way(instance, backfill)
    add(instance, "of-another", QUEUED, "3", at_most_1="another")
    assert "run of-anoth comes first" in find_why_giving_way(instance, backfill)


def test_not_where_a_shell_waits(instance: DagsterInstance) -> None:
    shell = add(instance, "shell", STARTED, "-5", foreground="once")
    add(instance, "other", STARTED)
    add(instance, "daily", QUEUED)
    assert not find_why_giving_way(instance, shell)


def test_who_has_waited_long_comes_first_as_others_do(instance: DagsterInstance) -> None:
    waiting = add(instance, "backfill", QUEUED, "-5")
    for run_id, status, priority in (
        ("at-work", STARTED, "-5"),
        ("daily-run", QUEUED, None),
        ("urgent", QUEUED, "3"),
    ):
        add(instance, run_id, status, priority)
    now = dt.datetime.now(tz=dt.UTC)
    assert put_forward_waited(instance, now=now + LONGEST_WAIT / 2) == []
    later = now + LONGEST_WAIT + dt.timedelta(minutes=1)
    assert [run.run_id for run in put_forward_waited(instance, now=later)] == [waiting.run_id]
    priorities = {run.run_id: run.tags.get(PRIORITY_TAG) for run in instance.get_runs()}
    assert priorities == {"backfill": "0", "at-work": "-5", "daily-run": None, "urgent": "3"}
    assert put_forward_waited(instance, now=later) == []
