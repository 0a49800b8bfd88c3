"""A daemon that is killed in mid-backfill with all that it started; the next one goes on."""

import os
import signal
from pathlib import Path

import pytest

from backfill_engine_tests.commands import QUICKLY, Project, confirm
from backfill_engine_tests.pipeline.commanding import (
    find_listed,
    follow,
    launch,
    list_commits,
    open_postgres_home,
    wait_until,
)
from backfill_engine_tests.pipeline.landing_zone import LandingZone
from backfill_engine_tests.pipeline.running import RAW, STAGING, list_days
from backfill_engine_tests.servers import serve

pytestmark = [pytest.mark.slow, pytest.mark.by_hand, pytest.mark.timeout(1800)]

DAYS = list_days(1, 6)
TABLES = (RAW, STAGING)
RANGE = ("--from", DAYS[0], "--to", DAYS[-1])


def test_a_backfill_outlives_its_daemon(tmp_path: Path) -> None:
    LandingZone(tmp_path / "landing").land(DAYS)
    with open_postgres_home(tmp_path) as project:
        with serve(project) as first:
            backfill = launch(project, "--select", ",".join(TABLES), *RANGE, "--chunk", "days=1")
            wait_until(lambda: list_commits(project, RAW, *DAYS))
            os.killpg(first.process.pid, signal.SIGKILL)
        assert 0 < len(project.read_checksums()) < len(TABLES) * len(DAYS)
        with serve(project):
            assert follow(project, backfill) == 0
        assert find_listed(project, backfill)["published"] == len(TABLES) * len(DAYS)
        # At most the day whose commit nobody had looked at yet was published again.
        again = [day for day in DAYS if len(list_commits(project, RAW, day)) > 1]
        assert len(again) <= 1
        assert all(len(list_commits(project, STAGING, day)) == 1 for day in DAYS)
        undisturbed = Project(tmp_path / "undisturbed", project.landing, QUICKLY)
        confirm(undisturbed.materialize(*TABLES, partitions=f"{DAYS[0]}...{DAYS[-1]}"))
        assert project.read_checksums() == undisturbed.read_checksums()
