"""`plan` and `launch` at a shell, over files that have landed and no table yet. No Spark."""

import json
from pathlib import Path

import pytest
from dagster import DagsterInstance
from typer.testing import CliRunner

from backfill_assets.cli import app
from backfill_assets.errors import BackfillError, SettingsError
from backfill_assets_tests.pipeline.landing_zone import LandingZone

RANGE = ("--select", "raw/flights,staging/flights", "--from", "2013-01-01", "--to", "2013-01-03")


@pytest.fixture(autouse=True)
def _installation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Three days that landed, and a Dagster home."""
    LandingZone(tmp_path / "landing").land(["2013-01-01", "2013-01-02", "2013-01-03"])
    home = tmp_path / "home"
    home.mkdir()
    (home / "dagster.yaml").write_text("telemetry:\n  enabled: false\n", encoding="utf-8")
    monkeypatch.setenv("DAGSTER_HOME", str(home))
    monkeypatch.setenv("BACKFILL_LANDING", str(tmp_path / "landing"))
    monkeypatch.setenv("BACKFILL_WAREHOUSE", str(tmp_path / "warehouse"))


def run(*arguments: str):
    return CliRunner().invoke(app, arguments, env={"COLUMNS": "200"})


def test_a_plan_shows_what_would_be_run_and_the_command(tmp_path: Path) -> None:
    result = run("plan", *RANGE, "--downstream")
    assert result.exit_code == 0, result.output
    assert "3 missing" in result.output
    assert "no earlier step" in result.output
    assert "downstream: nothing else was computed from them" in result.output
    # What is to be published before by the same plan doesn't have to be waited for.
    assert "can't go yet" not in result.output
    assert (
        """--select 'key:"raw/flights",key:"staging/flights"' --partition-range """
        "2013-01-01...2013-01-03"
    ) in result.output
    alone = run("plan", "--select", "staging/flights", *RANGE[2:])
    assert "can't go yet: staging/flights 2013-01-01: raw/flights 2013-01-01 is missing" in (
        alone.output
    )
    assert not (tmp_path / "warehouse").exists()


def test_a_plan_is_told_as_json() -> None:
    found = json.loads(run("plan", *RANGE, "--json", "--only", "missing").output)
    raw, staging = found["tables"]
    assert (raw["table"], raw["states"], raw["partitions"]) == ("raw/flights", {"missing": 3}, 3)
    assert raw["ranges"] == [["2013-01-01", "2013-01-03"]]
    assert raw["bytes_read"] > 0
    assert (raw["commits"], raw["rows"], raw["seconds"]) == (1, 0, None)
    assert staging["waits"] == []
    nothing = run("plan", *RANGE, "--only", "withheld")
    assert "nothing is to be run" in nothing.output


def test_a_launch_asks_once_and_says_that_no_daemon_is_there() -> None:
    declined = CliRunner().invoke(app, ["launch", *RANGE], input="n\n")
    assert declined.exit_code == 1
    result = run("launch", *RANGE, "--reason", "first fill", "--yes")
    assert result.exit_code == 0, result.output
    assert "no daemon is running in this Dagster home" in result.output
    with DagsterInstance.get() as instance:
        (backfill,) = instance.get_backfills()
    assert f"requested backfill {backfill.backfill_id}" in result.output
    assert backfill.title == ("raw/flights, staging/flights 2013-01-01...2013-01-03: first fill")


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (("--only", "broken"), SettingsError, "--only broken: choose one of all, missing, failed"),
        (("--to", "2012-12-31"), BackfillError, "no partitions 2013-01-01...2012-12-31"),
        (("--select", "raw/nope"), BackfillError, "no table raw/nope"),
    ],
)
def test_what_cannot_be_planned_is_one_error(arguments, error, message) -> None:
    result = run("plan", *RANGE, *arguments)
    assert result.exit_code == 1
    assert isinstance(result.exception, error)
    assert message in str(result.exception)
