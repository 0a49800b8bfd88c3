"""At 80 columns nothing is cut and no line is longer: the help of each command, what it prints.

But for what is to be copied, and errors, which are one line.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import typer
from typer.core import TyperGroup
from typer.testing import CliRunner, Result

from backfill_engine.cli import add_project_commands, app
from backfill_engine_tests.commands import Project
from backfill_engine_tests.landing_zones import copy_days, rewrite_records

LINES, COLUMNS = 42, 80
"""The height and width of a screen."""


def find_commands(group: TyperGroup, *names: str) -> Iterator[tuple[str, ...]]:
    """Finds all that help can be asked of, hidden ones and those of the project among them."""
    yield names
    for name, command in group.commands.items():
        if isinstance(command, TyperGroup):
            yield from find_commands(command, *names, name)
        else:
            yield *names, name


add_project_commands()
_ROOT = typer.main.get_command(app)
assert isinstance(_ROOT, TyperGroup)
ALL = [*find_commands(_ROOT)]


def show_help(*arguments: str) -> list[str]:
    result = CliRunner().invoke(app, arguments, env={"COLUMNS": str(COLUMNS)})
    assert result.exit_code == 0, result.output
    return result.output.splitlines()


@pytest.mark.parametrize("command", ALL, ids=" ".join)
def test_the_help_of_each_command_fits_a_screen(command: tuple[str, ...]) -> None:
    lines = show_help(*command, "--help")
    assert max(map(len, lines)) <= COLUMNS
    assert len(lines) <= LINES
    assert [line for line in lines[1:] if line.endswith(("...", "…"))] == []
    options = [line.split()[0] for line in lines if line.startswith("  --")]
    if "--help-all" in options:
        assert max(map(len, show_help(*command, "--help-all"))) <= COLUMNS


@pytest.mark.parametrize("command", ["plan", "launch", "run"])
def test_the_rest_of_the_options_is_below_help_all(command: str) -> None:
    few, all_of_them = (
        {line.split()[0] for line in show_help(command, ask) if line.startswith("  --")}
        for ask in ("--help", "--help-all")
    )
    assert {"--from", "--to", "--select", "--only", "--chunk", "--help-all"} <= few < all_of_them
    assert {"--write-mode", "--window", "--override-protection", "--template"} <= all_of_them - few
    heads = [line for line in show_help(command, "--help-all") if line.endswith(":")]
    assert heads[:3] == ["Which partitions:", "Which rows:", "How it goes:"]


RAW, STAGING, FEATURES = TABLES = ("raw/flights", "staging/flights", "features/carrier_delays")
BAD, WARNED = "2013-01-03", "2013-01-04"
DAYS = ("--from", "2013-01-01", "--to", "2013-01-05")
GOOD = ("--from", "2013-01-01", "--to", "2013-01-02")
SELECT = ("--select", ",".join(TABLES))


@dataclass(frozen=True)
class Shown:
    """A project in which commands are asked, and what filled it said.

    Attributes:
        ran: the lines of `run`.
        environment: of the project.
        ids: of the run and of what was launched, by the words that stand for them.
    """

    ran: list[str]
    environment: dict[str, str]
    ids: dict[str, str]

    def ask(self, *arguments: str) -> Result:
        """Asks a command; RUN and BACKFILL stand for what was run and what was launched."""
        named = [self.ids.get(argument, argument) for argument in arguments]
        return CliRunner().invoke(app, named, env=self.environment)


@pytest.fixture(scope="module")
def shown(sample_landing: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shown]:
    """Three tables of five days: one was withheld, one was warned about; a backfill waits."""
    root = tmp_path_factory.mktemp("columns")
    landing = copy_days(sample_landing, root / "landing", first="2013-01-01", count=7)
    folder = landing / "flights" / "year=2013" / "month=01" / "day=03"
    (folder / "broken.json").write_text("{\n" * 400, encoding="utf-8")
    rewrite_records(landing, WARNED, lambda records: [{**record, "gate": 1} for record in records])
    project = Project(root, landing, settings=(("COLUMNS", str(COLUMNS)),))
    ran = project.run("backfill-assets", "run", *SELECT, *DAYS, "--yes")
    assert ran.returncode == 1, ran.stderr
    (run_id,) = re.findall(r"proof certificate (\w+)` has", ran.stdout)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(root)
        shown = Shown(ran.stdout.splitlines(), project.environment, {"RUN": run_id})
        later = ("--from", "2013-01-06", "--to", "2013-01-07", "--reason", "to see it")
        launched = shown.ask("launch", *SELECT, *later, "--yes")
        (shown.ids["BACKFILL"],) = re.findall(r"requested backfill (\w+):", launched.stdout)
        yield shown


def is_whole(line: str) -> bool:
    """Whether a line is to be copied, or has nothing at which it can be broken."""
    words = line.split()
    return words[0] in ("backfill-assets", "dagster", "next:") or len(words) == 1


ASKED: dict[tuple[str, ...], int] = {
    ("plan", *SELECT, *DAYS): 0,
    ("status", "--select", RAW, *DAYS): 0,
    ("status", *SELECT, *DAYS): 0,
    ("status", *SELECT, "--missing", *DAYS): 1,
    ("status", *SELECT, "--why", BAD): 0,
    ("status", *SELECT, "--why", WARNED): 0,
    ("status", "--withheld", *SELECT, *DAYS): 0,
    ("history", RAW): 0,
    ("history", FEATURES, *DAYS): 0,
    ("history", "--consistent", *SELECT): 0,
    ("proof", "certificate", "RUN"): 0,
    ("proof", "certificate", "RUN", "--verify"): 0,
    ("proof", "diff", RAW, *GOOD, "--before", "0"): 0,
    ("proof", "reconcile", *SELECT, *GOOD): 0,
    ("backfill", "list"): 0,
    ("backfill", "watch", "BACKFILL", "--timeout", "0"): 3,
    ("backfill", "watch", "RUN"): 1,
    ("protect", RAW, *GOOD, "--reason", "these were reported to the board in January"): 0,
    ("protect", "--list"): 0,
    ("version", "list", "carrier_delays"): 0,
    ("recover", "--dry-run"): 0,
    ("migrate", RAW, "--dry-run"): 0,
}


@pytest.mark.parametrize("arguments", ASKED, ids=" ".join)
def test_what_is_printed_fits_80_columns(shown: Shown, arguments: tuple[str, ...]) -> None:
    answer = shown.ask(*arguments)
    assert answer.exit_code == ASKED[arguments], answer.output
    assert_fits(answer.stdout.splitlines())


def test_what_a_run_says_fits_80_columns(shown: Shown) -> None:
    assert_fits(shown.ran)


def assert_fits(lines: list[str]) -> None:
    assert lines
    assert [line for line in lines if "…" in line.replace(" … ", " ")] == []
    assert [line for line in lines if len(line) > COLUMNS and not is_whole(line)] == []


def test_a_warning_is_named_with_its_day_its_value_and_its_bound(shown: Shown) -> None:
    why = "fields_are_declared = 0 (no field disappeared; not declared: gate)"
    warned = f"{RAW} {WARNED} warned: {why}"
    for arguments in (("status", "--select", RAW, *DAYS), ("status", *SELECT, *DAYS)):
        assert warned in " ".join(shown.ask(*arguments).stdout.split())
    listed = json.loads(shown.ask("status", "--select", RAW, *DAYS, "--json").stdout)
    assert [row["partition"] for row in listed if row["warned"]] == [WARNED]
    watched = " ".join(shown.ask("backfill", "watch", "RUN").stdout.split())
    assert f"{RAW} warned {WARNED}: {why}" in watched
    last = shown.ask("backfill", "watch", "RUN", "--json").stdout.splitlines()[-1]
    assert [*json.loads(last)["warned"][RAW]] == [WARNED]


def test_withheld_rows_and_rejected_records_are_grids(shown: Shown) -> None:
    text = " ".join(shown.ask("status", "--withheld", *SELECT, *DAYS).stdout.split())
    assert "rejected records in" in text
    assert f"partition_key {BAD}" in text
    assert "┃ flight_date ┃" in text
    assert "--json has them" in text


def test_a_certificate_is_no_markdown(shown: Shown) -> None:
    text = shown.ask("proof", "certificate", "RUN").stdout
    assert [line for line in text.splitlines() if line.startswith(("#", "|"))] == []
    assert "`raw/flights`" not in text
    assert "\\" not in text
    assert f"{BAD}: status withheld" in text
