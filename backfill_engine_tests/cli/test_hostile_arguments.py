"""Settings, arguments and files that can't be used: one line that says so, and nothing written.

In this process, on a warehouse of twelve days; `test_hostile_processes.py` has some of them
as a person meets them.
"""

import io
import json
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest
from dagster import DagsterInstance

from backfill_engine.cli import app, main
from backfill_engine_tests.cli import exit_cases, hostile_launches
from backfill_engine_tests.cli.hostile_cases import (
    CASES,
    DIFF,
    HISTORY,
    RUN,
    STATUS,
    WATERMARK,
    Place,
    cut_off,
)
from backfill_engine_tests.commands import PROJECT
from backfill_engine_tests.docs.test_commands import list_commands
from backfill_engine_tests.pipeline.running import RAW, copy_pipeline


@pytest.fixture(scope="module")
def made(published_root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Raw has days 1 to 12, published twice; staging has days 1 to 10. There is a watermark."""
    root = tmp_path_factory.mktemp("made")
    with copy_pipeline(published_root, root / "copy") as pipeline:
        options = {RAW: {"save_watermark": True}}
        run = pipeline.run(RAW, first="2013-01-01", last="2013-01-12", ops=options)
        assert run.success, run.message
    shutil.rmtree(root / "copy" / "warehouse" / "_locks")
    return root / "copy"


@pytest.fixture
def place(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    """The environment names a copy of the published pipeline."""
    for name in ("warehouse", "landing"):
        shutil.copytree(made / name, tmp_path / name)
    for name in [name for name in os.environ if name.startswith(("BACKFILL_", "SPARK_REMOTE"))]:
        monkeypatch.delenv(name)
    for name in ("home", "work"):
        (tmp_path / name).mkdir()
    (tmp_path / "home" / "dagster.yaml").write_text((PROJECT / "dagster.yaml").read_text())
    shutil.copy(PROJECT / "pyproject.toml", tmp_path / "work")
    monkeypatch.chdir(tmp_path / "work")
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("BACKFILL_WAREHOUSE", str(tmp_path / "warehouse"))
    monkeypatch.setenv("BACKFILL_LANDING", str(tmp_path / "landing"))
    return Place(tmp_path)


class Answer(NamedTuple):
    """How a command ended, and what it wrote."""

    code: int
    out: str
    err: str


Run = Callable[..., Answer]


@pytest.fixture
def run(place: Place, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs the console script here, with the published run for RUN."""

    def run_here(*arguments: str) -> Answer:
        asked = (argument.replace(RUN, find_run()) for argument in arguments)
        monkeypatch.setattr(sys, "argv", ["backfill-assets", *asked])
        with pytest.raises(SystemExit) as ended:
            main()
        assert isinstance(ended.value.code, int)
        written = capsys.readouterr()
        return Answer(ended.value.code, written.out, written.err)

    return run_here


def find_run() -> str:
    """Returns the run that published raw/flights."""
    certificates = Path(os.environ["DAGSTER_HOME"]).parent / "warehouse" / "certificates"
    found = (path.parent.name for path in certificates.rglob("raw.flights.json"))
    return next(found, RUN)


@pytest.mark.slow
@pytest.mark.by_hand
def test_what_is_spoilt_here_is_fine_before(run: Run) -> None:
    recover, certificate = ("recover",), ("proof", "certificate", RUN, "--verify")
    for command in (recover, HISTORY, WATERMARK, STATUS, certificate, (*DIFF, "1")):
        answer = run(*command)
        assert (answer.code, answer.err) == (0, ""), command


@pytest.mark.parametrize("name", CASES)
def test_it_is_one_line_and_nothing_is_written(
    place: Place, run: Run, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    case = CASES[name]
    for setting, value in case.settings.items():
        monkeypatch.setenv(f"BACKFILL_{setting}", value)
    case.spoil(place)
    before = place.list_files()
    line = case.line.replace("{root}", str(place.root)).replace(RUN, find_run())
    code, out, err = run(*case.arguments)
    assert (code, out) == (case.code, "")
    assert err.startswith(f"error: {line}")
    assert err.count("\n") == 1
    assert "Error:" not in err, "an error of a library, and no cure"
    assert place.list_files() == before


def test_a_certificate_that_is_cut_off_leaves_the_others_verified(place: Place, run: Run) -> None:
    """Verifying is an answer: what can't be read is a line of it."""
    path = next((place.root / "warehouse" / "certificates").rglob("raw.flights.json"))
    cut_off(path, left=100)
    answer = run("proof", "certificate", path.parent.name, "--verify", "--json")
    assert answer.code == 1
    (broken,) = (line for line in json.loads(answer.out) if line["holds"] is False)
    assert "is cut off or was edited" in broken["found"]


@pytest.mark.parametrize(("arguments", "line"), hostile_launches.CASES)
def test_nothing_is_planned_launched_or_run(
    place: Place, run: Run, arguments: tuple[str, ...], line: str
) -> None:
    before = place.list_files()
    code, out, err = run(*arguments)
    assert (code, out) == (2, "")
    (error,) = (printed for printed in err.splitlines() if printed.startswith("error: "))
    assert error.removeprefix("error: ").startswith(line)
    assert "Error:" not in error, "an error of a library, and no cure"
    assert place.list_files() == before
    check_nothing_was_asked_for()


def test_how_each_command_ends_is_held() -> None:
    assert {*exit_cases.EXITS} == {name for name, _ in list_commands(app)}


@pytest.mark.parametrize("name", exit_cases.EXITS)
def test_it_ends_with_two_where_it_can_not_be_asked_and_one_for_an_outcome(
    place: Place, run: Run, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    before = place.list_files()
    for arguments, code in {**exit_cases.EXITS[name], "--no-such-option": 2}.items():
        monkeypatch.setattr(sys, "stdin", io.StringIO(""))
        answer = run(*name.split(), *hostile_launches.split(arguments))
        assert answer.code == code, (arguments, answer.err)
        is_error = [line.startswith("error: ") for line in answer.err.splitlines()]
        assert code != 2 or (is_error[-1], sum(is_error)) == (True, 1), (arguments, answer.err)
    assert place.list_files() == before
    check_nothing_was_asked_for()


@pytest.mark.parametrize("command", ["launch", "run"])
@pytest.mark.parametrize("stdin", [None, io.StringIO("")], ids=["closed", "at its end"])
def test_where_nobody_answers_it_says_how_not_to_be_asked(
    run: Run, monkeypatch: pytest.MonkeyPatch, command: str, stdin: io.StringIO | None
) -> None:
    monkeypatch.setattr(sys, "stdin", stdin)
    code, out, err = run(command, *hostile_launches.RAW, *hostile_launches.DAYS, "--json")
    assert (code, out.strip()) == (2, "")
    assert err.splitlines()[-1].endswith(
        "it? nobody answered: say --yes beforehand; nothing was done"
    )
    check_nothing_was_asked_for()


def test_of_a_column_only_the_rows_between_the_bounds_are_asked_for(run: Run) -> None:
    """The cases above lack a table that can merge and partitions that are published."""
    bounds = "`landing_date` >= DATE '2013-01-02' AND `landing_date` < DATE '2013-01-04'"
    arguments = (*hostile_launches.BY_LANDING, *hostile_launches.BOUNDS)
    code, planned, _ = run("plan", *arguments)
    assert code == 0
    assert f"only rows with {bounds}; the others stay as they are published" in planned
    assert '"write_mode": "merge"' in planned
    options = ("--write-mode", "merge", "--filter", "origin = 'JFK'", "--yes", "--json")
    code, launched, _ = run("launch", *arguments, *options)
    assert code == 0
    plan = json.loads(launched)["plan"]
    assert plan["row_filter"] == bounds
    assert plan["tables"][0]["ranges"] == [["2013-01-01", "2013-01-02"]]
    with DagsterInstance.get() as instance:
        (backfill,) = instance.get_backfills()
    tags = backfill.tags or {}
    assert tags["backfill_assets/filter"] == f"(origin = 'JFK') AND ({bounds})"
    assert tags["backfill_assets/write_mode"] == "merge"


def test_the_partitions_own_column_bounds_partitions(run: Run) -> None:
    arguments = (*hostile_launches.RAW, *hostile_launches.BOUNDS, "--column", "LANDING_DATE")
    answer = run("plan", *arguments, "--json")
    assert answer.code == 0
    plan = json.loads(answer.out)
    assert plan["row_filter"] == ""
    assert plan["tables"][0]["ranges"] == [["2013-01-02", "2013-01-03"]]


def check_nothing_was_asked_for() -> None:
    with DagsterInstance.get() as instance:
        assert not instance.get_runs()
        assert not instance.get_backfills()


@pytest.mark.parametrize("debug", [False, True])
def test_an_error_that_nobody_foresaw_has_a_trace_only_if_asked(
    run: Run, monkeypatch: pytest.MonkeyPatch, *, debug: bool
) -> None:
    monkeypatch.setattr(DagsterInstance, "get_run_records", lambda *_, **__: 1 / 0)
    code, _, err = run(*(["--debug"] if debug else []), *STATUS)
    assert code == 1
    assert err.splitlines()[-1].startswith("error: ")
    assert err.endswith("`backfill-assets --debug …` shows where it comes from\n")
    assert ("Traceback" in err) is debug
    assert (err.count("\n") == 1) is not debug
