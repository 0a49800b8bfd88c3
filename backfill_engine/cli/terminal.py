"""What goes to the terminal: each text on its way there loses what would steer the terminal.

Nothing else calls `typer.echo`. Grids have `cli/grids.py`, as rich takes its time to import.
"""

from typing import Any, TextIO

import typer
from rich.console import RenderableType
from rich.table import Table  # noqa: TID251
from rich.text import Text

from backfill_engine.escaping import escape_hidden


def echo(line: str = "", *, err: bool = False, file: TextIO | None = None) -> None:
    """Prints a line; what breaks it comes from data, and is written as Python would."""
    typer.echo(escape_hidden(line, keep="\t"), file=file, err=err)  # noqa: TID251


def echo_lines(text: str, *, err: bool = False) -> None:
    """Prints a text of several lines."""
    typer.echo(escape_hidden(text), err=err)  # noqa: TID251


class Grid(Table):
    """A grid of rich; of what it is given as `str` nothing is read as markup."""

    def __init__(self, *heads: str, title: str | None = None, **looks: Any) -> None:
        """Begins a grid, as rich does."""
        super().__init__(*heads, title=None if title is None else write_text(title), **looks)

    def add_column(self, header: RenderableType = "", *others: Any, **looks: Any) -> None:
        """Adds a column, as rich does."""
        head = write_text(header) if isinstance(header, str) else header
        super().add_column(head, *others, **looks)

    def add_row(self, *cells: RenderableType | None, **looks: Any) -> None:
        """Adds a row, as rich does."""
        super().add_row(
            *(write_text(cell) if isinstance(cell, str) else cell for cell in cells), **looks
        )


def write_text(text: str, colour: str = "") -> Text:
    """Writes text as it is, in a colour."""
    return Text(escape_hidden(text), style=colour)
