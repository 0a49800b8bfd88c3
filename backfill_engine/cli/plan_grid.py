"""How a plan looks: a grid of its tables, and what there is to remark of each."""

import shutil
import sys
from typing import TYPE_CHECKING

from backfill_engine.cli.options import print_grid
from backfill_engine.cli.terminal import echo, echo_lines

if TYPE_CHECKING:
    from backfill_engine.health.estimates import Estimate
    from backfill_engine.orchestration.planning.plans import Plan, TablePlan

_LISTED = 20
_GRID_WIDTH = 152  # Characters; a narrower one cuts the names of tables.

_FEWEST_STEPS = 3


def print_plan(found: "Plan", *, downstream: bool) -> None:
    """Prints a grid of the tables, and what there is to remark of each.

    Args:
        found: the plan.
        downstream: whether what was computed from the selected partitions is part of it.
    """
    _print_tables(found)
    for table in found.tables:
        _print_remarks(table)
    if found.total and sum(one.partitions > 0 for one in found.tables) > 1:
        total = f"{_format_seconds(found.total)} s, {_describe_total(found.total)}"
        echo(f"all tables, one after the other: {total}")
    if downstream:
        for key, ranges in found.downstream.items():
            listed = ", ".join(f"{start}...{end}" for start, end in ranges[:_LISTED])
            echo(f"downstream, at most: {key} {listed}")
        if not found.downstream:
            echo("downstream: nothing else was computed from them")
    if found.row_filter:
        echo(f"only rows with {found.row_filter}; the others stay as they are published")


def _print_tables(found: "Plan") -> None:
    from backfill_engine.cli.grids import Grid

    counts = ("partitions", "runs", "chunks", "commits")
    names = (*counts, "read", "rows read", "rows", "write", "seconds")
    is_narrow = sys.stdout.isatty() and shutil.get_terminal_size().columns < _GRID_WIDTH
    grid = Grid("table", "now")
    for name in names:
        grid.add_column(name, justify="right")
    for one in found.tables:
        states = ", ".join(f"{count:,} {state}" for state, count in one.states.items())
        cells = [
            f"{one.partitions:,}",
            f"{len(one.ranges):,}",
            f"{one.chunks:,}",
            f"{one.commits:,}",
            _format_bytes(one.bytes_read),
            "?" if one.rows_read is None else f"{one.rows_read:,}",
            f"{one.rows:,}",
            _format_bytes(one.bytes_written),
            _format_seconds(one.seconds),
        ]
        grid.add_row(one.table, states, *cells)
        if is_narrow:
            told = [f"{name} {cell}" for name, cell in zip(names, cells, strict=True)]
            lines = [", ".join(told[: len(counts)]), ", ".join(told[len(counts) :])]
            echo_lines("\n  ".join([f"{one.table}: {states}", *lines]))
    if not is_narrow:
        print_grid(grid, width=172)


def _print_remarks(table: "TablePlan") -> None:
    from backfill_engine.orchestration.instance.ranges import shorten

    for words, texts in (
        ("stale", table.stale),
        ("can't go yet", table.waits),
        ("runs are at work on", table.at_work),
        ("protected", table.protected),
    ):
        for text in shorten(list(texts), _LISTED):
            echo(f"{words}: {table.table} {text}")
    if table.stands:
        echo(
            f"{table.stands:,} stand as they are: {table.table}, of {table.partitions:,} "
            "partitions; published from the same inputs by the same code, and not counted"
        )
    if table.seconds and table.partitions:
        echo(f"estimate of {table.table}: {_describe_estimate(table.seconds)}")


def _describe_estimate(found: "Estimate") -> str:
    if found.foretold:
        return (
            f"by {found.steps} earlier steps; of {found.foretold} estimates of earlier backfills "
            f"half were off by × {found.off_by:.2f} at most"
        )
    if found.steps < _FEWEST_STEPS:
        return f"by earlier steps: {found.steps}, too few to say how good it is"
    return (
        f"by {found.steps} earlier steps, half of which it would have been off by "
        f"× {found.off_by:.2f} at most"
    )


def _describe_total(found: "Estimate") -> str:
    if not found.foretold and found.steps < _FEWEST_STEPS:
        return "by too few earlier steps to say how good it is"
    earlier = "estimates of earlier backfills" if found.foretold else "steps"
    return f"off by × {found.off_by:.2f} at most if each is as half of its {earlier} were"


def _format_bytes(count: int) -> str:
    size, unit = float(count), "B"
    for larger in ("kB", "MB", "GB", "TB"):
        if size < 1000:
            break
        size, unit = size / 1000, larger
    return f"{size:,.0f} {unit}" if size >= 10 or unit == "B" else f"{size:,.1f} {unit}"


def _format_seconds(found: "Estimate | None") -> str:
    if found is None:
        return "no earlier step"
    return f"{found.seconds:,.0f} ({found.low:,.0f} to {found.high:,.0f})"
