"""`status --json` and `status --why` tell of the last attempt at a partition. No Spark."""

import datetime as dt
import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from backfill_assets import assets
from backfill_engine.assembly import build_catalog
from backfill_engine.cli import app
from backfill_engine.errors import BackfillError, SettingsError
from backfill_engine.lake.commits import Consumed
from backfill_engine.lake.partitions import build_partitions
from backfill_engine.orchestration.due.due_partitions import describe_landed_beyond
from backfill_engine.orchestration.runs.pausing import drop_paused
from backfill_engine.proof.certificates import NOT_DUE
from backfill_engine.sources.json_landing import JsonLanding
from backfill_engine_tests.cli.terminals import run_in_terminal
from backfill_engine_tests.pipeline.alerting import WHY, Home
from backfill_engine_tests.pipeline.landing_zone import LandingZone
from backfill_engine_tests.pipeline.running import FEATURES, RAW, STAGING, list_days
from backfill_engine_tests.pipeline.written_tables import ROWS, commit_days
from backfill_engine_tests.project import CATALOG

DAYS = list_days(4, 7)
ENDS = ("--from", DAYS[0], "--to", DAYS[-1])
BACKFILL = "abcdefgh"


@pytest.fixture
def home(installation: LandingZone, commanded_home: Home) -> Home:
    """A run published raw but for the second of four days, and so nothing of staging."""
    installation.land(list_days(1, 8))
    commanded_home.withhold("first-run", backfill=BACKFILL)
    commit_days(
        commanded_home.warehouse,
        CATALOG.find_table(RAW),
        [DAYS[0], *DAYS[2:]],
        run_id="first-run",
        backfill_id=BACKFILL,
        code_version=CATALOG.recipes[RAW].code_version,
        input_versions={"landing/flights": "3 files 00ff"},
        consumed=find_landed(installation.root),
        provisional={DAYS[3]: "more is to land"},
    )
    return commanded_home


def find_landed(landing: Path) -> dict[str, Consumed]:
    """Describes the landed files that the days come from, as they are now."""
    table = CATALOG.find_table(RAW)
    listing = JsonLanding("flights").list_files(str(landing), table, build_partitions(table, DAYS))
    return {key: Consumed(files) for key, files in listing.describe_files().items()}


def run(*arguments: str):
    return CliRunner().invoke(app, arguments)


def read_status(*arguments: str) -> dict[tuple[str, str], dict[str, Any]]:
    result = run("status", *ENDS, "--json", *arguments)
    assert result.exit_code == 0, result.output
    return {(status["table"], status["partition"]): status for status in json.loads(result.stdout)}


def read_story(key: str, table: str = RAW) -> dict[str, Any]:
    result = run("status", "--why", key, "--select", table, "--json")
    assert result.exit_code == 0, result.output
    (story,) = json.loads(result.stdout)
    return story


def test_each_partition_says_when_it_was_tried_and_why_it_failed(home: Home) -> None:
    home.begin("next-run", STAGING, days=DAYS[:1])
    home.fail("next-run", "No space left on device")
    found = read_status("--select", f"{RAW},{STAGING}")
    good, bad = found[RAW, DAYS[0]], found[RAW, DAYS[1]]
    assert (good["status"], good["error"], good["rows"]) == ("materialized", "", ROWS)
    assert dt.datetime.fromisoformat(good["started"])
    assert dt.datetime.fromisoformat(good["completed"]).tzinfo
    assert (bad["status"], bad["error"]) == ("failed", WHY)
    took = dt.datetime.fromisoformat(bad["completed"]) - dt.datetime.fromisoformat(bad["started"])
    assert took.total_seconds() == pytest.approx(1, abs=0.01), "as its certificate has it"
    # Its run left no certificate, so Dagster says how it ended.
    failed = found[STAGING, DAYS[0]]
    assert failed["error"] == "its run failed: No space left on device"
    held_up = found[STAGING, DAYS[1]]
    assert held_up["error"] == f"held up by what was withheld of {RAW}"
    never = read_status("--select", FEATURES)[FEATURES, DAYS[1]]
    assert (never["started"], never["completed"], never["error"]) == ("", "", "")


def test_a_person_sees_when_and_why_at_80_columns(home: Home) -> None:
    shown = ("status", *ENDS)
    output = run(*shown, "--select", RAW).output
    assert f"{RAW} {DAYS[1]}: {WHY}" in output.splitlines()
    found = read_status("--select", RAW)
    for key, status in found.items():
        (line,) = (line for line in output.splitlines() if f"│ {key[1]}" in line)
        began, ended = status["started"], status["completed"]
        assert f"{began[:10]} {began[11:19]} │ " in line, "to the second"
        assert ended[11:19] in line
        assert len(line) <= 80
    both = run(*shown, "--select", f"{RAW},{STAGING}").output
    assert f"{RAW} {DAYS[1]}: {WHY}" in both.splitlines()
    assert f"{ROWS} materialized v0" in both


def test_tables_are_side_by_side_at_80_columns_or_below_each_other(home: Home) -> None:
    shown = ("status", *ENDS)
    keys = (RAW, STAGING, FEATURES)
    three = run_in_terminal(*shown, "--select", ",".join(keys), columns=80)
    assert max(map(len, three)) <= 80
    rows = [[cell.strip() for cell in line.split("│")[1:-1]] for line in three if "│" in line]
    assert [DAYS[0], f"{ROWS} materialized v0", "failed", "missing"] in rows
    assert all(any(key in line for line in three[:4]) for key in keys)
    held_up = f"{STAGING} {DAYS[0]}...{DAYS[-1]}: held up by what was withheld of {RAW}"
    assert held_up in " ".join(" ".join(three).split()), "broken between its words"

    more = ",".join((*keys, "staging/weather", "features/departure_conditions"))
    five = run_in_terminal(*shown, "--select", more, columns=80)
    assert max(map(len, five)) <= 80
    rows = [line.split() for line in five]
    assert [DAYS[0], RAW, f"{ROWS}", "materialized", "v0"] in rows
    assert [STAGING, "failed"] in rows
    assert ["features/departure_conditions", "missing"] in rows
    assert ["all", RAW, f"{3 * ROWS}"] in rows


def test_what_is_at_work_has_begun_and_no_error(home: Home) -> None:
    home.begin("next-run", RAW, days=DAYS[1:2])
    status = read_status("--select", RAW)[RAW, DAYS[1]]
    assert (status["status"], status["completed"], status["error"]) == ("in_progress", "", "")


def test_the_story_of_a_published_partition(home: Home) -> None:
    story = read_story(DAYS[0])
    published = story["published"]
    assert (published["run_id"], published["backfill_id"]) == ("first-run", BACKFILL)
    assert (published["rows"], published["version"]) == (ROWS, 0)
    assert published["landed"]["files"] == 1
    assert story["attempt"]["status"] == "published"
    assert story["stale"] == ""
    assert story["next"] == [f"backfill-assets history {RAW} --from {DAYS[0]} --to {DAYS[0]}"]
    assert read_story(DAYS[3])["published"]["provisional"] == "more is to land"
    assert {
        f"{RAW} {DAYS[0]}: materialized",
        f"  by: run first-run of backfill {BACKFILL}",
        "  stale: no, its input and its code are the same",
    } <= {*run("status", "--why", DAYS[0], "--select", RAW).output.splitlines()}


def test_the_story_says_why_it_is_stale(home: Home, tmp_path: Path) -> None:
    LandingZone(tmp_path / "landing").add_lines(DAYS[0], "{}")
    story = read_story(DAYS[0])
    assert story["stale"] == "its landed files changed"
    assert story["next"][0].endswith(f"--partition-range {DAYS[0]}...{DAYS[0]}")


def test_a_landing_zone_that_is_not_there_costs_what_it_would_say_alone(
    home: Home, tmp_path: Path
) -> None:
    (tmp_path / "landing").rename(tmp_path / "elsewhere")
    story = read_story(DAYS[1])
    assert story["stale"].startswith("nobody can tell: the landing folder ")
    assert story["attempt"]["error"] == WHY


def test_the_story_of_a_withheld_partition(home: Home) -> None:
    story = read_story(DAYS[1])
    assert story["published"] is None
    attempt = story["attempt"]
    outcome = (attempt["run_id"], attempt["status"], attempt["error"])
    assert outcome == ("first-run", "withheld", WHY)
    look, again = story["next"]
    day = f"--from {DAYS[1]} --to {DAYS[1]}"
    assert look == f"backfill-assets status --withheld --select {RAW} {day}"
    assert "dagster asset materialize" in again
    text = run("status", "--why", DAYS[1], "--select", RAW).output
    assert "  published: never" in text
    assert f"  why not: {WHY}" in text


def test_the_story_of_what_waits_names_what_it_waits_for(home: Home) -> None:
    story = read_story(DAYS[1], STAGING)
    assert (story["published"], story["attempt"]["status"]) == (None, "held up")
    assert story["attempt"]["error"] == f"held up by what was withheld of {RAW}"
    assert story["waits"] == f"{RAW} {DAYS[1]} is failed or withheld"
    assert story["next"] == [f"backfill-assets status --why {DAYS[1]} --select {RAW}"]
    both = json.loads(run("status", "--why", DAYS[1], "--json").stdout)
    assert {RAW, STAGING} <= {status["table"] for status in both}


def test_a_story_fits_80_columns_but_for_the_commands_to_copy(home: Home) -> None:
    lines = run_in_terminal("status", "--why", DAYS[1], columns=80)
    commands = [line for line in lines if line.startswith("  next: ")]
    assert max(map(len, {*lines} - {*commands})) <= 80
    story = read_story(DAYS[1])
    assert {f"  next: {command}" for command in story["next"]} <= {*commands}
    attempt = story["attempt"]
    text = " ".join(" ".join(lines).split())
    assert f"it began {attempt['started']} and ended {attempt['completed']}" in text


def test_what_is_not_due_has_nothing_to_be_done(home: Home) -> None:
    home.begin("next-run", STAGING, days=["2013-01-20"])
    home.certify("next-run", STAGING, {"2013-01-20": NOT_DUE})
    home.fail("next-run", withheld=STAGING)
    story = read_story("2013-01-20", STAGING)
    assert story["attempt"]["status"] == NOT_DUE


def test_what_was_cancelled_while_it_was_paused_says_so_and_not_the_pause(home: Home) -> None:
    home.begin("next-run", RAW, days=DAYS)
    home.publish("next-run", RAW, DAYS[0])
    home.certify("next-run", RAW, {DAYS[0]: "published", **dict.fromkeys(DAYS[1:], "failed")})
    home.pause("next-run", RAW)
    attempt = read_story(DAYS[1])["attempt"]
    assert (attempt["status"], attempt["error"]) == ("paused", WHY), "as its step said"
    drop_paused(home.instance, home.instance.get_runs())
    attempt = read_story(DAYS[1])["attempt"]
    why = "its run was cancelled while it was paused"
    assert (attempt["status"], attempt["error"]) == ("cancelled", why)
    assert read_status("--select", RAW)[RAW, DAYS[2]]["error"] == why


def test_what_landed_beyond_the_end_of_the_calendar_is_named(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    def list_told(key: str) -> list[str]:
        catalog, _ = build_catalog([assets])  # of a code location that is loaded now
        recipes = {key: catalog.recipes[key]}
        return describe_landed_beyond(recipes, catalog.settings.landing)

    assert "beyond" not in run("status", "--missing", *ENDS, "--select", RAW).stderr
    monkeypatch.setenv("BACKFILL_END", "2013-01-07")
    assert list_told(RAW) == [
        f"{RAW}: landed, but beyond BACKFILL_END 2013-01-07: 2013-01-07, 2013-01-08: set "
        "BACKFILL_END to a later day to take this in"
    ]
    assert list_told(STAGING) == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "give --from and --to, or --why KEY"),
        (("--from", DAYS[0]), "give --from and --to, or --why KEY"),
        (("--missing", "--from", DAYS[0]), "give --from and --to"),
        (("--withheld",), "give --from and --to"),
        (("--why", DAYS[0], "--to", DAYS[0]), "--why is about one partition"),
        (("--watermark", "--from", DAYS[0]), "--watermark is about whole tables: leave out --from"),
        (("--missing", "--withheld"), "--missing and --withheld are questions apart: ask one"),
        (("--watermark", "--why", DAYS[0]), "--watermark and --why are questions apart"),
        (("--failed", "--from", DAYS[0], "--to", DAYS[0]), "give --missing too"),
        (("--most", "3", "--from", DAYS[0], "--to", DAYS[0]), "give --withheld too"),
    ],
)
def test_one_question_is_asked_about_a_range_or_one_partition(
    arguments: tuple[str, ...], message: str
) -> None:
    result = run("status", *arguments)
    assert isinstance(result.exception, SettingsError)
    assert message in str(result.exception)


def test_a_partition_that_no_table_has_is_one_error(home: Home) -> None:
    result = run("status", "--why", "2013-13-01")
    assert isinstance(result.exception, BackfillError)
    assert "no table here has a partition 2013-13-01: give keys" in str(result.exception)
