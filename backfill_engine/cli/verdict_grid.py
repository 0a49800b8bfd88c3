"""How the verdicts of `run` look."""

from typing import TYPE_CHECKING

from backfill_engine.cli.grids import Grid, write_text
from backfill_engine.cli.options import print_grid
from backfill_engine.cli.terminal import echo, echo_lines

if TYPE_CHECKING:
    from backfill_engine.orchestration.backfills.backfill_outcomes import Verdicts

_LISTED = 7
_COLOURS = {"withheld": "red", "failed": "red"}


def print_verdicts(found: "Verdicts") -> None:
    """Prints a row for what was published of each table, and one for each reason it was not.

    The last line says how much was published, and how much was left as up to date.
    """
    if found.tables:
        print_grid(build_grid(found), width=140)
    for error in found.errors:
        echo_lines(error, err=True)
    if not found.run_id:
        echo("cancelled before a run was made; nothing was published")
        return
    echo(f"`backfill-assets certificate {found.run_id[:8]}` has what was done")
    if found.state == "paused":
        echo("to go on:")
        for command in found.commands:
            echo(f"  {command}")
        echo("  the same command again; what is published stays as it is")
    elif found.commands:
        echo("next, once the cause is mended:")
        for command in found.commands:
            echo(f"  {command}")
    counts = ", ".join(
        f"{one.published:,} of {one.partitions:,} of {one.table}" for one in found.tables
    )
    said = "published:" if found.state == "published" else f"{found.state}: published"
    echo(f"{said} {counts}{_describe_left(found)}")


def print_idle(found: "Verdicts") -> None:
    """Prints that nothing is to be run, and how much is up to date, where somebody looked."""
    echo(f"nothing is to be run{_describe_left(found)}")


def _describe_left(found: "Verdicts") -> str:
    return f"; {found.up_to_date:,} left as up to date" if found.up_to_date else ""


def build_grid(found: "Verdicts") -> Grid:
    """Builds the grid: table, verdict, how many partitions, and which or why."""
    from backfill_engine.orchestration.instance.ranges import shorten

    grid = Grid("table", "verdict", "count", "which, and why")
    for column in grid.columns[:3]:
        column.no_wrap = True
    grid.columns[2].justify = "right"
    grid.columns[3].overflow = "fold"
    for table in found.tables:
        name = table.table
        if table.published:
            ranges = ", ".join(shorten(table.published_ranges, _LISTED))
            verdict = write_text("published", "green")
            grid.add_row(name, verdict, f"{table.published:,}", ranges)
            name = ""
        if table.up_to_date:
            why = "published before from the same inputs by the same code, left as they are"
            grid.add_row(name, "up to date", f"{table.up_to_date:,}", why)
            name = ""
        for one in table.held_back:
            verdict = write_text(one["status"], _COLOURS.get(one["status"], "yellow"))
            grid.add_row(name, verdict, f"{one['partitions']:,}", "\n".join(one["reasons"]))
            name = ""
    return grid
