"""`plan` and `launch` heed what was protected at a shell. They need no Spark."""

import json
from pathlib import Path

import pytest
from dagster import DagsterInstance
from typer.testing import CliRunner

from backfill_engine.cli import app
from backfill_engine.errors import BackfillError
from backfill_engine.lake.protections import PROTECTIONS
from backfill_engine_tests.cli.terminals import run_in_terminal
from backfill_engine_tests.pipeline.landing_zone import LandingZone

RAW = "raw/flights"
DAYS = ("--from", "2013-01-02", "--to", "2013-01-03")
PLAN = ("--select", f"{RAW},staging/flights", "--from", "2013-01-01", "--to", "2013-01-04")


@pytest.fixture(autouse=True)
def _landed(installation: LandingZone) -> None:
    """Five days have landed, and there is a Dagster home."""
    installation.land(f"2013-01-0{day}" for day in range(1, 6))


def run(*arguments: str) -> str:
    result = CliRunner().invoke(app, arguments, env={"COLUMNS": "200"})
    assert result.exit_code == 0, result.output
    return result.output


def refuse(*arguments: str) -> str:
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 1, result.output
    assert isinstance(result.exception, BackfillError)
    return str(result.exception)


def test_a_range_is_protected_listed_and_lifted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOGNAME", "anna")
    assert run("protect", "--list") == "nothing is protected\n"
    output = run("protect", RAW, *DAYS, "--reason", "books are closed")
    assert output == f"{RAW}: 2013-01-02...2013-01-03 protected: books are closed\n"
    (found,) = json.loads(run("protect", "--list", "--json"))
    assert (found["table"], found["reason"], found["by"]) == (RAW, "books are closed", "anna")
    assert (found["ranges"], found["and_later"]) == ([["2013-01-02", "2013-01-03"]], False)
    output = run("protect", "--lift", RAW, "--to", "2013-01-02", "--reason", "a wrong number")
    assert output == f"{RAW}: ...2013-01-02 no longer protected: a wrong number\n"
    (found,) = json.loads(run("protect", "--list", "--json"))
    assert found["ranges"] == [["2013-01-03", "2013-01-03"]]
    run("protect", "--lift", RAW, "--reason", "all open")
    assert json.loads(run("protect", "--list", "--json")) == []


def test_a_plan_says_all_of_it_at_80_columns() -> None:
    lines = run_in_terminal("plan", *PLAN, columns=80)
    (at,) = (at for at, line in enumerate(lines) if line.startswith("staging/flights: now 4 mis"))
    assert "partitions 4, runs 1, chunks 1, commits 1" in lines[at]
    assert "rows 0, write 0 B, seconds no earlier step" in " ".join(lines[at : at + 3])
    assert max(map(len, lines[: at + 3])) <= 80


def test_the_list_fits_80_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOGNAME", "anna")
    run("protect", "features/carrier_delays", "--from", "2013-01-02", "--reason", "as reported")
    lines = run_in_terminal("protect", "--list", columns=80)
    assert max(map(len, lines)) <= 80
    text = "\n".join(lines)
    for words in ("2013-01-02", "and later ones", "as reported", "anna"):
        assert words in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("protect", "raw/nope", "--reason", "x"), "no table raw/nope"),
        (("protect", RAW, "--reason", " "), "an option is empty"),
        (("protect", RAW), "name a TABLE and say why with --reason, or see with --list"),
        (("protect", "--reason", "x"), "name a TABLE and say why with --reason"),
        (("protect", RAW, "--list"), "--list shows all that is protected: leave the other"),
        (("protect", "--lift", "--list"), "--list shows all that is protected: leave the other"),
        (("protect", RAW, "--from", "2013-13-01", "--reason", "x"), "no partitions 2013-13-01"),
        (
            ("protect", RAW, "--from", "2013-01-03", "--to", "2013-01-02", "--reason", "x"),
            "no partitions 2013-01-03...2013-01-02",
        ),
        (
            ("protect", "--lift", RAW, *DAYS, "--reason", "x"),
            f"nothing of {RAW} 2013-01-02...2013-01-03 is protected: "
            "`backfill-assets protect --list`",
        ),
    ],
)
def test_what_cannot_be_meant_is_one_error(
    arguments: tuple[str, ...], message: str, tmp_path: Path
) -> None:
    assert message in refuse(*arguments)
    assert not (tmp_path / "warehouse" / PROTECTIONS).exists()


def test_a_plan_shows_what_is_protected_and_a_launch_asks_for_a_reason() -> None:
    run("protect", RAW, *DAYS, "--reason", "books are closed")
    assert f"protected: {RAW} 2013-01-02...2013-01-03: books are closed (by " in run("plan", *PLAN)
    raw, staging = json.loads(run("plan", *PLAN, "--json"))["tables"]
    assert len(raw["protected"]) == 1
    assert staging["protected"] == []
    refused = refuse("launch", *PLAN, "--yes")
    assert f"protected: {RAW} 2013-01-02...2013-01-03: books are closed (by " in refused
    assert refused.endswith("say why with --override-protection; nothing was launched")
    with DagsterInstance.get() as instance:
        assert instance.get_backfills() == []
    words = ("--override-protection", "restated", "--allow-new-code", "a hotfix comes")
    run("launch", *PLAN, *words, "--yes")
    run("launch", *PLAN[:2], "--from", "2013-01-05", "--to", "2013-01-05", *words[:2], "--yes")
    with DagsterInstance.get() as instance:
        free, overriding = (backfill.tags for backfill in instance.get_backfills())
    assert overriding["backfill_assets/override_protection"] == "restated"
    assert overriding["backfill_assets/allow_new_code"] == "a hotfix comes"
    # A reason that nothing needs doesn't permit a change of what is protected later.
    assert "backfill_assets/override_protection" not in free
