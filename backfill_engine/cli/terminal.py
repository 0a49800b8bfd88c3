"""What goes to the terminal: each text on its way there loses what would steer the terminal.

Nothing else calls `typer.echo`. Grids have `cli/grids.py`, as rich takes its time to import.
"""

import typer

from backfill_engine.escaping import escape_hidden


def echo(line: str = "", *, err: bool = False) -> None:
    """Prints a line; what breaks it comes from data, and is written as Python would."""
    typer.echo(escape_hidden(line, keep="\t"), err=err)  # noqa: TID251


def echo_lines(text: str, *, err: bool = False) -> None:
    """Prints a text of several lines."""
    typer.echo(escape_hidden(text), err=err)  # noqa: TID251
