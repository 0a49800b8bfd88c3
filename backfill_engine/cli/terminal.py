"""What goes to the terminal, and what comes from it: lines, grids, JSON, and a person's yes.

Each text on its way there loses what would steer the terminal: nothing else calls `typer.echo`. All
of it fits the columns of the terminal, or COLUMNS, but for commands to copy, JSON, lines for
programs (with tabs) and errors, which stay whole.
"""

import dataclasses
import json
import os
import shutil
import sys
import textwrap
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout
from io import UnsupportedOperation
from typing import Any, TextIO, TypeVar

import typer
from rich.box import SIMPLE_HEAD
from rich.cells import cell_len
from rich.console import Console, RenderableType
from rich.table import Table  # noqa: TID251
from rich.text import Text

from backfill_engine.errors import SettingsError
from backfill_engine.escaping import escape_hidden

T = TypeVar("T")
_UNBOUNDED = 10_000
"""Columns, more than any grid needs."""
_GRID_COLUMNS = 80
"""Of a grid where nobody says how many there are, as in a pipe; lines stay whole there."""
_PROSE_COLUMNS = 20
"""The least that a cell of prose is broken to."""


def echo(line: str = "", *, err: bool = False, file: TextIO | None = None) -> None:
    """Prints a line; what breaks it comes from data, and is written as Python would.

    On stdout it is broken between words where the terminal is narrower.
    """
    shown, columns = escape_hidden(line, keep="\t"), _find_columns()
    if columns and len(shown) > columns and not err and "\t" not in shown:
        shown = _break_line(shown, columns)
    typer.echo(shown, file=file, err=err)  # noqa: TID251


def echo_lines(text: str, *, err: bool = False, file: TextIO | None = None) -> None:
    """Prints a text of several lines, or one for a program or to copy, as it is."""
    typer.echo(escape_hidden(text), err=err, file=file)  # noqa: TID251


def echo_commands(head: str, commands: Sequence[str]) -> None:
    """Prints commands to copy, below a line that says what they are for; nothing without any."""
    for line in (head, *(f"  {command}" for command in commands)) if commands else ():
        echo_lines(line)


def _find_columns() -> int:
    """Finds how many columns a line has, by COLUMNS or the terminal; 0 where neither says."""
    return shutil.get_terminal_size((0, 0)).columns


def _break_line(line: str, columns: int) -> str:
    """Breaks a line between words; its rest is indented by two more."""
    indent = line[: len(line) - len(line.lstrip(" "))]
    return textwrap.fill(
        line.lstrip(" "),
        columns,
        initial_indent=indent,
        subsequent_indent=f"{indent}  ",
        break_long_words=False,
        break_on_hyphens=False,
    )


def write_text(text: str, colour: str = "") -> Text:
    """Writes text as it is, in a colour."""
    return Text(escape_hidden(text), style=colour)


class Grid(Table):
    """A grid of rich; of what it is given as `str` nothing is read as markup."""

    def __init__(self, *heads: str, title: str | None = None, **looks: Any) -> None:
        """Begins a grid, as rich does.

        A head that begins with `>` is of numbers, one with `~` of prose, which may be broken.
        """
        super().__init__(title=None if title is None else write_text(title), **looks)
        self.rows_of_text: list[tuple[Text, ...]] = []
        for head in heads:
            self.add_column(
                write_text(head.lstrip(">~")),
                justify="right" if head.startswith(">") else "left",
                no_wrap=not head.startswith("~"),
                overflow="fold",
            )

    def add_row(self, *cells: RenderableType | None, **looks: Any) -> None:
        """Adds a row, as rich does."""
        written = [write_text(cell) if isinstance(cell, str) else cell for cell in cells]
        self.rows_of_text.append(
            tuple(cell if isinstance(cell, Text) else Text() for cell in written)
        )
        super().add_row(*written, **looks)

    def describe_rows(self) -> Iterator[str]:
        """Describes each row in a line: its first cell, and the others with their heads."""
        heads = [" ".join(str(column.header).split()) for column in self.columns]
        first = Text()
        for row in self.rows_of_text:
            first = row[0] if row[0] else first
            begin = f"{heads[0]} {first}" if first.plain.isdigit() else str(first)
            cells = [
                f"{head} {' '.join(str(cell).split())}".strip()
                for head, cell in zip(heads[1:], row[1:], strict=False)
                if cell
            ]
            yield f"{begin}: {', '.join(cells)}"


def measure_grid(grid: Grid) -> int:
    """Measures how many columns a grid needs, in which prose is broken as far as may be."""
    console = Console()
    needed = console.measure(grid, options=console.options.update(max_width=_UNBOUNDED)).maximum
    for number, column in enumerate(grid.columns):
        if not column.no_wrap:
            cells = [
                column.header,
                *(row[number] for row in grid.rows_of_text if number < len(row)),
            ]
            widest = max(cell_len(line) for cell in cells for line in str(cell).split("\n"))
            needed -= max(0, widest - _PROSE_COLUMNS)
    return needed


def fits(grid: Grid) -> bool:
    """Tells whether a grid fits the terminal."""
    return measure_grid(grid) <= (_find_columns() or _GRID_COLUMNS)


def print_grid(grid: Grid) -> None:
    """Prints a grid; what is too wide loses its lines, and if need be becomes one of text a row."""
    if not fits(grid):
        grid.box, grid.padding = SIMPLE_HEAD, 0
    if fits(grid):
        Console(width=_find_columns() or _GRID_COLUMNS).print(grid)
        return
    if grid.title is not None:
        echo(str(grid.title))
    for row in grid.describe_rows():
        echo(row)


def print_page(page: str) -> None:
    """Prints a page of Markdown: its tables as grids, all else as lines."""
    from rich.markdown import Markdown

    rows: list[list[str]] = []
    numeric: set[int] = set()
    bullet = ""
    for place, token in enumerate(Markdown(page).parsed):
        if token.type == "heading_open" and place:
            echo()
        elif token.type in ("list_item_open", "list_item_close"):
            bullet = "- " if token.type == "list_item_open" else ""
        elif token.type == "tr_open":
            rows.append([])
        elif token.type == "th_open" and "right" in str(token.attrGet("style")):
            numeric.add(len(rows[0]))
        elif token.type == "inline":
            pieces = token.children or ()
            text = "".join(" " if piece.type == "softbreak" else piece.content for piece in pieces)
            if rows:
                rows[-1].append(text)
            else:
                echo(f"{bullet}{text}")
        elif token.type == "table_close":
            _print_table(rows, numeric)
            rows, numeric = [], set()


def _print_table(rows: Sequence[Sequence[str]], numeric: Collection[int]) -> None:
    """Prints a table of a page, of which the first row is heads; without these, as lines."""
    heads, *others = rows
    if not any(heads):
        for name, *values in others:
            echo(f"{name}: {', '.join(values)}")
        return
    marks = (">" if place in numeric else "" for place in range(len(heads) - 1))
    grid = Grid(*(f"{mark}{head}" for mark, head in zip((*marks, "~"), heads, strict=True)))
    for row in others:
        grid.add_row(*row)
    print_grid(grid)


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
