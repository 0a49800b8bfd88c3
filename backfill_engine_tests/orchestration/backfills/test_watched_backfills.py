"""A real daemon carries a backfill out while it is watched, and is killed; no Spark."""

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import pytest
from dagster import DagsterInstance, RunsFilter

from backfill_engine.orchestration.instance.dagster_internals import BACKFILL_TAG
from backfill_engine.orchestration.runs.run_tags import (
    BACKGROUND_TAG,
    RANGE_END_TAG,
    RANGE_START_TAG,
)
from backfill_engine_tests.commands import PROJECT, Project
from backfill_engine_tests.pipeline.commanding import Line, launch, read_lines, watch
from backfill_engine_tests.pipeline.landing_zone import LandingZone
from backfill_engine_tests.pipeline.requesting import request
from backfill_engine_tests.pipeline.running import RAW, list_days

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]

_BIN = Path(sys.executable).parent


@contextmanager
def run_daemon(project: Project, **settings: str) -> Iterator["subprocess.Popen[bytes]"]:
    """A daemon whose code location only takes its time, see `pipeline.slow_tables`."""
    environment = {**project.environment, **settings, "PYTHONPATH": str(PROJECT)}
    with (project.root / "daemon.log").open("ab") as log:
        daemon = subprocess.Popen(
            [
                *(str(_BIN / "dagster-daemon"), "run"),
                *("-m", "backfill_engine_tests.pipeline.slow_tables"),
            ],
            env=environment,
            cwd=project.root,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
        try:
            yield daemon
        finally:
            daemon.send_signal(signal.SIGINT)
            with suppress(subprocess.TimeoutExpired):
                daemon.wait(timeout=30)
            with suppress(ProcessLookupError):
                os.killpg(daemon.pid, signal.SIGKILL)
            daemon.wait()


def count_published(line: Line) -> int:
    return sum(table["published"] for table in line["tables"])


def wait_for(condition: Callable[[], bool], *, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"not within {seconds} s"
        time.sleep(0.5)


@pytest.fixture
def project(tmp_path: Path) -> Project:
    LandingZone(tmp_path / "landing").land(list_days(1, 31))
    return Project(tmp_path, tmp_path / "landing")


def test_a_daily_run_and_an_urgent_backfill_go_before_the_queued_runs_of_another(
    project: Project,
) -> None:
    """The limits and priorities of `dagster.yaml` alone bring this about."""
    urgent, today = "2013-01-25", "2013-01-31"
    held_by = project.root / "held"
    held_by.touch()
    with DagsterInstance.from_config(project.environment["DAGSTER_HOME"]) as instance:
        ranges = [list_days(*ends) for ends in ((1, 6), (8, 13), (15, 15), (17, 17))]
        request(instance, RAW, days=[day for days in ranges for day in days])

        def count_runs() -> Counter[str]:
            runs = instance.get_runs(RunsFilter(tags={BACKGROUND_TAG: "true"}))
            return Counter(run.status.value for run in runs)

        with run_daemon(project, HELD_BY=str(held_by)):
            wait_for(lambda: count_runs() == {"STARTED": 2, "QUEUED": 2}, seconds=240)
            only = ("--select", RAW, "--from", urgent, "--to", urgent)
            backfill = launch(project, *only, "--priority", "1")
            daily = launch_daily_run(project, instance, today)
            wait_for(lambda: find_status(instance, daily) == "STARTED", seconds=240)
            # It waited for none of them, as none has ended.
            wait_for(lambda: count_runs() == {"STARTED": 2, "QUEUED": 3}, seconds=240)
            held_by.unlink()
            wait_for(lambda: count_runs() == {"SUCCESS": 5}, seconds=480)
            wait_for(lambda: find_status(instance, daily) == "SUCCESS", seconds=240)
        records = instance.get_run_records(RunsFilter(tags={BACKGROUND_TAG: "true"}))
        by_start = sorted(records, key=lambda record: record.start_time or 0.0)
        assert by_start[2].dagster_run.tags[BACKFILL_TAG] == backfill, "before what was queued"
        spans = sorted((record.start_time or 0.0, record.end_time or 0.0) for record in records)
        for (_, first_end), (third_start, _) in zip(spans, spans[2:], strict=False):
            assert third_start >= first_end - 0.1, "two of them at once, and never three"


def launch_daily_run(project: Project, instance: DagsterInstance, day: str) -> str:
    """Puts a run of a day into the queue, as a schedule does, and returns its id."""
    tags = json.dumps({RANGE_START_TAG: day, RANGE_END_TAG: day})
    location = ("-m", "backfill_engine_tests.pipeline.slow_tables", "-j", "__ASSET_JOB")
    project = replace(project, settings=(("PYTHONPATH", str(PROJECT)),))
    launched = project.run("dagster", "job", "launch", *location, "--tags", tags)
    assert launched.returncode == 0, launched.stdout + launched.stderr
    (run,) = instance.get_runs(RunsFilter(tags={RANGE_START_TAG: day}))
    return run.run_id


def find_status(instance: DagsterInstance, run_id: str) -> str:
    run = instance.get_run_by_id(run_id)
    assert run is not None
    return run.status.value


@pytest.mark.by_hand
def test_what_a_killed_daemon_left_at_work_is_cancelled(project: Project) -> None:
    with DagsterInstance.from_config(project.environment["DAGSTER_HOME"]) as instance:
        backfill = request(instance, RAW, days=list_days(1, 31))
        with run_daemon(project, SECONDS_A_DAY="2") as daemon, watch(project, backfill) as watching:
            wait_for(
                lambda: any(count_published(line) >= 1 for line in read_lines(project, backfill)),
                seconds=240,
            )
            os.killpg(daemon.pid, signal.SIGKILL)
            time.sleep(2)
            cancelled = project.run(
                "backfill-assets", "backfill", "cancel", backfill, "--yes", "--json"
            )
            assert cancelled.returncode == 0, cancelled.stdout + cancelled.stderr
            assert len(json.loads(cancelled.stdout)["ended"]) == 1
            assert watching.wait(timeout=60) == 130
        (run,) = instance.get_runs()
        assert run.status.value == "CANCELED"
