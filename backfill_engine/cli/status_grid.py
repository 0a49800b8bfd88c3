"""How `status` looks: what partitions hold, when each was tried last, why it came to nothing."""

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from rich.box import SIMPLE_HEAD

from backfill_engine.cli.grids import Grid, write_text
from backfill_engine.cli.location import load_catalog
from backfill_engine.cli.options import is_too_wide, print_grid, print_line

if TYPE_CHECKING:
    from rich.text import Text

    from backfill_engine.orchestration.status.partition_statuses import PartitionStatus

_TITLE = "rows, status and Delta version by partition and table"
_COLOURS = {"materialized": "green", "failed": "red", "changed": "red"}
_LISTED = 20
"""Reasons of a table: a year of them is for --json."""


def print_statuses(statuses: "Sequence[PartitionStatus]") -> None:
    """Prints partitions by tables, or of one table with times; then why some are not published."""
    tables = list(dict.fromkeys(one.table for one in statuses))
    if len(tables) == 1:
        print_grid(build_table_grid(statuses), width=120)
    else:
        grid = _build_grid(statuses, tables)
        if is_too_wide(grid):
            grid = _build_narrow_grid(statuses, tables)
        print_grid(grid, width=30 + 34 * len(tables))
    for table in tables:
        for line in describe_errors(table, statuses):
            print_line(line)


def build_table_grid(statuses: "Sequence[PartitionStatus]") -> Grid:
    """Builds the grid of one table, with when the last attempt at each partition was (UTC)."""
    grid = Grid(title=f"{statuses[0].table}, and the last attempt at each partition (UTC)")
    for name in ("partition", "rows", "status", "version", "started", "completed"):
        right = name in ("rows", "version")
        grid.add_column(name, justify="right" if right else "left", no_wrap=name == "partition")
    for one in statuses:
        times = _format_times(one.started, one.completed)
        grid.add_row(one.partition, *_format_cells(one), *times)
    grid.add_section()
    grid.add_row("all", f"{_sum_rows(statuses, statuses[0].table):,}")
    return grid


def describe_errors(table: str, statuses: "Sequence[PartitionStatus]") -> list[str]:
    """Says why the last attempt at partitions came to nothing, each reason once with its ranges."""
    from backfill_engine.orchestration.instance.partition_definitions import find_partitions_def
    from backfill_engine.orchestration.instance.ranges import describe_ranges, shorten

    catalog = load_catalog()
    errors = {one.partition: one.error for one in statuses if one.table == table and one.error}
    partitions_def = find_partitions_def(catalog.find_table(table))
    lines = shorten(describe_ranges(partitions_def, errors), _LISTED)
    return [f"{table} {line}" for line in lines]


def _build_grid(statuses: "Sequence[PartitionStatus]", tables: Sequence[str]) -> Grid:
    by_cell = {(status.partition, status.table): status for status in statuses}
    grid = Grid("partition", title=_TITLE)
    for table in tables:
        grid.add_column(table, justify="right")
    for partition in dict.fromkeys(status.partition for status in statuses):
        grid.add_row(partition, *(_format_cell(by_cell[partition, table]) for table in tables))
    grid.add_section()
    grid.add_row("all", *(f"{_sum_rows(statuses, table):,} rows" for table in tables))
    return grid


def _build_narrow_grid(statuses: "Sequence[PartitionStatus]", tables: Sequence[str]) -> Grid:
    """Builds it with the tables of a partition below each other."""
    by_cell = {(status.partition, status.table): status for status in statuses}
    grid = Grid(title=_TITLE, box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for name in ("partition", "table", "rows", "status", "version"):
        right = name in ("rows", "version")
        grid.add_column(
            name,
            justify="right" if right else "left",
            no_wrap=name != "table",
            overflow="fold",
        )
    for partition in dict.fromkeys(status.partition for status in statuses):
        for table in tables:
            shown = partition if table == tables[0] else ""
            grid.add_row(shown, table, *_format_cells(by_cell[partition, table]))
    grid.add_section()
    for table in tables:
        shown = "all" if table == tables[0] else ""
        grid.add_row(shown, table, f"{_sum_rows(statuses, table):,}")
    return grid


def _format_cell(status: "PartitionStatus") -> "Text":
    cells = (write_text(cell) if isinstance(cell, str) else cell for cell in _format_cells(status))
    return write_text(" ").join(cell for cell in cells if cell)


def _format_cells(status: "PartitionStatus") -> "tuple[str, Text, str]":
    """Rows, status and version; two of them empty if nothing is published."""
    if status.version is None:
        return "", _colour(status.status), ""
    return f"{status.rows:,}", _colour(status.status), f"v{status.version}"


def _format_times(started: str, completed: str) -> tuple[str, str]:
    """To the second; the day of the second only where it is another one."""
    begin, end = (datetime.fromisoformat(one) if one else None for one in (started, completed))
    same_day = begin and end and begin.date() == end.date()
    return (
        f"{begin:%Y-%m-%d %H:%M:%S}" if begin else "",
        (f"{end:%H:%M:%S}" if same_day else f"{end:%Y-%m-%d %H:%M:%S}") if end else "",
    )


def _colour(status: str) -> "Text":
    colour = _COLOURS.get(status, "yellow")
    return write_text(status, colour)


def _sum_rows(statuses: "Sequence[PartitionStatus]", table: str) -> int:
    return sum(status.rows or 0 for status in statuses if status.table == table)
