"""A command takes a dataclass, and people its fields, each as an option."""

from dataclasses import dataclass
from typing import Annotated

import pytest
import typer
from typer.testing import CliRunner

from backfill_engine.cli.plan_options import spread_options


@dataclass(frozen=True, kw_only=True)
class Range:
    """Two options, one of them by another name."""

    first: Annotated[str | None, typer.Option("--from", help="The first one.")] = None
    strict: bool = False


@spread_options
def show(
    table: Annotated[str, typer.Argument()],
    asked: Range,
    chunk: Annotated[str, typer.Option()] = "all",
) -> None:
    """Show what it was given."""
    typer.echo(f"{table} {asked} {chunk}")


app = typer.Typer(add_completion=False)
app.command()(show)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("raw",), "raw Range(first=None, strict=False) all"),
        (
            ("raw", "--from", "2013-01-01", "--strict", "--chunk", "days=1"),
            "raw Range(first='2013-01-01', strict=True) days=1",
        ),
    ],
)
def test_the_fields_are_options_and_come_as_the_dataclass(
    arguments: tuple[str, ...], said: str
) -> None:
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    assert result.output.strip() == said


def test_the_help_has_them_in_their_place() -> None:
    text = CliRunner().invoke(app, ["--help"]).output
    assert "Show what it was given." in text
    assert "The first one." in text
    places = [text.index(f"--{name}") for name in ("from", "strict", "chunk")]
    assert places == sorted(places)
