"""Two processes write one table at the same time: on a disk, on S3, and one of them by Sail."""

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TypeAlias

import pytest

from backfill_engine.lake.commits import Commit
from backfill_engine.lake.table_log import read_log
from backfill_engine.lake.warehouse import Warehouse
from backfill_engine_tests.lake.readings import READINGS, ReadingRow, build_rows, read_rows
from backfill_engine_tests.lake.writing_process import WRITERS, Step, StepReport
from backfill_engine_tests.object_store import BUCKET, ObjectStore
from backfill_engine_tests.shared_fixtures import build_days

pytestmark = pytest.mark.slow

TIMES = {"disk": 2, "s3": 10, "sail": 10}
_S3_COMMIT_SECONDS = 0.3
Steps: TypeAlias = Mapping[str, Step]
DISJOINT: Steps = {
    "a": Step("disjoint", "2013-01-01", days=3, times=0),
    "b": Step("disjoint", "2013-01-04", days=3, times=0),
}
OVERLAPPING: Steps = {
    "a": Step("overlapping", "2014-01-01", days=4, times=0),
    "b": Step("overlapping", "2014-01-03", days=4, times=0),
}
each_step = pytest.mark.parametrize(
    "steps", [DISJOINT, OVERLAPPING], ids=["disjoint", "overlapping"]
)


@dataclass(frozen=True)
class Outcome:
    """What both processes wrote.

    Attributes:
        warehouse: where.
        times: how often each wrote in each step.
        reports: what they reported, by (writer, step).
    """

    warehouse: Warehouse
    times: int
    reports: Mapping[tuple[str, str], StepReport]


@pytest.fixture(
    scope="module",
    params=[
        pytest.param("disk", marks=pytest.mark.by_hand),
        pytest.param("s3", marks=pytest.mark.by_hand),
        "sail",
    ],
)
def outcome(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Outcome]:
    """Runs both processes once, first on disjoint and then on overlapping partitions."""
    times = TIMES[request.param]
    warehouse = Warehouse(str(tmp_path_factory.mktemp("warehouse")))
    with pytest.MonkeyPatch.context() as environment:
        store: ObjectStore | None = None
        if request.param == "s3":
            store = request.getfixturevalue("running_object_store")
            assert store is not None
            for name, value in store.environment.items():
                environment.setenv(name, value)
            warehouse = Warehouse(f"s3a://{BUCKET}/{Path(warehouse.root).name}")
            store.delay_commits(seconds=_S3_COMMIT_SECONDS)
        environment.setenv("BACKFILL_WAREHOUSE", warehouse.root)
        barrier = tmp_path_factory.mktemp("barrier")
        engines = {"a": "spark", "b": "sail" if request.param == "sail" else "spark"}
        reports = _write(warehouse, barrier, engines, times=times)
        if store is not None:
            store.delay_commits(seconds=0.0)
        yield Outcome(warehouse, times, reports)


def _write(
    warehouse: Warehouse, barrier: Path, engines: Mapping[str, str], *, times: int
) -> Mapping[tuple[str, str], StepReport]:
    processes: dict[str, subprocess.Popen[str]] = {}
    reports: dict[tuple[str, str], StepReport] = {}
    module = "backfill_engine_tests.lake.writing_process"
    try:
        for writer in WRITERS:
            steps = [replace(step[writer], times=times) for step in (DISJOINT, OVERLAPPING)]
            what = (warehouse.root, str(barrier), writer, json.dumps([*map(asdict, steps)]))
            processes[writer] = subprocess.Popen(
                [sys.executable, "-m", module, *what],
                cwd=Path(__file__).parents[2],
                env={**os.environ, "BACKFILL_ENGINE": engines[writer]},
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
        for writer, process in processes.items():
            out, err = process.communicate(timeout=500)
            assert process.returncode == 0, err
            for report in (StepReport(**json.loads(line)) for line in out.splitlines()):
                reports[writer, report.step] = report
    finally:
        for process in processes.values():
            process.kill()
            process.communicate()
    return reports


def find_publishes(warehouse: Warehouse, steps: Steps) -> list[tuple[str, Commit]]:
    """The commits of a step with their writers, oldest first."""
    first_days = {step.first_day for step in steps.values()}
    return [
        (commit.record.run_id, commit)
        for commit in reversed(read_log(warehouse, READINGS).commits)
        if commit.record and min(commit.record.rows) in first_days
    ]


def read_days(warehouse: Warehouse, first: str, version: int) -> list[ReadingRow]:
    starts = {day.slice.start for day in build_days(first, 6)}
    return [row for row in read_rows(warehouse, version=version) if row[0] in starts]


@each_step
def test_writes_of_both_processes_overlapped_in_time(outcome: Outcome, steps: Steps) -> None:
    a, b = (outcome.reports[writer, steps[writer].name] for writer in WRITERS)
    assert max(a.began, b.began) < min(a.ended, b.ended)


@each_step
def test_every_write_of_both_is_one_commit(outcome: Outcome, steps: Steps) -> None:
    writers = [writer for writer, _ in find_publishes(outcome.warehouse, steps)]
    assert Counter(writers) == dict.fromkeys(WRITERS, outcome.times)


def test_table_is_created_once_though_both_try(outcome: Outcome) -> None:
    commits = read_log(outcome.warehouse, READINGS).commits
    assert [commit.version for commit in commits if commit.operation == "CREATE TABLE"] == [0]
    assert len(commits) == 1 + 4 * outcome.times


@each_step
def test_every_version_is_as_if_each_write_had_waited(outcome: Outcome, steps: Steps) -> None:
    values: dict[str, str] = {}
    writes: Counter[str] = Counter()
    for writer, commit in find_publishes(outcome.warehouse, steps):
        writes[writer] += 1
        for day in build_days(steps[writer].first_day, steps[writer].days):
            values[day.key] = f"{writer}{writes[writer]}"
        expected = [row for key in values for row in build_rows(build_days(key), values[key])]
        found = read_days(outcome.warehouse, steps["a"].first_day, commit.version)
        assert found == sorted(expected)
