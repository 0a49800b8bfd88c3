"""A real daemon runs backfills in chunks that people command, on PostgreSQL."""

import json
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from backfill_engine_tests.commands import QUICKLY, Project
from backfill_engine_tests.pipeline.commanding import (
    command,
    find_listed,
    launch,
    list_commits,
    list_published,
    open_postgres_home,
    read_lines,
    watch,
)
from backfill_engine_tests.pipeline.landing_zone import LandingZone, build_landed
from backfill_engine_tests.pipeline.running import RAW, STAGING, list_days
from backfill_engine_tests.servers import Dagster, serve, wait_for

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]

DAYS, OTHERS = list_days(1, 19), list_days(20, 31)
OVERLAP, CHANGED = list_days(24, 27), "2013-01-27"
PARTITIONS = 2 * len(DAYS)
"""Of two tables: enough chunks to be at work yet when a command comes."""
BY_DAYS = ("--chunk", "days=1")
BOTH = ("--select", f"{RAW},{STAGING}", "--from", DAYS[0], "--to", DAYS[-1])


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    root = tmp_path_factory.mktemp("project")
    LandingZone(root / "landing").land(list_days(1, 31))
    with open_postgres_home(root) as project:
        yield project


@pytest.fixture(scope="module")
def dagster(project: Project) -> Iterator[Dagster]:
    with serve(project) as served:
        yield served


def wait_until(condition: Callable[[], object], *, seconds: float = 400) -> None:
    wait_for(lambda: bool(condition()), seconds=seconds, look_every=0.3)


def run_undisturbed(root: Path, landing: Path, *keys: str, days: list[str]) -> dict:
    """One run computes the expected checksums from the same landing zone."""
    project = Project(root, landing, QUICKLY)
    run = project.materialize(*keys, partitions=f"{days[0]}...{days[-1]}")
    assert run.returncode == 0, run.stderr
    return project.read_checksums()


def read_checksums(project: Project, days: list[str]) -> dict:
    """An independent reader computes the checksums of these days."""
    return {key: checksum for key, checksum in project.read_checksums().items() if key[1] in days}


def list_statuses(project: Project) -> dict[tuple[str, str], str]:
    """Reads what `status` tells of the days."""
    ends = ("--from", DAYS[0], "--to", DAYS[-1])
    listed = json.loads(command(project, "status", "--select", f"{RAW},{STAGING}", *ends, "--json"))
    return {(status["table"], status["partition"]): status["status"] for status in listed}


def test_it_is_cancelled_and_its_rest_is_asked_for_again(
    project: Project, dagster: Dagster, tmp_path: Path
) -> None:
    backfill = launch(project, *BOTH, *BY_DAYS, "--reason", "wrong numbers")
    with watch(project, backfill) as watching:
        wait_until(lambda: list_commits(project, RAW, *DAYS))
        asked_at = time.monotonic()
        cancelled = json.loads(command(project, "backfill", "cancel", backfill, "--yes", "--json"))
        assert time.monotonic() - asked_at < 30, "within seconds, of which 3 are the command's"
        assert (len(cancelled["ended"]), cancelled["unfinished"]) == (1, [])
        assert watching.wait(timeout=120) == 130
    # It was inside a chunk, which it may have committed but not recorded yet.
    published = len(read_checksums(project, DAYS))
    recorded = sum(read_lines(project, backfill)[-1]["published"].values())
    assert 0 < published < PARTITIONS
    assert published - 1 <= recorded <= published
    assert recorded <= [*list_statuses(project).values()].count("materialized") <= published

    resumed = json.loads(command(project, "backfill", "retry", backfill, "--yes", "--json"))
    assert PARTITIONS - published <= resumed["partitions"] <= PARTITIONS - recorded
    with watch(project, resumed["backfill_id"]) as watching:
        assert watching.wait(timeout=600) == 0
    assert {*list_statuses(project).values()} == {"materialized"}
    assert find_listed(project, backfill)["published"] == PARTITIONS
    assert find_listed(project, resumed["backfill_id"])["state"] == "published"
    expected = run_undisturbed(tmp_path, project.landing, RAW, STAGING, days=DAYS)
    assert read_checksums(project, DAYS) == expected


def test_it_is_paused_and_goes_on(project: Project, dagster: Dagster) -> None:
    def count_commits() -> int:
        return sum(len(list_commits(project, table, *DAYS)) for table in (RAW, STAGING))

    before = count_commits()
    backfill = launch(project, *BOTH, *BY_DAYS, "--restart")
    with watch(project, backfill) as watching:
        wait_until(lambda: count_commits() > before)
        assert "it ends after the chunk at work" in command(
            project, "backfill", "pause", backfill, "--reason", "disk"
        )
        wait_until(lambda: find_listed(project, backfill)["state"] == "paused")
        paused_at = count_commits()
        assert before < paused_at < before + PARTITIONS
        (first, *_) = read_lines(project, backfill)
        assert first["state"] in ("requested", "running")
        assert watching.poll() is None, "what is paused is not over"

        command(project, "backfill", "resume", backfill)
        assert watching.wait(timeout=600) == 0
    assert count_commits() == before + PARTITIONS, "each chunk once"


def test_one_for_the_night_begins_once_its_window_opens(project: Project, dagster: Dagster) -> None:
    # A backfill that was paused is looked at once more, so its days are not free at once.
    days = OTHERS[-3:]
    before = len(list_commits(project, RAW, *days))
    opens = (datetime.now(tz=UTC) + timedelta(seconds=150)).replace(second=0, microsecond=0)
    closes = opens + timedelta(hours=2)
    backfill = launch(
        project,
        *("--select", RAW, "--from", days[0], "--to", days[-1]),
        *("--template", "full_refresh", "--no-downstream"),
        *("--window", f"{opens:%H:%M}-{closes:%H:%M}"),
    )
    with watch(project, backfill) as watching:
        wait_until(lambda: find_listed(project, backfill)["state"] == "paused")
        assert len(list_commits(project, RAW, *days)) == before
        assert watching.wait(timeout=600) == 0
    (again,) = list_commits(project, RAW, *days)[before:]
    assert again.committed_at > opens
    assert list_published([again]) == days


@pytest.mark.by_hand
def test_a_protected_day_is_refused_also_to_who_launches_in_the_ui(
    project: Project, dagster: Dagster
) -> None:
    day = ("--from", DAYS[2], "--to", DAYS[2])
    command(project, "protect", RAW, *day, "--reason", "books closed")
    before = list_commits(project, RAW, *DAYS)
    ends = {"first": DAYS[1], "last": DAYS[3]}
    refused = dagster.launch_backfill(RAW, **ends)
    with watch(project, refused) as watching:
        assert watching.wait(timeout=600) == 1
    reasons = [
        why
        for held_back in read_lines(project, refused)[-1]["held_back"]
        for why in held_back["reasons"]
    ]
    assert any(f"protected: {RAW} {DAYS[2]}: books closed" in why for why in reasons), reasons
    assert list_commits(project, RAW, *DAYS) == before
    overridden = dagster.launch_backfill(RAW, **ends, override_protection="restated")
    with watch(project, overridden) as watching:
        assert watching.wait(timeout=600) == 0
    assert len(list_commits(project, RAW, *DAYS)) == len(before) + 1


@pytest.mark.by_hand
def test_overlapping_backfills_lose_no_update(
    project: Project, dagster: Dagster, tmp_path: Path
) -> None:
    first, second = OTHERS[:8], OTHERS[4:]
    options = {"chunk": "days=1", "restart": "true"}
    former = dagster.launch_backfill(RAW, first=first[0], last=first[-1], **options)
    refused = project.run(
        *("backfill-assets", "launch", "--select", RAW, "--yes"),
        *("--from", second[0], "--to", second[-1], *BY_DAYS),
    )
    assert refused.returncode == 1
    assert (
        f"error: runs are at work on {RAW} {OVERLAP[0]}...{OVERLAP[-1]}, or requested: wait for "
        "them, cancel them (`backfill-assets backfill list` lists them), or choose others with "
        "--only; nothing was launched"
    ) in refused.stderr
    latter = dagster.launch_backfill(RAW, first=second[0], last=second[-1], **options)
    wait_until(lambda: list_commits(project, RAW, *OTHERS))
    # One of them may have listed this file before it changed.
    more = {**build_landed(CHANGED)[5], "flight": 9001}
    LandingZone(project.landing).add_lines(CHANGED, json.dumps(more))
    for backfill in (former, latter):
        with watch(project, backfill) as watching:
            assert watching.wait(timeout=600) in (0, 1)
        # Each tells how the partitions of both ended, whoever tried them last.
        for held_back in read_lines(project, backfill)[-1]["held_back"]:
            if backfill == former and held_back["status"] == "in progress":
                continue  # The other is at work on it.
            assert held_back["status"] == "failed", held_back
            assert "changed while they were read" in held_back["reasons"][0]
    expected = run_undisturbed(tmp_path, project.landing, RAW, days=OTHERS)
    found = read_checksums(project, OTHERS)
    assert found.items() <= expected.items()
    # A file that changed while it was read fails its chunk, and that stops the run.
    assert {key[1] for key in expected.keys() - found.keys()} <= {*list_days(27, 31)}
    for backfill in (former, latter):
        if find_listed(project, backfill)["state"] != "published":
            resumed = json.loads(command(project, "backfill", "retry", backfill, "--yes", "--json"))
            with watch(project, resumed["backfill_id"]) as watching:
                assert watching.wait(timeout=600) == 0
    assert read_checksums(project, OTHERS) == expected
