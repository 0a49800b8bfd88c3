"""`plan`: what a backfill would do, before anything runs; `launch`: asks Dagster for just that."""

from dataclasses import asdict
from typing import TYPE_CHECKING

from backfill_engine.cli.launch_options import PartitionOptions, add_origin, make_plan
from backfill_engine.cli.location import load_catalog, load_graph, open_instance
from backfill_engine.cli.options import AsJson, MaxParallel, Priority, Yes, spread_options
from backfill_engine.cli.terminal import (
    Grid,
    confirm,
    echo,
    echo_commands,
    print_grid,
    print_json,
)
from backfill_engine.orchestration.runs.option_declarations import Launch, RunOptions

if TYPE_CHECKING:
    from backfill_engine.orchestration.planning.plans import Plan, TablePlan

_LISTED = 20


@spread_options
def plan(
    partitions: PartitionOptions,
    request: Launch,
    max_parallel: MaxParallel = None,
    priority: Priority = None,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Show what a backfill would do: partitions and why, runs, commits, bytes, time, conflicts.

    Nothing is written and nothing runs. Durations are by the steps of the last 90 days. With
    --chunk, what stands is told apart and not counted.

    Example: backfill-assets plan --from 2013-01-01 --to 2013-01-31 --only stale
    """
    del yes  # nothing is asked
    request = _complete(partitions, request, max_parallel, priority)
    with open_instance() as instance:
        found = make_plan(instance, partitions, request)
    if as_json:
        print_json(found)
        return
    print_plan(found, downstream=partitions.takes_downstream)
    _print_commands(found, request)


@spread_options
def launch(
    partitions: PartitionOptions,
    request: Launch,
    max_parallel: MaxParallel = None,
    priority: Priority = None,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Show the plan, and ask Dagster for a backfill of just these partitions.

    Dagster's daemon carries it out, a run for each contiguous range of a table. Refused while other
    runs are at work on any of the partitions, or requested, and if any is protected.

    Example: backfill-assets launch --from 2013-01-01 --to 2013-01-31
    """
    from backfill_engine.orchestration.instance.processes import DAEMON_COMMANDS, NO_DAEMON
    from backfill_engine.orchestration.planning.launching import request_planned

    catalog, request = load_catalog(), _complete(partitions, request, max_parallel, priority)
    with open_instance() as instance:
        found = make_plan(instance, partitions, request, recovers=True)
        takes_downstream = partitions.takes_downstream
        checked = agree_on(
            found, request, "launch it?", downstream=takes_downstream, yes=yes, as_json=as_json
        )
        launched = None
        if checked is not None:
            launched = request_planned(catalog, instance, load_graph(), found, add_origin(request))
    backfill_id, title = (launched.backfill_id, launched.title) if launched else ("", "")
    if as_json:
        print_json({"backfill_id": backfill_id, "title": title, "plan": asdict(found)})
    elif launched:
        echo(f"requested backfill {backfill_id}: {title}")
    if launched and not launched.has_daemon:
        echo(f"{NO_DAEMON}: it waits for {DAEMON_COMMANDS}", err=True)


def _complete(
    partitions: PartitionOptions, request: Launch, max_parallel: int | None, priority: int | None
) -> Launch:
    """Completes what is asked by the template, and by what runs have where nobody says."""
    from backfill_engine.orchestration.runs.run_tags import BEHIND_THE_DAILY_RUN

    template = partitions.template
    ranks = (priority, template.priority, BEHIND_THE_DAILY_RUN)
    return template.fill_in(request).model_copy(
        update={
            "priority": next(rank for rank in ranks if rank is not None),
            "max_parallel": max_parallel or template.max_parallel,
        }
    )


def agree_on(
    plan: "Plan", request: Launch, question: str, *, downstream: bool, yes: bool, as_json: bool
) -> Launch | None:
    """Prints a plan, checks that it may go, and asks a person unless that is answered beforehand.

    Returns:
        The request as it was checked; None if nothing is to be run.

    Raises:
        BackfillError: if it may not go.
    """
    from backfill_engine.orchestration.planning.launching import bound_rows, check_launch

    if plan.row_filter:
        bound_rows(load_catalog(), plan, request)
    if not as_json:
        print_plan(plan, downstream=downstream)
    checked = check_launch(load_catalog(), plan, request)
    if not any(table.partitions for table in plan.tables):
        return None
    if not yes:
        confirm(question, is_aside=as_json)
    return checked


def _print_commands(found: "Plan", options: Launch) -> None:
    from backfill_engine.orchestration.instance.ranges import build_command, join_tables, shorten
    from backfill_engine.orchestration.planning.launching import bound_rows
    from backfill_engine.orchestration.runs.run_options import build_options_config

    catalog = load_catalog()
    if found.row_filter:
        merging = options.model_copy(update={"write_mode": "merge"})
        options = bound_rows(catalog, found, merging)
    commands = [
        build_command(catalog, keys, start, end, build_options_config(keys, options))
        for keys, ranges in join_tables({table.table: table.ranges for table in found.tables})
        for start, end in ranges
    ]
    if not commands:
        echo("nothing is to be run")
    echo_commands("to run it:", shorten(commands, _LISTED))
    if commands and options.model_dump(
        exclude={*RunOptions.model_fields, "priority"}, exclude_defaults=True
    ):
        echo("these can't be told all: `backfill-assets launch` takes the same options")


def print_plan(found: "Plan", *, downstream: bool) -> None:
    """Prints a grid of the tables, and what there is to remark of each.

    Args:
        found: the plan.
        downstream: whether what was computed from the selected partitions is part of it.
    """
    _print_tables(found)
    for table in found.tables:
        _print_remarks(table)
    if found.total and sum(table.partitions > 0 for table in found.tables) > 1:
        echo(f"all tables, one after the other: {found.total:,.0f} s, by earlier steps")
    if downstream:
        for key, ranges in found.downstream.items():
            listed = ", ".join(f"{start}...{end}" for start, end in ranges[:_LISTED])
            echo(f"downstream, at most: {key} {listed}")
        if not found.downstream:
            echo("downstream: nothing else was computed from them")
    if found.row_filter:
        echo(f"only rows with {found.row_filter}; the others stay as they are published")


def _print_tables(found: "Plan") -> None:
    counts = ("partitions", "runs", "chunks", "commits")
    names = (*counts, "read", "rows read", "rows", "write", "seconds")
    grid = Grid("table", "now", *(f">{name}" for name in names))
    for table in found.tables:
        grid.add_row(
            table.table,
            ", ".join(f"{count:,} {state}" for state, count in table.states.items()),
            f"{table.partitions:,}",
            f"{len(table.ranges):,}",
            f"{table.chunks:,}",
            f"{table.commits:,}",
            _format_bytes(table.bytes_read),
            "?" if table.rows_read is None else f"{table.rows_read:,}",
            f"{table.rows:,}",
            _format_bytes(table.bytes_written),
            "no earlier step" if table.seconds is None else f"{table.seconds:,.0f}",
        )
    print_grid(grid)


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


def _format_bytes(count: int) -> str:
    size, unit = float(count), "B"
    for larger in ("kB", "MB", "GB", "TB"):
        if size < 1000:
            break
        size, unit = size / 1000, larger
    return f"{size:,.0f} {unit}" if size >= 10 or unit == "B" else f"{size:,.1f} {unit}"
