"""What goes to the terminal, and what comes from it: lines, grids, JSON, and a person's yes.

Each text on its way there loses what would steer the terminal: nothing else calls `typer.echo`.
"""

import dataclasses
import json
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout
from io import UnsupportedOperation
from typing import Any, TextIO, TypeVar

import typer
from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.table import Table  # noqa: TID251
from rich.text import Text

from backfill_engine.errors import SettingsError
from backfill_engine.escaping import escape_hidden

T = TypeVar("T")
_UNBOUNDED = 10_000
"""Columns, more than any grid needs."""


def echo(line: str = "", *, err: bool = False, file: TextIO | None = None) -> None:
    """Prints a line; what breaks it comes from data, and is written as Python would."""
    typer.echo(escape_hidden(line, keep="\t"), file=file, err=err)  # noqa: TID251


def echo_lines(text: str, *, err: bool = False) -> None:
    """Prints a text of several lines."""
    typer.echo(escape_hidden(text), err=err)  # noqa: TID251


def echo_commands(head: str, commands: Sequence[str]) -> None:
    """Prints commands to copy, below a line that says what they are for; nothing without any."""
    for line in (head, *(f"  {command}" for command in commands)) if commands else ():
        echo(line)


def print_line(line: str, *, indent: str = "") -> None:
    """Prints a line; on a terminal that is narrower, broken between words."""
    if sys.stdout.isatty():
        indented = Padding(write_text(line), (0, 0, 0, len(indent)), expand=False)
        Console().print(indented, highlight=False)
    else:
        echo(indent + line)


def write_text(text: str, colour: str = "") -> Text:
    """Writes text as it is, in a colour."""
    return Text(escape_hidden(text), style=colour)


class Grid(Table):
    """A grid of rich; of what it is given as `str` nothing is read as markup."""

    def __init__(self, *heads: str, title: str | None = None, **looks: Any) -> None:
        """Begins a grid, as rich does; a head that begins with `>` is of numbers."""
        super().__init__(title=None if title is None else write_text(title), **looks)
        for head in heads:
            justify = "right" if head.startswith(">") else "left"
            self.add_column(write_text(head.removeprefix(">")), justify=justify)

    def add_row(self, *cells: RenderableType | None, **looks: Any) -> None:
        """Adds a row, as rich does."""
        super().add_row(
            *(write_text(cell) if isinstance(cell, str) else cell for cell in cells), **looks
        )


def measure_grid(grid: Grid) -> int:
    """Measures how many columns of a terminal a grid needs."""
    console = Console()
    return console.measure(grid, options=console.options.update(max_width=_UNBOUNDED)).maximum


def print_grid(grid: Grid) -> None:
    """Prints a grid as wide as the terminal; into a file or a pipe as wide as it needs."""
    Console(width=None if sys.stdout.isatty() else measure_grid(grid)).print(grid)


def print_json(result: Any) -> None:
    """Prints dataclasses, or what is plain already, as JSON objects."""
    is_list = isinstance(result, Sequence)
    plain = [_make_plain(row) for row in result] if is_list else _make_plain(result)
    echo_lines(json.dumps(plain, indent=2, default=str))  # dates as ISO 8601


def print_answer(answer: T, print_it: Callable[[T], object], *, as_json: bool) -> None:
    """Prints the answer of a command: as JSON for programs, or as people read it."""
    (print_json if as_json else print_it)(answer)


def _make_plain(row: Any) -> Any:
    return dataclasses.asdict(row) if dataclasses.is_dataclass(row) else row  # type: ignore[arg-type]


def confirm(question: str, *, is_aside: bool = False) -> None:
    """Asks a person whether to go on.

    Args:
        question: whose answer is yes or no.
        is_aside: whether it goes to stderr.

    Raises:
        SettingsError: if nobody is there to answer.
        Abort: if the answer is no.
    """
    nobody = SettingsError(f"{question} nobody answered: say --yes beforehand; nothing was done")
    if sys.stdin is None or sys.stdin.closed:
        raise nobody
    try:
        agreed = typer.confirm(escape_hidden(question), err=is_aside)
    except typer.Abort:  # the end of the input, or Ctrl-C at a terminal
        echo(err=is_aside)
        if sys.stdin.isatty():
            raise
        raise nobody from None
    if not agreed:
        raise typer.Abort


@contextmanager
def keep_terminal(*, is_aside: bool = False) -> Iterator[TextIO]:
    """Keeps the terminal for our lines; what Dagster and Spark print only logs of runs have."""
    shown = sys.stderr if is_aside else sys.stdout
    shown.flush()
    with ExitStack() as opened:
        try:
            display = opened.enter_context(open(os.dup(shown.fileno()), "w"))  # noqa: PTH123
        except UnsupportedOperation:  # no file, as where a test calls the command
            display = shown
        nowhere = os.open(os.devnull, os.O_WRONLY)
        opened.callback(os.close, nowhere)
        for number, redirect in ((1, redirect_stdout), (2, redirect_stderr)):
            kept = os.dup(number)
            opened.callback(os.close, kept)
            opened.callback(os.dup2, kept, number)
            os.dup2(nowhere, number)
            stream = opened.enter_context(open(number, "w", closefd=False))
            opened.enter_context(redirect(stream))
        yield display
