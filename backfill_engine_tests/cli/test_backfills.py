"""The commands of `backfill` run at a shell, over what runs left. They need no Spark."""

import io
import json
import os
import signal
import subprocess

import pytest
from rich.console import Console
from typer.testing import CliRunner

from backfill_engine.cli import app
from backfill_engine.cli.progress_lines import build_bars, build_grid
from backfill_engine.errors import BackfillError
from backfill_engine.orchestration.instance.dagster_internals import BulkActionStatus
from backfill_engine.orchestration.runs.run_tags import LAUNCHED_BY_TAG, REASON_TAG
from backfill_engine_tests.commands import PROJECT, find_program
from backfill_engine_tests.pipeline.alerting import WHY, Home
from backfill_engine_tests.pipeline.landing_zone import LandingZone
from backfill_engine_tests.pipeline.requesting import read_progress, request, set_status
from backfill_engine_tests.pipeline.running import RAW, STAGING, list_days

DAYS = list_days(4, 7)
NO_DAEMON = "no daemon is running in this Dagster home: it waits for `dagster dev`"


@pytest.fixture
def home(installation: LandingZone, commanded_home: Home) -> Home:
    """An installation whose runs left a backfill for the commands to find."""
    installation.land(list_days(1, 12))
    return commanded_home


def run(*arguments: str, answer: str | None = None):
    return CliRunner().invoke(app, arguments, input=answer, env={"COLUMNS": "200"})


def withhold(home: Home) -> str:
    """A backfill of raw and staging that is over, with one day withheld."""
    backfill = request(home.instance, RAW, STAGING, days=DAYS)
    home.withhold("first-run", backfill=backfill)
    set_status(home.instance, backfill, BulkActionStatus.COMPLETED_FAILED)
    return backfill


def publish(home: Home, run_id: str, backfill: str) -> None:
    """Another run of it that publishes all."""
    home.begin(run_id, RAW, STAGING, days=DAYS, chain=backfill)
    for key in (RAW, STAGING):
        home.publish(run_id, key, *DAYS)
    home.succeed(run_id)


def test_backfills_are_listed_by_who_what_why_and_outcome(home: Home) -> None:
    assert "no backfill was ever asked for" in run("backfill", "list").output
    withheld = withhold(home)
    newer = request(home.instance, RAW, days=list_days(10, 11), title="later days")
    result = run("backfill", "list")
    assert result.exit_code == 0, result.output
    words = " ".join(result.output.split())
    for part in (withheld, newer, "mend them", "wrong numbers", "requested", "held back"):
        assert part in words
    found = json.loads(run("backfill", "list", "--json").output)
    assert [backfill["id"] for backfill in found] == [newer, withheld]
    asked_for = {"title": "mend them", "reason": "wrong numbers", "launched_by": ""}
    outcome = {"state": "held back", "partitions": 8, "published": 3, "held_back": 5}
    assert found[1].items() >= (asked_for | outcome).items()
    assert found[1]["tables"][0]["ranges"] == [["2013-01-04", "2013-01-07"]]
    (latest,) = json.loads(run("backfill", "list", "--json", "--limit", "1").output)
    assert latest["id"] == newer


def show(home: Home, backfill: str) -> list[str]:
    """The list and the bars at a terminal of 80 columns, which they fit."""
    progress, file = read_progress(home.instance, backfill), io.StringIO()
    console = Console(width=80, file=file, force_terminal=True, color_system=None)
    for shown in (build_grid([progress]), build_bars(progress)):
        console.print(shown)
    lines = file.getvalue().splitlines()
    assert max(len(line.rstrip()) for line in lines) <= 80
    return lines


def test_the_list_and_the_bars_fit_a_terminal_of_80_columns(home: Home) -> None:
    text = "\n".join(show(home, withhold(home)))
    assert "…" not in text
    for part in ("mend them: wrong", " held back ", " 3 of 8 ", "3 of 4, 1 held back"):
        assert part in text


def test_watching_ends_with_the_outcome(home: Home) -> None:
    backfill = withhold(home)
    result = run("backfill", "watch", backfill)
    assert result.exit_code == 1
    assert {
        f"backfill {backfill} is over, held back: published 3 of 4 of {RAW}, 0 of 4 of {STAGING}",
        f"{RAW} withheld 2013-01-05: {WHY}",
        f"{STAGING} held up 2013-01-04...2013-01-07: held up by what was withheld of {RAW}",
        f"  backfill-assets status --withheld --select {RAW} --from 2013-01-05 --to 2013-01-05",
        f"  backfill-assets backfill retry {backfill}",
    } <= {*result.output.splitlines()}
    watched = run("backfill", "watch", backfill, "--json").output
    first, last = map(json.loads, watched.splitlines())
    assert first["state"] == last["state"] == last["outcome"] == "held back"
    counts = {"partitions": 4, "published": 3, "held_back": 1, "at_work": 0, "waiting": 0}
    assert first["tables"][0] == {"table": RAW, **counts}
    assert last["held_back"][0]["ranges"] == ["2013-01-05"]
    publish(home, "next-run", backfill)
    result = run("backfill", "watch", backfill)
    assert result.exit_code == 0
    assert "published: published 4 of 4 of raw/flights, 4 of 4 of staging/flights" in result.output


def test_a_pause_is_told_until_it_is_cancelled(home: Home) -> None:
    home.begin("first-run", RAW, days=DAYS)
    home.publish("first-run", RAW, DAYS[0])
    assert run("backfill", "pause", "first-run", "--reason", "disk").exit_code == 0
    home.pause("first-run", RAW)
    watched = run("backfill", "watch", "first-run", "--timeout", "0")
    assert watched.exit_code == 3
    assert "disk, until `backfill-assets backfill resume first-run`" in watched.output
    assert " paused: raw/flights 1 of 4; paused: " in watched.output
    assert NO_DAEMON in watched.output
    assert sum("resume" in line for line in show(home, "first-run")) == 2
    assert run("backfill", "cancel", "first-run", "--yes").exit_code == 0
    watched = run("backfill", "watch", "first-run")
    assert watched.exit_code == 130
    assert "2013-01-05...2013-01-07: its run was cancelled while it was paused" in watched.output


def test_watching_can_end_before_it_is_over(home: Home) -> None:
    backfill = request(home.instance, RAW, days=DAYS)
    result = run("backfill", "watch", backfill, "--timeout", "0")
    assert result.exit_code == 3
    assert "requested: raw/flights 0 of 4" in result.output
    assert NO_DAEMON in result.output
    assert f"backfill {backfill} is still at work: the backfill is requested" in result.output


def test_ctrl_c_ends_the_watching_alone(home: Home) -> None:
    backfill = request(home.instance, RAW, days=DAYS)
    watching = subprocess.Popen(
        [find_program("backfill-assets"), "backfill", "watch", backfill],
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
        cwd=PROJECT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert watching.stdout is not None
    assert watching.stdout.readline() == f"backfill {backfill}: mend them\n"
    watching.send_signal(signal.SIGINT)
    _, error = watching.communicate(timeout=60)
    assert watching.returncode == 130
    assert f"nobody watches backfill {backfill} now; it goes on" in error
    record = home.instance.get_backfill(backfill)
    assert record is not None
    assert record.status is BulkActionStatus.REQUESTED


def test_a_cancelled_backfill_has_an_exit_code_of_its_own(home: Home) -> None:
    backfill = request(home.instance, RAW, days=DAYS)
    home.begin("first-run", RAW, days=DAYS[:2], backfill=backfill)
    home.publish("first-run", RAW, DAYS[0])
    declined = run("backfill", "cancel", backfill, answer="n\n")
    assert declined.exit_code == 1
    assert "cancel " + backfill in declined.output
    home.instance.report_run_canceled(home.instance.get_run_by_id("first-run"))  # pyright: ignore[reportArgumentType]
    result = run("backfill", "cancel", backfill, "--yes")
    assert result.exit_code == 0, result.output
    assert f"cancelled {backfill}: 0 of its runs have ended by it" in result.output
    watched = run("backfill", "watch", backfill)
    assert watched.exit_code == 130
    assert "2013-01-06...2013-01-07: cancelled before a run of it was requested" in watched.output
    again = run("backfill", "cancel", backfill, "--yes")
    assert again.exit_code == 1
    assert isinstance(again.exception, BackfillError)
    assert "there is nothing to cancel" in str(again.exception)


def test_runs_that_do_not_end_in_time_are_told(home: Home) -> None:
    home.begin("first-run", RAW, days=DAYS)
    result = run("backfill", "cancel", "first-run", "--yes", "--timeout", "0", "--json")
    assert result.exit_code == 1
    assert "not ended within 0 s: first-run; they were asked to" in result.output


def test_what_is_left_is_asked_for_again_once(home: Home) -> None:
    backfill = withhold(home)
    declined = run("backfill", "retry", backfill, answer="n\n")
    assert declined.exit_code == 1
    assert len(home.instance.get_backfills()) == 1
    result = run("backfill", "retry", backfill, "--yes")
    assert result.exit_code == 0, result.output
    assert NO_DAEMON in result.output
    assert f"{RAW} 2013-01-05" in result.output
    assert f": resumes {backfill}: mend them" in result.output
    newer, older = home.instance.get_backfills()
    assert older.backfill_id == backfill
    assert newer.tags[REASON_TAG] == "wrong numbers"
    assert newer.tags[LAUNCHED_BY_TAG]
    again = run("backfill", "retry", backfill, "--yes")
    assert again.exit_code == 1
    resumed = f"backfill {newer.backfill_id} resumes {backfill} already, and is requested"
    assert resumed in str(again.exception)
    set_status(home.instance, newer.backfill_id, BulkActionStatus.CANCELED)
    publish(home, "next-run", backfill)
    nothing = run("backfill", "retry", backfill, "--json")
    assert nothing.exit_code == 0, nothing.output
    found = json.loads(nothing.stdout)
    assert (found["backfill_id"], found["partitions"], found["left_alone"]) == ("", 0, [])
    assert "all of it is published" in run("backfill", "retry", backfill).output


@pytest.mark.parametrize("command", ["watch", "cancel", "retry"])
def test_what_is_not_there_is_one_error(home: Home, command: str) -> None:
    result = run("backfill", command, "nosuchid")
    assert result.exit_code == 1
    assert isinstance(result.exception, BackfillError)
    assert "`backfill-assets backfill list` lists the backfills" in str(result.exception)
