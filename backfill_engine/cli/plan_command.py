"""`plan`: what a backfill would do, before anything runs; `launch`: asks Dagster for just that."""

import shutil
import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from backfill_engine.cli.launch_options import Asked, make_plan
from backfill_engine.cli.location import load_catalog, load_graph
from backfill_engine.cli.options import (
    AsJson,
    Yes,
    confirm,
    open_instance,
    print_grid,
    print_json,
    recover_dead_runs,
)
from backfill_engine.cli.spread_options import spread_options
from backfill_engine.cli.terminal import echo, echo_lines
from backfill_engine.orchestration.runs.option_declarations import Launch, RunOptions

if TYPE_CHECKING:
    from backfill_engine.orchestration.planning.plans import Plan, TablePlan

_LISTED = 20


@spread_options
def plan(
    asked: Asked,
    options: RunOptions,
    as_json: AsJson = False,  # noqa: FBT002 (an option)
) -> None:
    """Show what a backfill would do: partitions and why, runs, commits, bytes, time, conflicts.

    Nothing is written and nothing runs. Durations are by earlier steps, of the certificates of the
    last 90 days. With --chunk, what stands is told apart and not counted.
    """
    options = asked.template.fill_in(options)
    with open_instance() as instance:
        found = make_plan(instance, asked, options)
    if as_json:
        print_json(found)
        return
    print_plan(found, downstream=asked.takes_downstream)
    _print_commands(found, options)


@spread_options
def launch(
    asked: Asked,
    request: Launch,
    max_parallel: Annotated[
        int | None, typer.Option(min=1, help="Runs of it that are at work at once.")
    ] = None,
    priority: Annotated[
        int | None, typer.Option(help="In the run queue; -1 if left out: the daily run has 0.")
    ] = None,
    yes: Yes = False,  # noqa: FBT002 (an option)
    as_json: AsJson = False,  # noqa: FBT002 (an option)
) -> None:
    """Show the plan, and ask Dagster for a backfill of just these partitions.

    It is on the Backfills page of the UI then, and Dagster's daemon carries it out: the tables that
    others read first, one run for each contiguous range of a table. Refused while other runs are at
    work on any of the partitions, or requested, and if any is protected (docs/protection.md). With
    --json its id and the plan are printed as JSON, the question goes to stderr.
    """
    from backfill_engine.orchestration.instance.processes import DAEMON_COMMANDS, NO_DAEMON
    from backfill_engine.orchestration.planning.launching import check_launch, request_planned
    from backfill_engine.orchestration.runs.run_tags import BEHIND_THE_DAILY_RUN

    catalog, template = load_catalog(), asked.template
    ranks = (priority, template.priority, BEHIND_THE_DAILY_RUN)
    request = template.fill_in(request).model_copy(
        update={
            "priority": next(rank for rank in ranks if rank is not None),
            "max_parallel": max_parallel or template.max_parallel,
        }
    )
    with open_instance() as instance:
        recover_dead_runs(instance)
        found = make_plan(instance, asked, request)
        if not as_json:
            print_plan(found, downstream=asked.takes_downstream)
        check_launch(catalog, found, request)
        launched = None
        if any(table.partitions for table in found.tables):
            if not yes:
                confirm("launch it?", is_aside=as_json)
            launched = request_planned(catalog, instance, load_graph(), found, request)
    if as_json:
        print_json(
            {
                "backfill_id": launched.backfill_id if launched else "",
                "title": launched.title if launched else "",
                "plan": asdict(found),
            }
        )
    elif launched:
        echo(f"requested backfill {launched.backfill_id}: {launched.title}")
    if launched and not launched.has_daemon:
        echo(f"{NO_DAEMON}: it waits for {DAEMON_COMMANDS}", err=True)


def _print_commands(found: "Plan", options: RunOptions) -> None:
    from backfill_engine.orchestration.instance.ranges import build_command, join_tables, shorten
    from backfill_engine.orchestration.planning.launching import bound_rows
    from backfill_engine.orchestration.runs.run_options import build_options_config

    catalog = load_catalog()
    if found.row_filter:
        merging = options.model_copy(update={"write_mode": "merge"})
        options = bound_rows(catalog, found, merging)
    commands = [
        build_command(catalog, keys, start, end, build_options_config(keys, options))
        for keys, ranges in join_tables({one.table: one.ranges for one in found.tables})
        for start, end in ranges
    ]
    if not commands:
        echo("nothing is to be run")
        return
    echo("to run it:")
    for command in shorten(commands, _LISTED):
        echo(f"  {command}")


_RANGES_LISTED = 20
_GRID_WIDTH = 152  # Characters; a narrower one cuts the names of tables.


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
        echo(f"all tables, one after the other: {found.total:,.0f} s, by earlier steps")
    if downstream:
        for key, ranges in found.downstream.items():
            listed = ", ".join(f"{start}...{end}" for start, end in ranges[:_RANGES_LISTED])
            echo(f"downstream, at most: {key} {listed}")
        if not found.downstream:
            echo("downstream: nothing else was computed from them")
    if found.row_filter:
        echo(f"only rows with {found.row_filter}; the others stay as they are published")


def _print_tables(found: "Plan") -> None:
    from backfill_engine.cli.terminal import Grid

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
            "no earlier step" if one.seconds is None else f"{one.seconds:,.0f}",
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
        for text in shorten(list(texts), _RANGES_LISTED):
            echo(f"{words}: {table.table} {text}")
    if table.stands:
        echo(
            f"{table.stands:,} stand as they are: {table.table}, of {table.partitions:,} "
            "partitions; published from the same inputs by the same code, and not counted"
        )


def _format_bytes(count: int) -> str:
    size, unit = float(count), "B"
    for larger in ("kB", "MB", "GB", "TB"):
        if size < 1000:
            break
        size, unit = size / 1000, larger
    return f"{size:,.0f} {unit}" if size >= 10 or unit == "B" else f"{size:,.1f} {unit}"
