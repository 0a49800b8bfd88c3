"""Who asked, why and how is in each commit, vouched for by its certificate, and in the history."""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import pytest
import typer
from deltalake import DeltaTable
from typer.testing import CliRunner

from backfill_engine.cli.options import build_origin, refuse_unsaid
from backfill_engine.cli.proof_commands import print_history
from backfill_engine.lake.origins import Origin
from backfill_engine.proof.table_history import Change
from backfill_engine_tests.commands import Project, confirm
from backfill_engine_tests.landing_zones import copy_days, rewrite_records

RAW = "raw/flights"
FIRST, LAST = "2013-01-01", "2013-01-04"
SECRET = "hush-hush"
REASON = f"as told in https://ann:{SECRET}@tickets.example/7?token={SECRET}"
SHOWN = "as told in https://tickets.example/7?token=…"


@pytest.fixture(scope="module")
def story(sample_landing: Path, tmp_path_factory: pytest.TempPathFactory) -> Project:
    """Four days are published in two chunks, the last by Dagster again, which is taken back.

    Then the first is repaired, and all are replayed.
    """
    root = tmp_path_factory.mktemp("origins")
    landing = copy_days(sample_landing, root / "landing", first=FIRST, count=4)
    project = Project(root, landing, (("LOGNAME", "ann"),))
    run(project, "run", *ranged("--chunk", "days=2", "--reason", REASON), "--yes")
    confirm(project.materialize(RAW, partitions=f"{LAST}...{LAST}"))
    before = ("--before", find_run(project, -1))
    run(project, "rollback", RAW, "--from", LAST, "--to", LAST, *before, "--yes")
    rewrite_records(landing, FIRST, lambda records: records[:-1])
    run(project, "run", *ranged("--template", "repair"), "--yes")
    run(project, "run", *ranged(), "--yes")
    return project


def ranged(*options: str) -> tuple[str, ...]:
    return ("--select", RAW, "--from", FIRST, "--to", LAST, *options)


def run(project: Project, *arguments: str) -> str:
    return confirm(project.run("backfill-assets", *arguments)).stdout


def read_records(project: Project) -> list[dict[str, Any]]:
    """What commits carry, oldest first, as delta-rs reads it."""
    commits = DeltaTable(str(project.warehouse / RAW)).history()
    texts = [commit["userMetadata"] for commit in reversed(commits) if "userMetadata" in commit]
    return [json.loads(text) for text in texts]


def find_run(project: Project, number: int) -> str:
    return read_records(project)[number]["run_id"]


def find_document(project: Project, run_id: str) -> Path:
    (path,) = project.warehouse.glob(f"certificates/*/{run_id}/raw.flights.json")
    return path


def test_each_commit_says_who_asked_why_and_how(story: Project) -> None:
    origins = [record["features"]["origin"] for record in read_records(story)]
    chunk, same, plain, back, repair, replay = origins
    assert (
        chunk
        == same
        == {
            "operation": "backfill",
            "by": "ann",
            "reason": SHOWN,
            "command": (
                f"backfill-assets run --from {FIRST} --to {LAST} --select {RAW} --chunk days=2 "
                f"--reason '{SHOWN}' --yes"
            ),
        }
    )
    assert plain == {"operation": "materialize", "by": "ann"}
    run_id = find_run(story, 2)
    ranged_back = f"--from {LAST} --to {LAST} --before {run_id} --yes"
    assert back == {
        "operation": "rollback",
        "by": "ann",
        "command": f"backfill-assets rollback {RAW} {ranged_back}",
    }
    assert (repair["operation"], "--template repair" in repair["command"]) == ("repair", True)
    assert (replay["operation"], replay["by"]) == ("replay", "ann")


def test_certificates_have_the_same_and_commits_vouch_for_it(story: Project) -> None:
    for record in read_records(story):
        path = find_document(story, record["run_id"])
        assert json.loads(path.read_text())["features"]["origin"] == record["features"]["origin"]
        verified = run(story, "proof", "certificate", record["run_id"], "--verify")
        assert "DOES NOT HOLD" not in verified
    page = run(story, "proof", "certificate", find_run(story, 0))
    assert "operation backfill, by ann, reason as told in " in page
    assert "--chunk days=2" in page


def test_nothing_secret_is_kept_anywhere(story: Project) -> None:
    kept = [path for path in story.warehouse.rglob("*") if path.is_file()]
    assert len(kept) > 10
    assert [path for path in kept if SECRET.encode() in path.read_bytes()] == []


def test_history_has_it(story: Project) -> None:
    changes = json.loads(run(story, "history", RAW, "--json"))
    origins = [record["features"]["origin"] for record in reversed(read_records(story))]
    known = [
        {name: text for name, text in change["origin"].items() if text}
        for change in changes
        if change["run_id"]
    ]
    assert known == origins
    listed = run(story, "history", RAW)
    for words in ("replay", "repair", "rollback", "materialize", "backfill", "ann: as told in"):
        assert words in listed, words


def test_history_fits_80_columns_and_cuts_no_name(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    change = Change(
        version=1234567,
        committed_at="2013-01-10T12:00:01.123+00:00",
        operation="WRITE",
        write_mode="append_once",
        run_id="0a1b2c3d-rest",
        backfill_id="abcdefgh",
        first="2013-01-01-00:00",
        last="2013-12-31-23:00",
        partitions=8760,
        rows=1_234_567,
        origin=Origin("full_refresh", "sensor process_due_partitions", "the airline's word"),
    )
    foreign = Change(8, "2013-01-10T12:00:01.123+00:00", "OPTIMIZE")
    days = replace(change, version=9, first="2013-01-01", last="2013-12-31", rows=999_999)
    for changes, is_grid in (([days, foreign], True), ([change, foreign], False)):
        print_history(changes)
        text = capsys.readouterr().out
        assert max(map(len, text.splitlines())) <= 80
        assert ("rows by and why" in text) is is_grid
        for words in (
            *(str(changes[0].version), "2013-01-10", "12:00:01", "full_refresh", "append_once"),
            *("0a1b2c3d", "of abcdefgh", f"{changes[0].rows:,}", "OPTIMIZE"),
            *(f"{changes[0].first}...", f"{changes[0].last} ({changes[0].partitions})"),
        ):
            assert words in text, text
        assert {"sensor", "the", "airline's", "word"} <= {*text.split()}


def test_a_commit_from_before_shows_how_it_was_written(capsys: pytest.CaptureFixture[str]) -> None:
    change = Change(
        7,
        "2013-01-10T12:00:01.123+00:00",
        "WRITE",
        "overwrite",
        "0a1b2c3d",
        None,
        *("2013-01-01", "2013-01-02"),
        2,
        9,
    )
    print_history([change])
    assert "overwrite" in capsys.readouterr().out


app = typer.Typer(add_completion=False)
group = typer.Typer()
app.add_typer(group, name="backfill")


@app.callback()
def _take_module(module: Annotated[str, typer.Option("-m")] = "") -> None:
    """The commands of a project."""


@group.command()
def retry(
    table: Annotated[str, typer.Argument()],
    first: Annotated[str | None, typer.Option("--from", callback=refuse_unsaid)] = None,
    limit: Annotated[int, typer.Option()] = 7,
    keep_going: Annotated[bool | None, typer.Option("--keep-going/--no-keep-going")] = None,
    *,
    yes: Annotated[bool, typer.Option("--yes", envvar="YES")] = False,
) -> None:
    """Say what it was called with."""
    typer.echo(build_origin().command)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("raw",), "raw"),
        (("-m", "a.b", "--yes", "raw", "--limit=3"), None),
        (("--yes", "raw", "--limit=3"), "raw --limit 3 --yes"),
        (("--no-keep-going", "a b"), "'a b' --no-keep-going"),
        (
            ("raw", "--from", "postgresql://a:b@c/d?e=f"),
            "raw --from 'postgresql://c/d?e=…'",
        ),
    ],
)
def test_a_command_is_described_as_it_was_given(
    arguments: tuple[str, ...], expected: str | None
) -> None:
    env: Mapping[str, str] = {"YES": "1"} if "--yes" not in arguments else {}
    module = arguments[:2] if arguments[0] == "-m" else ()
    rest = arguments[len(module) :]
    result = CliRunner().invoke(app, [*module, "backfill", "retry", *rest], env=env)
    assert result.exit_code == 0, result.output
    expected = expected or "raw --limit 3 --yes"
    assert result.output.strip() == f"backfill-assets backfill retry {expected}"


def test_without_a_command_there_is_nothing_to_describe() -> None:
    assert build_origin().command == ""
