"""`status --withheld`: rows of withheld partitions, and rejected records, as grids."""

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

from backfill_engine.cli.location import find_partitions, load_catalog, select_tables
from backfill_engine.cli.terminal import Grid, echo, fits, print_grid

if TYPE_CHECKING:
    from backfill_engine.lake.side_tables import KeptAside


def read_kept_aside(select: str | None, first: str, last: str, most: int) -> "list[KeptAside]":
    """Reads what is kept aside of a range of the selected tables, `most` rows of each kind."""
    from backfill_engine.lake import side_tables

    warehouse = load_catalog().warehouse
    warehouse.check_root()
    return [
        kept
        for table in select_tables(select, first, last)
        for kept in side_tables.read_kept_aside(
            warehouse, table, find_partitions(table, first, last), most=most
        )
    ]


def print_kept_aside(kept_aside: "Sequence[KeptAside]") -> None:
    """Prints a grid for each partition, run and reason, with the columns that fit."""
    for kept in kept_aside:
        if kept.count:
            echo(f"{kept.count:,} {kept.what} in {kept.table}")
        for why, rows in groupby(kept.rows, key=_describe_why_kept):
            echo(f"  {why}")
            _print_rows(list(rows))
        if 0 < len(kept.rows) < kept.count:
            echo(f"and {kept.count - len(kept.rows):,} more: --most shows more")
    if not any(kept.count for kept in kept_aside):
        echo("nothing is kept aside of these partitions")


_WHY_KEPT = ("partition_key", "source_file", "reason", "run_id", "withheld_on", "rejected_on")
_LONG = 30
"""Characters of a cell from which on it may be broken."""


def _describe_why_kept(row: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {row[name]}" for name in _WHY_KEPT if name in row)


def _print_rows(rows: Sequence[Mapping[str, Any]]) -> None:
    """Prints rows with the first of their columns that fit, and says which others they have."""
    names = [name for name in rows[0] if name not in _WHY_KEPT]
    long = {name for name in names if any(len(str(row[name])) > _LONG for row in rows)}
    grid = Grid()
    for shown in range(len(names), 0, -1):
        grid = Grid(*(f"~{name}" if name in long else name for name in names[:shown]))
        for row in rows:
            grid.add_row(*("" if row[name] is None else str(row[name]) for name in names[:shown]))
        if fits(grid):
            break
    print_grid(grid)
    if others := names[len(grid.columns) :]:
        echo(f"  and {', '.join(others)}: --json has them")
