"""January over all layers with three bad days of different kinds: what is held back, and only that.

By a real daemon without a person's help.
"""

import json
from pathlib import Path

import pytest

from backfill_engine_tests.commands import Project
from backfill_engine_tests.landing_zones import (
    blank_carriers,
    copy_days,
    double_distances,
    rewrite_records,
    truncate,
)
from backfill_engine_tests.pipeline.commanding import command
from backfill_engine_tests.servers import serve, wait_for

pytestmark = [pytest.mark.slow, pytest.mark.by_hand]

TABLES = ("raw/flights", "staging/flights", "features/carrier_delays")
DAYS = [f"2013-01-{day:02}" for day in range(1, 32)]
TRUNCATED, DOUBLED, REJECTED = "2013-01-05", "2013-01-12", "2013-01-20"
NOT_PUBLISHED = {
    "raw/flights": {TRUNCATED, REJECTED},
    "staging/flights": {TRUNCATED, DOUBLED, REJECTED},
    # Each day whose week has a day that staging withheld.
    "features/carrier_delays": {*DAYS[4:18], *DAYS[19:26]},
}


@pytest.fixture(scope="module")
def landing(sample_landing: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """January with its three bad days, and the two days in which its last flights land."""
    root = copy_days(
        sample_landing, tmp_path_factory.mktemp("landing"), first=DAYS[0], count=len(DAYS) + 2
    )
    truncate(root, TRUNCATED)
    rewrite_records(root, DOUBLED, double_distances)
    rewrite_records(root, REJECTED, blank_carriers)
    return root


def find_not_published(project: Project) -> dict[str, set[str]]:
    """Lists by table the days of January that aren't shown as materialized."""
    days = ("--from", DAYS[0], "--to", DAYS[-1])
    listed = command(project, "status", "--select", ",".join(TABLES), *days, "--json")
    found: dict[str, set[str]] = {table: set() for table in TABLES}
    for status in json.loads(listed):
        if status["status"] != "materialized":
            found[status["table"]].add(status["partition"])
    return found


def test_a_backfill_by_the_daemon_publishes_all_that_depends_on_no_bad_day(
    landing: Path, tmp_path: Path
) -> None:
    project = Project(tmp_path / "project", landing)
    with serve(project) as dagster:
        backfill = dagster.launch_backfill(*TABLES, first=DAYS[0], last=DAYS[-1])
        wait_for(lambda: find_not_published(project) == NOT_PUBLISHED, seconds=520)
        assert_certified_as_one_chain(project, backfill)
    assert_nothing_withheld_can_be_read(project)
    assert_withheld_rows_can_be_shown(project)


def assert_certified_as_one_chain(project: Project, backfill: str) -> None:
    """Also the runs that the sensor requested, which Dagster doesn't count as the backfill's."""
    certificates = json.loads(command(project, "proof", "certificate", backfill, "--json"))
    assert len({certificate["run_id"] for certificate in certificates}) > 1
    published = {
        (certificate["asset_key"], row["partition"])
        for certificate in certificates
        for row in certificate["partitions"]
        if row["status"] == "published"
    }
    assert published == {(key, day) for key in NOT_PUBLISHED for day in DAYS} - {
        (key, day) for key, days in NOT_PUBLISHED.items() for day in days
    }


def assert_withheld_rows_can_be_shown(project: Project) -> None:
    day = ("--from", DOUBLED, "--to", DOUBLED)
    withheld = ("status", "--withheld", *day, "--select")
    listed = json.loads(command(project, *withheld, "staging/flights", "--json"))
    (kept,) = (kind for kind in listed if kind["count"])
    assert kept["what"] == "withheld rows"
    assert kept["count"] > len(kept["rows"]) == 20
    assert {row["flight_date"] for row in kept["rows"]} == {DOUBLED}
    nothing = command(project, *withheld, "raw/flights")
    assert nothing == "nothing is kept aside of these partitions\n"


def assert_nothing_withheld_can_be_read(project: Project) -> None:
    for table, days in NOT_PUBLISHED.items():
        readable = {day for key, day in project.read_checksums() if key == table}
        assert readable == {*DAYS} - days
