"""A real daemon with one place for backfills: a deploy in mid-backfill."""

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
import yaml
from dagster import DagsterInstance, DagsterRun, RunsFilter

from backfill_engine.orchestration.instance.dagster_internals import BACKFILL_TAG
from backfill_engine.orchestration.runs.chains import find_partitions_at_work
from backfill_engine.orchestration.runs.pausing import pause
from backfill_engine.orchestration.runs.run_tags import (
    ALLOW_NEW_CODE_TAG,
    BACKGROUND_TAG,
    CHAIN_TAG,
)
from backfill_engine_tests.commands import Project, change_code, deploy
from backfill_engine_tests.pipeline.commanding import (
    command,
    find_listed,
    launch,
    list_commits,
    read_lines,
    watch,
)
from backfill_engine_tests.pipeline.landing_zone import LandingZone
from backfill_engine_tests.pipeline.running import RAW, list_days
from backfill_engine_tests.project import defs
from backfill_engine_tests.servers import Dagster, serve, wait_for

pytestmark = [pytest.mark.slow, pytest.mark.by_hand, pytest.mark.timeout(1800)]

OF_RAW = ("--select", RAW)
# These days are published before, so a range of the days around them is two runs.
BEFORE = ("2013-01-04", "2013-01-15")
NOT_PUBLISHED = ("--only", "missing,failed,withheld")
BY_DAYS = ("--chunk", "days=1")
LANDED = list_days(1, 15)


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], str]:
    """One undisturbed run computes the expected checksums from the same landing zone."""
    root = tmp_path_factory.mktemp("undisturbed")
    LandingZone(root / "landing").land(LANDED)
    project = Project(root, root / "landing")
    run = project.materialize(RAW, partitions=f"{LANDED[0]}...{LANDED[-1]}")
    assert run.returncode == 0, run.stderr
    return project.read_checksums()


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A copy of the project is deployed, and two days are published."""
    root = tmp_path_factory.mktemp("project")
    code = (("PYTHONPATH", str(deploy(root / "deployed"))),)
    zone = LandingZone(root / "landing")
    zone.land(BEFORE)
    home = Project(root, zone.root, code)
    project = replace(home, dagster_yaml=leave_one_place(home, root))
    run = project.materialize(RAW, partitions=f"{BEFORE[0]}...{BEFORE[1]}")
    assert "withheld 10 of 12 partitions" in run.stderr, "what didn't land"
    zone.land(day for day in LANDED if day not in BEFORE)  # Another file would be stale.
    return project


def leave_one_place(home: Project, root: Path) -> Path:
    """Writes the home's `dagster.yaml` with two places, of which backfills may take one."""
    config = yaml.safe_load(home.dagster_yaml.read_text())
    runs = config["concurrency"]["runs"]
    (limit,) = (limit for limit in runs["tag_concurrency_limits"] if limit["key"] == BACKGROUND_TAG)
    assert limit["limit"] == runs["max_concurrent_runs"] - 1
    limit["limit"], runs["max_concurrent_runs"] = 1, 2
    path = root / "one_place.yaml"
    path.write_text(yaml.safe_dump(config))
    return path


@pytest.fixture(scope="module")
def dagster(project: Project) -> Iterator[Dagster]:
    with serve(project, project.root / "deployed" / "workspace.yaml") as served:
        yield served


@pytest.fixture
def instance(project: Project) -> Iterator[DagsterInstance]:
    with DagsterInstance.from_config(project.environment["DAGSTER_HOME"]) as opened:
        yield opened


def wait_until(condition: Callable[[], object], *, seconds: float = 400) -> None:
    wait_for(lambda: bool(condition()), seconds=seconds, look_every=0.3)


def list_runs(instance: DagsterInstance, backfill: str) -> list[DagsterRun]:
    """Of a backfill and what continues it, oldest first."""
    tags = (BACKFILL_TAG, CHAIN_TAG)
    found = [run for tag in tags for run in instance.get_runs(RunsFilter(tags={tag: backfill}))]
    return found[::-1]


def list_statuses(instance: DagsterInstance, backfill: str) -> list[str]:
    return [run.status.value for run in list_runs(instance, backfill)]


def deploy_other_code(project: Project, dagster: Dagster) -> None:
    change_code(project.root / "deployed")
    dagster.reload()


def test_a_deploy_in_mid_backfill_stops_the_rest_unless_that_is_allowed(
    project: Project,
    dagster: Dagster,
    instance: DagsterInstance,
    expected: dict[tuple[str, str], str],
) -> None:
    ends = ("--from", "2013-01-01", "--to", "2013-01-06")
    stopped = launch(project, *OF_RAW, *ends, *NOT_PUBLISHED)
    wait_until(lambda: list_commits(project, RAW, "2013-01-01"))
    assert list_statuses(instance, stopped)[1:] == ["QUEUED"]
    deploy_other_code(project, dagster)
    with watch(project, stopped) as watching:
        assert watching.wait(timeout=600) == 1
    (held_back,) = read_lines(project, stopped)[-1]["held_back"]
    assert (held_back["table"], held_back["ranges"]) == (RAW, ["2013-01-05...2013-01-06"])
    (reason,) = held_back["reasons"]
    (first, second) = list_runs(instance, stopped)
    assert f"since run {first.run_id} of backfill {stopped} another code was deployed" in reason
    assert f"or say why by the tag {ALLOW_NEW_CODE_TAG}; " in reason
    assert second.status.value == "FAILURE"
    assert list_commits(project, RAW, "2013-01-05", "2013-01-06") == []

    days = list_days(5, 11)
    why = "a remark was added"
    ends = ("--from", days[0], "--to", days[-1], *BY_DAYS)
    allowed = launch(project, *OF_RAW, *ends, *NOT_PUBLISHED, "--allow-new-code", why)
    wait_until(lambda: list_commits(project, RAW, *days))
    pause(instance, allowed, reason="deploy", now=datetime.now(tz=UTC))
    wait_until(lambda: find_listed(project, allowed)["state"] == "paused")
    deploy_other_code(project, dagster)
    command(project, "backfill", "resume", allowed)
    with watch(project, allowed) as watching:
        assert watching.wait(timeout=600) == 0, read_lines(project, allowed)[-1]
    commits = list_commits(project, RAW, *days)
    remarks = [commit.record.features.get("new_code", "") for commit in commits if commit.record]
    assert {*remarks} == {"", why}
    assert remarks == sorted(remarks), (
        "the chunks before the deploy went by the code of the backfill"
    )
    published = [key for commit in commits if commit.record for key in commit.record.rows]
    assert sorted(published) == days, "and they stand: each once"
    certificates = json.loads(command(project, "proof", "certificate", allowed, "--json"))
    assert [certificate["features"] for certificate in certificates] == [{}, {"new_code": why}]
    assert {
        key: checksum for key, checksum in project.read_checksums().items() if key[1] <= days[-1]
    } == {key: checksum for key, checksum in expected.items() if key[1] <= days[-1]}

    # The backfill is published, and Dagster closes it at its daemon's next look.
    wait_until(lambda: find_partitions_at_work(instance, defs.resolve_asset_graph()) == {})
    # Only what other code published is stale, and only that is computed again.
    ends = ("--from", days[0], "--to", days[-1])
    logic = launch(project, *OF_RAW, *ends, "--template", "logic_change", "--reason", why)
    with watch(project, logic) as watching:
        assert watching.wait(timeout=600) == 0, read_lines(project, logic)[-1]
    stale = [
        key
        for commit in commits
        if commit.record and not commit.record.features
        for key in commit.record.rows
    ]
    again = [commit for commit in list_commits(project, RAW, *days) if commit not in commits]
    assert sorted(key for commit in again if commit.record for key in commit.record.rows) == sorted(
        stale
    )
