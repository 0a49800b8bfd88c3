"""How a rehearsal looks in a terminal."""

from typing import TYPE_CHECKING

from backfill_engine.cli.options import print_grid
from backfill_engine.cli.terminal import Grid, echo, write_text
from backfill_engine.extras.rehearsal.records import describe_columns
from backfill_engine.orchestration.instance.ranges import shorten

if TYPE_CHECKING:
    from rich.text import Text

    from backfill_engine.extras.rehearsal.records import (
        Rehearsal,
        RehearsedPartition,
        RehearsedTable,
    )

_LISTED = 31


def print_rehearsal(found: "Rehearsal") -> None:
    """Prints a grid for each table, what is beyond the gates, and what to do next."""
    for table in found.tables:
        _print_table(table)
    for what in shorten(list(found.exceeded), _LISTED):
        echo(f"beyond the gates: {what}")
    if found.kept:
        echo(f"the rehearsed tables are below {found.kept}")
    if any(one.differs for table in found.tables for one in table.partitions):
        echo(f"to publish just this: backfill-assets apply {found.rehearsal_id[:8]}")
    else:
        echo("publishing it would change nothing")


def _print_table(table: "RehearsedTable") -> None:
    listed = [one for one in table.partitions if one.differs or one.withheld]
    same = len(table.partitions) - len(listed)
    title = f"{table.table}: {len(table.partitions)} partitions, {same} as published"
    grid = Grid("partition", title=title, title_justify="left")
    for name in ("rows before", "rows", "added", "removed", "changed"):
        grid.add_column(name, justify="right")
    grid.add_column("changed most")
    for one in listed[:_LISTED]:
        grid.add_row(one.partition, *_count(one), one.withheld or describe_columns(one))
    if not listed:
        echo(title)
        return
    print_grid(grid, width=160)
    if len(listed) > _LISTED:
        echo(f"and {len(listed) - _LISTED} more: --json lists all")


def _count(one: "RehearsedPartition") -> "list[str | Text]":
    if one.diff is None:
        return ["", write_text("withheld", "red"), "", "", ""]
    counts = (one.diff.rows_before, one.diff.rows_after, one.diff.added, one.diff.removed)
    return [f"{count:,}" for count in (*counts, one.diff.changed)]
