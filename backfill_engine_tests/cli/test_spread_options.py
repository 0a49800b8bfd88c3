"""A command takes a model, and people give each of its fields as an option."""

from typing import Annotated

import pytest
import typer
from pydantic import BaseModel, Field
from typer.testing import CliRunner

from backfill_engine.cli.options import spread_options


class Range(BaseModel):
    """The model has three options, one under another name; its last field is no option."""

    first: str | None = Field(default=None, title="from", description="The first one.")
    strict: bool = Field(default=False, description="Whether.")
    keep_going: bool | None = Field(default=None, description="Whether, if anybody says so.")
    once: str = ""


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
    ("arguments", "expected"),
    [
        (("raw",), "raw first=None strict=False keep_going=None once='' all"),
        (
            ("raw", "--from", "2013-01-01", "--strict", "--no-keep-going", "--chunk", "days=1"),
            "raw first='2013-01-01' strict=True keep_going=False once='' days=1",
        ),
    ],
)
def test_the_fields_are_options_and_come_as_the_model(
    arguments: tuple[str, ...], expected: str
) -> None:
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    assert result.output.strip() == expected


def test_the_help_has_them_in_their_place() -> None:
    text = CliRunner().invoke(app, ["--help"]).output
    assert "Show what it was given." in text
    assert "The first one." in text
    assert "--once" not in text
    places = [text.index(f"--{name}") for name in ("from", "strict", "keep-going", "chunk")]
    assert places == sorted(places)
