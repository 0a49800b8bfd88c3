"""The clicks of `docs/ui.md`, by a real browser on a real webserver and daemon.

With UPDATE_IMAGES=1 in the environment they make the page's pictures, too.
"""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from backfill_engine.orchestration.runs.run_tags import ABOUT_TAG
from backfill_engine_tests.browser import Browser, open_browser
from backfill_engine_tests.commands import PROJECT, Project
from backfill_engine_tests.landing_zones import copy_days, double_distances, rewrite_records
from backfill_engine_tests.servers import Dagster, serve, wait_for

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]

TABLES = ("raw/flights", "staging/flights", "features/carrier_delays")
BEFORE = [f"2013-01-{day:02}" for day in range(1, 6)]
DAYS = [f"2013-01-{day}" for day in range(10, 15)]
SPOILED = "2013-01-12"
LAST_LANDED = "2013-01-16"
"""The day on which the last flights of the last day land."""

RANGE_FIELD = "//input[starts-with(@placeholder, 'ex: ')]"
IN_DIALOG = f"({RANGE_FIELD})[2]"
"""The field of a dialog, also where the page behind has such a field."""
LAUNCH = "//button[contains(., 'Launch backfill') and not(@disabled)]"
SAVE = "//button[contains(., 'Save config') and {}(@disabled)]"
WRONG = "ops: {staging__flights: {config: {chunk: days=3, write_mode: upsert}}}"
BACKSPACE, DOWN, END = "\ue003", "\ue015", "\ue010"
MENDED = len("upsert}}}") * BACKSPACE + "overwrite}}}"

FULL_MESSAGE = (
    "(//*[contains(text(), 'events.Failure: ')]/following::*[text()='View full message'])[1]"
)
EDITOR = "//*[contains(@class, 'CodeMirror-lines')]"
PROMOTE = (
    "ops: {promote_version: {config: {table: serving/carrier_delays, version: v2, "
    "reason: better on short hauls}}}"
)

RUNS = """
{ runsOrError { ... on Runs { results {
    runId jobName status runConfigYaml tags { key value }
} } } }
"""
BACKFILLS = """
{ partitionBackfillsOrError { ... on PartitionBackfills { results {
    status tags { key value }
} } } }
"""
PATIENCE = 400
"""Seconds that a run over the layers may take on a machine that has other work."""


@pytest.fixture(scope="module")
def project(sample_landing: Path, tmp_path_factory: pytest.TempPathFactory) -> Project:
    """The first days have landed, one with wrong distances; the later ones are in raw.

    The last of them has too few rows, of which raw only warns.
    """
    root = tmp_path_factory.mktemp("ui")
    landing = copy_days(sample_landing, root / "landing", first=BEFORE[0], count=16)
    rewrite_records(landing, SPOILED, double_distances)
    rewrite_records(landing, LAST_LANDED, lambda records: records[: len(records) // 2])
    project = Project(root / "project", landing)
    done = project.materialize("raw/flights", partitions=f"{DAYS[0]}...{LAST_LANDED}")
    assert done.returncode == 0, done.stderr
    return project


@pytest.fixture(scope="module")
def dagster(project: Project) -> Iterator[Dagster]:
    with serve(project) as served:
        yield served


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with open_browser() as opened:
        yield opened


@pytest.fixture
def pictures(tmp_path: Path) -> Path:
    """Pictures go to the page only on request, as no two are the same."""
    return PROJECT / "docs" / "images" if "UPDATE_IMAGES" in os.environ else tmp_path


def read_tags(of: dict) -> dict[str, str]:
    return {tag["key"]: tag["value"] for tag in of["tags"]}


def read_runs(dagster: Dagster) -> list[dict]:
    """Newest first."""
    return dagster.query(RUNS)["runsOrError"]["results"]


def read_backfills(dagster: Dagster) -> list[dict]:
    """Newest first."""
    return dagster.query(BACKFILLS)["partitionBackfillsOrError"]["results"]


def read_statuses(project: Project) -> dict[tuple[str, str], str]:
    listed = project.run(
        *("backfill-assets", "status", "--select", ",".join(TABLES)),
        *("--from", BEFORE[0], "--to", DAYS[-1], "--json"),
    )
    assert listed.returncode == 0, listed.stderr
    found = ((row["table"], row["partition"], row["status"]) for row in json.loads(listed.stdout))
    return {(table, day): status for table, day, status in found if status != "missing"}


def test_a_range_over_all_layers_ends_green_in_one_run(
    project: Project, dagster: Dagster, browser: Browser
) -> None:
    browser.open(f"{dagster.address}/locations/backfill_assets/jobs/flights")
    browser.click("//button[contains(., 'Materialize all')]", seconds=120)
    browser.fill(RANGE_FIELD, f"[{BEFORE[0]}...{BEFORE[-1]}]")
    browser.click(LAUNCH)
    wait_for(lambda: len(read_runs(dagster)) > 1, seconds=PATIENCE)
    wait_for(lambda: read_runs(dagster)[0]["status"] in {"SUCCESS", "FAILURE"}, seconds=PATIENCE)
    run, _ = read_runs(dagster)
    assert (run["jobName"], run["status"]) == ("flights", "SUCCESS")
    assert read_tags(run)[ABOUT_TAG].endswith(f"{BEFORE[0]}...{BEFORE[-1]}")
    statuses = read_statuses(project)
    found = {statuses.get((table, day)) for table in TABLES for day in BEFORE}
    assert found == {"materialized"}
    (backfill,) = read_backfills(dagster)
    assert read_tags(backfill)[ABOUT_TAG] == f"flights {BEFORE[0]}...{BEFORE[-1]}"
    assert not [value for value in read_tags(run).values() if value.startswith("{")]


def test_a_range_of_a_table_is_launched_with_options_of_which_wrong_ones_are_refused(
    dagster: Dagster, browser: Browser, pictures: Path
) -> None:
    browser.open(f"{dagster.address}/assets/staging/flights?view=partitions")
    browser.click("//button[contains(., 'Materialize')]", seconds=120)
    browser.fill(IN_DIALOG, f"[{DAYS[0]}...{DAYS[-1]}]")
    browser.wait_for("//*[text()='5 partitions']")
    browser.take_screenshot(pictures / "launch.png")
    browser.click("//*[text()='Config']")
    browser.click("//button[contains(., 'Add config')]")
    browser.click(EDITOR)
    browser.type(WRONG)
    browser.wait_for("//*[contains(text(), 'write_mode not in enum type')]")
    browser.wait_for(SAVE.format(""))
    browser.take_screenshot(pictures / "config.png")
    browser.type(MENDED)
    browser.click(SAVE.format("not"))
    before = len(read_runs(dagster))
    browser.click(LAUNCH)
    wait_for(lambda: len(read_runs(dagster)) > before, seconds=PATIENCE)
    run, about = read_runs(dagster)[0], f"staging/flights {DAYS[0]}...{DAYS[-1]}"
    assert "chunk: days=3" in run["runConfigYaml"]
    assert read_tags(run)[ABOUT_TAG] == read_tags(read_backfills(dagster)[0])[ABOUT_TAG] == about


def test_the_spoiled_day_is_the_one_red_partition(
    project: Project, dagster: Dagster, browser: Browser, pictures: Path
) -> None:
    chosen = f"%5B{DAYS[0]}...{DAYS[-1]}%5D"
    browser.open(f"{dagster.address}/assets/staging/flights?view=partitions&default_range={chosen}")
    browser.wait_for(
        "//*[contains(., 'Failed (1)') and contains(., 'Materialized (4)')]", seconds=PATIENCE
    )
    browser.click(f"//*[text()='{SPOILED}']")
    browser.wait_for("//*[contains(., 'did not materialize this asset')]")
    browser.take_screenshot(pictures / "partitions.png")
    statuses = read_statuses(project)
    staging = {day: statuses["staging/flights", day] for day in DAYS}
    assert staging == {**dict.fromkeys(DAYS, "materialized"), SPOILED: "failed"}


def test_the_failing_check_has_the_value_and_the_next_command(
    dagster: Dagster, browser: Browser, pictures: Path
) -> None:
    browser.open(f"{dagster.address}/assets/staging/flights?view=checks")
    browser.click("//*[text()='partition_is_stable']")
    browser.click("//*[@role='tab'][contains(., 'Execution history')]")
    browser.wait_for(f"//*[text()='{SPOILED}']")
    browser.wait_for("//*[contains(text(), 'drift(distance) = ')]")
    browser.take_screenshot(pictures / "checks.png")
    shown = browser.read_text()
    for check, outcome in (
        ("partition_is_complete", "Succeeded"),
        ("partition_is_readable", "Succeeded"),
        ("partition_is_stable", "Failed"),
    ):
        assert f"{check}\n{outcome}" in shown, shown
    browser.click(f"(//*[text()='{SPOILED}']/following::button)[1]")
    browser.click("//*[contains(text(), 'Show Markdown')]")
    browser.wait_for("//*[contains(., 'was withheld')]")
    browser.take_screenshot(pictures / "what-to-do.png")
    shown = browser.read_text()
    for text in (
        "partition_is_stable: drift(distance) = ",
        "(below 0.25, warning from 0.1, against the baseline of ",
        "rows are kept aside in withheld/staging_flights",
        "backfill-assets status --withheld --select staging/flights "
        f"--from {SPOILED} --to {SPOILED}",
        f"--select 'key:\"staging/flights\"' --partition-range {SPOILED}...{SPOILED}",
        f"- {{check: partition_is_stable, reason: WHY, partitions: ['{SPOILED}']}}",
    ):
        assert text in shown, shown


def show_failure(
    dagster: Dagster, browser: Browser, run: dict, picture: Path, *, height: int
) -> str:
    """Shows the whole message of a failed run; returns its text as far as the trace."""
    browser.open(f"{dagster.address}/runs/{run['runId']}")
    browser.click(FULL_MESSAGE, seconds=120)
    browser.wait_for("//button[text()='Done'] | //button[contains(., 'Done')]")
    browser.resize(height)  # Without the trace, which names folders of the machine.
    browser.take_screenshot(picture)
    browser.resize()
    # Of a long message the trace isn't among what the page shows.
    _, _, message = browser.read_text().rpartition("dagster._core.definitions.events.Failure: ")
    return message.partition("Stack Trace:")[0]


def test_the_failed_run_says_which_day_why_and_what_to_do_above_the_trace(
    dagster: Dagster, browser: Browser, pictures: Path
) -> None:
    (run,) = (run for run in read_runs(dagster) if run["status"] == "FAILURE")
    shown = show_failure(dagster, browser, run, pictures / "withheld.png", height=620)
    assert shown.startswith(
        "staging/flights: withheld 1 of 5 partitions (the other 4 are published)"
    )
    for text in (
        f"{SPOILED}: partition_is_stable: drift(distance) = ",
        f"backfill-assets backfill retry {read_tags(run)['dagster/backfill'][:8]}",
        '"accept": [{"check": "partition_is_stable", "reason": "WHY"',
    ):
        assert text in shown, shown


def test_a_day_that_only_warned_is_published_and_says_why(
    dagster: Dagster, browser: Browser, pictures: Path
) -> None:
    browser.open(f"{dagster.address}/assets/raw/flights?view=checks")
    browser.click("//*[text()='partition_is_complete']")
    browser.click("//*[@role='tab'][contains(., 'Execution history')]")
    browser.wait_for(f"//*[text()='{LAST_LANDED}']")
    browser.wait_for("//*[contains(text(), 'only warns')]")
    browser.take_screenshot(pictures / "warned.png")


def test_a_promotion_is_asked_for_in_the_launchpad_and_refused_with_what_is_missing(
    project: Project, dagster: Dagster, browser: Browser, pictures: Path
) -> None:
    for table, last in (("serving/carrier_delays", 4), ("features/carrier_delays_v2", 2)):
        made = project.materialize(table, partitions=f"{BEFORE[0]}...{BEFORE[last]}")
        assert made.returncode == 0, made.stderr
    browser.open(f"{dagster.address}/locations/backfill_assets/jobs/promote")
    browser.click("//*[@role='tab'][contains(., 'Launchpad')]", seconds=120)
    browser.wait_for("//*[contains(@class, 'CodeMirror-line')][contains(., 'version')]")
    browser.take_screenshot(pictures / "launchpad.png")
    browser.click(EDITOR)
    browser.type(10 * DOWN + END + 150 * BACKSPACE + PROMOTE)
    browser.click("//button[contains(., 'Launch Run') and not(@disabled)]")
    wait_for(lambda: read_runs(dagster)[0]["jobName"] == "promote", seconds=PATIENCE)
    wait_for(lambda: read_runs(dagster)[0]["status"] == "FAILURE", seconds=PATIENCE)
    picture = pictures / "promotion-refused.png"
    shown = show_failure(dagster, browser, read_runs(dagster)[0], picture, height=515)
    for text in ("and not features/carrier_delays_v2", *BEFORE[3:]):
        assert text in shown, shown


def test_the_pages_about_the_tables_are_made_by_a_click(
    project: Project, dagster: Dagster, browser: Browser, pictures: Path
) -> None:
    browser.open(f"{dagster.address}/locations/backfill_assets/jobs/watch")
    browser.click("//button[contains(., 'Materialize all')]", seconds=120)
    wait_for(lambda: read_runs(dagster)[0]["jobName"] == "watch", seconds=PATIENCE)
    wait_for(lambda: read_runs(dagster)[0]["status"] == "SUCCESS", seconds=PATIENCE)
    browser.open(f"{dagster.address}/assets/ops/backfill_health")
    browser.wait_for("//*[contains(text(), 'partitions withheld')]")
    for name, title in (("late_arrivals", "Late arrivals"), ("backfill_health", "Backfill health")):
        browser.open(f"file://{project.warehouse}/ops/{name}.html")
        assert browser.wait_for("//h1") == title
    browser.take_screenshot(pictures / "backfill_health.png")


def test_automation_has_the_schedules_of_the_night(dagster: Dagster, browser: Browser) -> None:
    browser.open(f"{dagster.address}/automation")
    browser.wait_for("//*[text()='process_due_nightly_days']", seconds=120)
