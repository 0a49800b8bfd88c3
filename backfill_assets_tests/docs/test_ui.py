"""The clicks of `docs/ui.md`, by a real browser on a real webserver and daemon."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from backfill_assets_tests.browser import Browser, open_browser
from backfill_assets_tests.commands import Project
from backfill_assets_tests.landing_zones import blank_carriers, copy_days, rewrite_records
from backfill_assets_tests.servers import Dagster, serve, wait_for

pytestmark = pytest.mark.slow

TABLES = ("raw/flights", "staging/flights", "features/carrier_delays")
GOOD = ("2013-01-01", "2013-01-02", "2013-01-03")
NEXT, SPOILED = "2013-01-04", "2013-01-05"
ENDED = ["SUCCESS", "FAILURE"]
RUNS = """
{ runsOrError { ... on Runs { results { runId jobName status tags { key value } } } } }
"""
BACKFILLS = """
{ partitionBackfillsOrError { ... on PartitionBackfills { results { id status } } } }
"""
PATIENCE = 400
"""Seconds that a run over the layers may take on a machine that has other work."""


@pytest.fixture(scope="module")
def project(sample_landing: Path, tmp_path_factory: pytest.TempPathFactory) -> Project:
    root = tmp_path_factory.mktemp("ui")
    landing = copy_days(sample_landing, root / "landing", first=GOOD[0], count=7)
    rewrite_records(landing, SPOILED, blank_carriers)
    return Project(root / "project", landing)


@pytest.fixture(scope="module")
def dagster(project: Project) -> Iterator[Dagster]:
    with serve(project) as served:
        yield served


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with open_browser() as opened:
        yield opened


def launch(browser: Browser, dagster: Dagster, first: str, last: str) -> None:
    """Starts the job `flights` over a range, as the page says."""
    browser.open(f"{dagster.address}/locations/backfill_assets/jobs/flights")
    browser.click("//button[contains(., 'Materialize all')]", seconds=120)
    browser.fill("//input[starts-with(@placeholder, 'ex: ')]", f"[{first}...{last}]")
    browser.click("//button[contains(., 'Launch backfill') and not(@disabled)]")


def read_runs(dagster: Dagster) -> list[dict]:
    return dagster.query(RUNS)["runsOrError"]["results"]


def read_backfills(dagster: Dagster) -> list[str]:
    """Their statuses, newest first."""
    found = dagster.query(BACKFILLS)["partitionBackfillsOrError"]["results"]
    return [backfill["status"] for backfill in found]


def has_ended(backfills: list[str]) -> bool:
    return bool(backfills) and backfills[0].startswith("COMPLETED_")


def read_statuses(project: Project) -> dict[tuple[str, str], str]:
    listed = project.run(
        *("backfill-assets", "status", "--select", ",".join(TABLES)),
        *("--from", GOOD[0], "--to", SPOILED, "--json"),
    )
    assert listed.returncode == 0, listed.stderr
    return {(one["table"], one["partition"]): one["status"] for one in json.loads(listed.stdout)}


def test_a_range_over_all_layers_ends_green_in_one_run(
    project: Project, dagster: Dagster, browser: Browser
) -> None:
    launch(browser, dagster, GOOD[0], GOOD[-1])
    wait_for(lambda: has_ended(read_backfills(dagster)), seconds=PATIENCE)
    assert read_backfills(dagster) == ["COMPLETED_SUCCESS"]
    (run,) = read_runs(dagster)
    assert (run["jobName"], run["status"]) == ("flights", "SUCCESS")
    begun = {key for key, status in read_statuses(project).items() if status != "missing"}
    assert begun == {(table, day) for table in TABLES for day in GOOD}
    browser.open(f"{dagster.address}/assets/features/carrier_delays?view=partitions")
    browser.wait_for("//*[contains(., 'Materialized (3)') and contains(., 'Failed (0)')]")


def test_a_spoiled_day_is_one_red_partition_that_says_why_and_what_to_do(
    project: Project, dagster: Dagster, browser: Browser
) -> None:
    launch(browser, dagster, NEXT, SPOILED)
    # That run, and the one that goes on with the other day.
    wait_for(lambda: [run["status"] for run in read_runs(dagster)[:2]] == ENDED, seconds=PATIENCE)
    statuses = read_statuses(project)
    assert {key for key, status in statuses.items() if status == "failed"} == {
        (table, SPOILED) for table in TABLES
    }
    browser.open(f"{dagster.address}/assets/raw/flights?view=checks")
    browser.click("//*[text()='partition_is_valid']")
    browser.click("//*[@role='tab'][contains(., 'Execution history')]")
    browser.click(f"(//*[text()='{SPOILED}']/following::button)[1]")
    browser.click("//*[contains(text(), 'Show Markdown')]")
    browser.wait_for("//*[contains(., 'was withheld')]")
    shown = browser.read_text()
    for said in (
        "rejects = 0.05",
        "rows are kept aside in",
        f"backfill-assets withheld raw/flights --from {SPOILED} --to {SPOILED}",
        f"--select 'key:\"raw/flights\"' --partition-range {SPOILED}...{SPOILED}",
    ):
        assert said in shown, shown
    for check, outcome in (
        ("partition_is_complete", "Succeeded"),
        ("partition_is_readable", "Succeeded"),
        ("partition_is_valid", "Failed"),
    ):
        assert f"{check}\n{outcome}" in shown, shown
    for table in TABLES[1:]:
        browser.open(f"{dagster.address}/assets/{table}?view=checks")
        browser.wait_for("//*[text()='Succeeded']")
        assert "Failed" not in browser.read_text(), table
