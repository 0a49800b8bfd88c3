"""Which runs are dead: by the process that claimed them, in every unfinished state."""

import datetime as dt
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from dagster import (
    DagsterInstance,
    DagsterRun,
    DagsterRunStatus,
    DailyPartitionsDefinition,
    Definitions,
    asset,
    materialize,
)
from dagster._core.remote_origin import (
    RegisteredCodeLocationOrigin,
    RemoteJobOrigin,
    RemoteRepositoryOrigin,
)

from backfill_engine.orchestration.instance.own_runs import OWN_STEP
from backfill_engine.orchestration.instance.processes import (
    identify_own_process,
    identify_process,
    is_alive,
)
from backfill_engine.orchestration.runs.claims import (
    CREATOR_TAG,
    PROCESS_TAG,
    ClaimingInstance,
    fail_dead_runs,
    find_dead_runs,
    keep_claim,
)
from backfill_engine_tests.commands import PROJECT
from backfill_engine_tests.pipeline.requesting import get_run, identify_dead_process

SILENT_SECONDS = 600


@pytest.fixture
def instance(tmp_path: Path) -> Iterator[DagsterInstance]:
    with DagsterInstance.local_temp(str(tmp_path)) as instance:
        yield instance


def identify_killed_process() -> str:
    """One that has been killed, and that its parent has waited for."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        identity = identify_process(process.pid)
        process.kill()
    assert identity is not None
    return identity


def find_dead(instance: DagsterInstance, *, later_seconds: float = 0) -> list[str]:
    now = dt.datetime.now(tz=dt.UTC) + dt.timedelta(seconds=later_seconds)
    return list(find_dead_runs(instance, now=now, silent_seconds=SILENT_SECONDS))


def add_run(instance: DagsterInstance, status: DagsterRunStatus, **claims: str) -> None:
    tags = {{"process": PROCESS_TAG, "created_by": CREATOR_TAG}[by]: claims[by] for by in claims}
    instance.add_run(DagsterRun("__ASSET_JOB", run_id="run", status=status, tags=tags))


def test_this_process_lives_and_a_killed_one_does_not() -> None:
    assert is_alive(identify_own_process()) is True
    assert is_alive(identify_killed_process()) is False


def test_a_killed_process_that_nobody_waited_for_is_dead() -> None:
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    identity = identify_process(process.pid)
    assert identity is not None
    process.kill()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    assert is_alive(identity) is False, "it is a zombie"
    process.communicate()


def test_a_process_with_the_number_of_another_is_not_taken_for_it() -> None:
    assert is_alive(identify_dead_process()) is False


@pytest.mark.parametrize("part", [0, 1], ids=["another boot", "another PID namespace"])
def test_of_a_process_that_cannot_be_seen_nothing_is_known(part: int) -> None:
    parts = identify_killed_process().split("/")
    parts[part] = "other"
    assert is_alive("/".join(parts)) is None


@pytest.mark.parametrize("status", ["NOT_STARTED", "STARTING", "STARTED", "CANCELING"])
@pytest.mark.parametrize("tag", ["process", "created_by"])
def test_a_run_of_a_killed_process_is_dead_in_every_state(
    instance: DagsterInstance, status: str, tag: str
) -> None:
    add_run(instance, DagsterRunStatus(status), **{tag: identify_killed_process()})
    now = dt.datetime.now(tz=dt.UTC)
    dead = fail_dead_runs(instance, now=now, silent_seconds=SILENT_SECONDS)
    assert list(dead) == ["run"]
    assert get_run(instance, "run").status is DagsterRunStatus.FAILURE


def add_remote_run(instance: DagsterInstance, status: DagsterRunStatus) -> None:
    """One that a daemon, which is gone now, created for a process of its own to execute."""
    repository = RemoteRepositoryOrigin(RegisteredCodeLocationOrigin("location"), "repository")
    instance.add_run(
        DagsterRun(
            "__ASSET_JOB",
            run_id="run",
            status=status,
            tags={CREATOR_TAG: identify_killed_process()},
            remote_job_origin=RemoteJobOrigin(repository, "__ASSET_JOB"),
        )
    )


def test_a_run_in_the_queue_is_never_dead(instance: DagsterInstance) -> None:
    add_remote_run(instance, DagsterRunStatus.QUEUED)
    assert find_dead(instance, later_seconds=10 * SILENT_SECONDS) == []


def test_a_run_outlives_the_daemon_that_created_it(instance: DagsterInstance) -> None:
    add_remote_run(instance, DagsterRunStatus.STARTED)
    assert find_dead(instance, later_seconds=SILENT_SECONDS - 60) == []
    instance.add_run_tags("run", {PROCESS_TAG: identify_own_process()})
    assert find_dead(instance, later_seconds=10 * SILENT_SECONDS) == []


def test_a_run_that_its_daemon_never_handed_on_is_dead(instance: DagsterInstance) -> None:
    add_remote_run(instance, DagsterRunStatus.NOT_STARTED)
    assert find_dead(instance) == ["run"]


def test_a_run_of_a_living_process_is_not_dead_however_silent(instance: DagsterInstance) -> None:
    add_run(instance, DagsterRunStatus.STARTED, process=identify_own_process())
    assert find_dead(instance, later_seconds=10 * SILENT_SECONDS) == []


@pytest.mark.parametrize("claim", ["other/pid:[1]/12/34", "12@1700000000"])
def test_a_run_that_cannot_be_seen_is_dead_once_it_was_silent(
    instance: DagsterInstance, claim: str
) -> None:
    """On another host; of before this kind of claim."""
    add_run(instance, DagsterRunStatus.STARTED, process=claim)
    assert find_dead(instance, later_seconds=SILENT_SECONDS - 60) == []
    assert find_dead(instance, later_seconds=SILENT_SECONDS + 60) == ["run"]


def test_a_kept_claim_is_a_sign_of_life(
    instance: DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_run(instance, DagsterRunStatus.STARTED)
    monkeypatch.setattr("backfill_engine.orchestration.runs.claims._HEARTBEAT_SECONDS", 0.05)

    def read_last_sign() -> dt.datetime:
        return instance.get_run_records()[0].update_timestamp

    with keep_claim(instance, "run"):
        first = read_last_sign()
        deadline = dt.datetime.now(tz=dt.UTC) + dt.timedelta(seconds=20)
        while read_last_sign() == first:
            assert dt.datetime.now(tz=dt.UTC) < deadline, "no sign of life came"
    assert get_run(instance, "run").tags[PROCESS_TAG] == identify_own_process()


def test_the_projects_instance_claims_a_run_before_its_plan_is_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copy(PROJECT / "dagster.yaml", tmp_path)
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path))

    days = DailyPartitionsDefinition("2013-01-01", end_date="2013-01-03")

    @asset(partitions_def=days, op_tags=OWN_STEP)
    def plain() -> None:
        pass

    with DagsterInstance.get() as instance:
        assert isinstance(instance, ClaimingInstance)
        claimed: list[str | None] = []
        run_storage = instance.run_storage
        add_run = run_storage.add_run
        monkeypatch.setattr(
            run_storage,
            "add_run",
            lambda run: (claimed.append(run.tags.get(CREATOR_TAG)), add_run(run))[1],
        )
        assert materialize([plain], partition_key="2013-01-02", instance=instance).success
        # As Dagster retries a run: with the tags of the one that was killed.
        retry = instance.create_run_for_job(
            Definitions([plain]).resolve_implicit_global_asset_job_def(),
            tags={PROCESS_TAG: identify_killed_process()},
        )
        assert find_dead_runs(instance, now=dt.datetime.now(tz=dt.UTC), silent_seconds=600) == {}
    assert PROCESS_TAG not in retry.tags
    assert claimed == 2 * [identify_own_process()]
