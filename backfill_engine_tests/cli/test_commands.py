"""The console script: what it offers, and how it refuses. No Spark, and no warehouse."""

import json
import shutil

import pytest
from typer.testing import CliRunner

from backfill_engine.cli import add_project_commands, app
from backfill_engine.cli.location import default_dagster_home
from backfill_engine.errors import BackfillError, SettingsError
from backfill_engine_tests.commands import PROJECT

COMMANDS = (
    *("accept", "apply", "check", "history", "init", "launch", "plan", "protect", "recover"),
    *("rehearse", "rollback", "run", "sample", "status", "backfill", "proof", "version"),
)


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path, monkeypatch):
    """A folder with the project's pyproject.toml, a warehouse of its own and no Dagster home."""
    shutil.copy(PROJECT / "pyproject.toml", tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DAGSTER_HOME", raising=False)
    monkeypatch.setenv("BACKFILL_WAREHOUSE", str(tmp_path / "warehouse"))


def run(*arguments: str):
    add_project_commands()
    return CliRunner().invoke(app, arguments)


def test_every_command_is_listed_with_a_sentence():
    shown = run("--help").output
    assert [name for name in COMMANDS if f" {name} " not in shown] == []
    for name in COMMANDS:
        assert run(name, "--help").exit_code == 0, name


@pytest.mark.parametrize(
    ("short", "long"),
    [
        (("missing",), ("status", "--missing")),
        (("missing", "--from", "2013-01-01"), ("status", "--missing", "--from", "2013-01-01")),
        (("watermark", "--json"), ("status", "--watermark", "--json")),
        (
            ("pin", "--select", "raw/flights"),
            ("history", "--consistent", "--select", "raw/flights"),
        ),
        (("certificate", "no-such-run"), ("proof", "certificate", "no-such-run")),
        (("certificate",), ("proof", "certificate")),
    ],
)
def test_a_short_name_of_scripts_answers_as_the_command_that_it_stands_for(short, long):
    answers = [run(*short), run(*long)]
    assert len({(answer.exit_code, repr(answer.exception)) for answer in answers}) == 1
    assert f" {short[0]} " not in run("--help").output


def test_tables_that_were_never_processed_have_no_watermark():
    assert json.loads(run("status", "--watermark", "--json").output) == []
    empty = run("status", "--watermark")
    assert (empty.stdout, empty.stderr.count("\n")) == ("", 1)
    assert "no run has saved a watermark yet" in empty.stderr


DAYS = ("--from", "2013-01-01", "--to", "2013-01-02")
REVERSED = ("--from", "2013-01-02", "--to", "2013-01-01")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("history", "raw/nope"), "no table raw/nope: there are raw/flights, "),
        (("proof", "certificate", "no-such-run"), "no certificate of no-such-run below "),
        (
            ("proof", "diff", "raw/flights", *DAYS, "--before", "1"),
            "table raw/flights does not exist at .*: materialize the asset raw/flights first",
        ),
        (
            ("proof", "diff", "raw/flights", *REVERSED, "--before", "1"),
            "no partitions 2013-01-02...2013-01-01: give two keys of ",
        ),
        (("status", *DAYS), "DAGSTER_HOME is not set: "),
        (
            ("proof", "reconcile", *DAYS, "--keys", "a"),
            "--keys says how to compare with --golden",
        ),
        (("history",), "name one TABLE; --select is for --consistent"),
        (("history", "raw/flights", "--select", "raw/flights"), "name one TABLE; --select is for"),
        (("history", "raw/flights", "--consistent"), "--consistent is about whole tables: choose"),
        (("history", "--consistent", "--limit", "3"), "--consistent is about whole tables: choose"),
    ],
    ids=[
        *("unknown table", "unknown run", "no table yet", "reversed", "no home", "stray option"),
        *("no table", "two ways to choose", "one table for several", "a limit of versions"),
    ],
)
def test_what_cannot_be_done_is_one_error_that_names_the_cure(arguments, message):
    result = run(*arguments)
    assert isinstance(result.exception, BackfillError)
    with pytest.raises(type(result.exception), match=message):
        raise result.exception


def test_a_home_that_does_not_exist_is_named(tmp_path, monkeypatch):
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path / "gone"))
    with pytest.raises(SettingsError, match="gone is no folder: export one that exists"):
        default_dagster_home()
