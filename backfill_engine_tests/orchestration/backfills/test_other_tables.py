"""A real daemon backfills tables whose partitions are days, hours and integers."""

import json
import shutil
from pathlib import Path

import pytest

from backfill_assets.samples.orders import land_orders
from backfill_engine_tests.commands import QUICKLY, Project, confirm
from backfill_engine_tests.pipeline.commanding import (
    command,
    follow,
    launch,
    list_commits,
    list_published,
    read_lines,
)
from backfill_engine_tests.pipeline.landing_zone import LandingZone
from backfill_engine_tests.pipeline.running import RAW, STAGING, list_days
from backfill_engine_tests.project import RAW_ORDERS, RAW_WEATHER
from backfill_engine_tests.servers import ask, serve

pytestmark = [pytest.mark.slow, pytest.mark.by_hand, pytest.mark.timeout(1800)]

DAYS = list_days(2, 4)
HOURS = [f"2013-01-02-{hour:02}:00" for hour in range(24)]
BUCKETS = ["0000000", "0100000", "0200000"]
TARGETS = {STAGING: DAYS, RAW_WEATHER.key: HOURS, RAW_ORDERS.key: BUCKETS}

_RUNS = """
query($backfill: String!) {
  runsOrError(filter: {tags: [{key: "dagster/backfill", value: $backfill}]}) {
    ... on Runs { results { startTime endTime } }
  }
}
"""


@pytest.fixture
def project(weather_landing: Path, tmp_path: Path) -> Project:
    """Each table was tried before anything had landed; now all has."""
    project = Project(tmp_path / "project", tmp_path / "landing", QUICKLY)
    project.landing.mkdir()
    for key, keys in TARGETS.items():
        run = project.materialize(key, partitions=f"{keys[0]}...{keys[-1]}")
        assert run.returncode != 0, run.stdout
    folder = "weather/year=2013/month=01/day=02"
    shutil.copytree(weather_landing / folder, project.landing / folder)
    land_orders(str(project.landing), scale=0.04)
    LandingZone(project.landing).land(list_days(1, 5))
    confirm(project.materialize(RAW, partitions="2013-01-01...2013-01-05"))
    return project


def test_what_failed_of_tables_of_different_grains_is_one_backfill(project: Project) -> None:
    # Flights of the third landed on the fourth: its chunk fails, and keeps only its table from
    # going on.
    for path in (project.warehouse / RAW).glob("landing_date=2013-01-04/*.parquet"):
        path.unlink()
    failed = ("--select", ",".join(TARGETS), "--only", "failed,withheld")
    with serve(project) as dagster:
        backfill = launch(project, *failed, "--chunk", "files=1")
        assert follow(project, backfill) == 1
        runs = ask(dagster.address, _RUNS, {"backfill": backfill})["runsOrError"]["results"]
    assert [
        listed["id"] for listed in json.loads(command(project, "backfill", "list", "--json"))
    ] == [backfill]
    commits = {key: list_commits(project, key, *keys) for key, keys in TARGETS.items()}
    published = {key: list_published(of) for key, of in commits.items()}
    assert published == {**TARGETS, STAGING: DAYS[:1]}
    assert len(commits[RAW_WEATHER.key]) == len(HOURS)
    held_back = read_lines(project, backfill)[-1]["held_back"]
    assert {entry["table"] for entry in held_back} == {STAGING}
    assert sum(entry["partitions"] for entry in held_back) == 2
    # Its runs take all the places at the same time.
    spans = sorted((run["startTime"], run["endTime"]) for run in runs)
    assert len(spans) == len(TARGETS)
    assert spans[1][0] < spans[0][1]
