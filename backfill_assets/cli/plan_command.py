"""`plan`: what a backfill would do, before anything runs; `launch`: asks Dagster for just that."""

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from backfill_assets.cli.options import (
    AsJson,
    First,
    Last,
    Select,
    default_dagster_home,
    print_grid,
    print_json,
)
from backfill_assets.errors import SettingsError
from backfill_assets.settings import read_settings

if TYPE_CHECKING:
    from dagster import DagsterInstance

    from backfill_assets.health.estimates import Estimate
    from backfill_assets.orchestration.plans import Plan, TablePlan

_LISTED = 20
_FEWEST_STEPS = 3
_ONLY_HELP = "Which of them: all, missing, failed or withheld (the same), or stale."


def plan(
    first: First,
    last: Last,
    select: Select = None,
    only: Annotated[str, typer.Option(help=_ONLY_HELP)] = "all",
    downstream: Annotated[  # noqa: FBT002 (an option)
        bool, typer.Option(help="Also what else was computed from them.")
    ] = False,
    as_json: AsJson = False,  # noqa: FBT002 (an option)
) -> None:
    """Show what a backfill would do: partitions and why, runs, commits, bytes, time, conflicts.

    Nothing is written and nothing runs. Durations are those of earlier runs, by their certificates
    of the last 90 days.
    """
    with _open_instance() as instance:
        found = _make_plan(instance, select, first, last, only)
    if as_json:
        print_json(found)
        return
    _print_plan(found)
    if downstream:
        for key, ranges in found.downstream.items():
            listed = ", ".join(f"{start}...{end}" for start, end in ranges[:_LISTED])
            typer.echo(f"downstream, at most: {key} {listed}")
        if not found.downstream:
            typer.echo("downstream: nothing else was computed from them")
    _print_commands(found)


def launch(
    first: First,
    last: Last,
    select: Select = None,
    only: Annotated[str, typer.Option(help=_ONLY_HELP)] = "all",
    reason: Annotated[str, typer.Option(help="Why; a tag of the backfill and of its runs.")] = "",
    priority: Annotated[int, typer.Option(help="In the run queue; others have 0.")] = 0,
    yes: Annotated[bool, typer.Option("--yes", help="Don't ask.")] = False,  # noqa: FBT002 (an option)
) -> None:
    """Show the plan, and ask Dagster for a backfill of just these partitions.

    It is on the Backfills page of the UI then, and Dagster's daemon carries it out: the tables that
    others read first, one run for each contiguous range of a table. Refused while other runs are at
    work on any of the partitions.
    """
    from backfill_assets.definitions import defs
    from backfill_assets.orchestration.launching import request_planned

    with _open_instance() as instance:
        found = _make_plan(instance, select, first, last, only)
        _print_plan(found)
        if not any(table.partitions for table in found.tables):
            return
        if not yes:
            typer.confirm("launch it?", abort=True)
        graph = defs.get_repository_def().asset_graph
        launched = request_planned(instance, graph, found, reason=reason, priority=priority)
    typer.echo(f"requested backfill {launched.backfill_id}: {launched.title}")
    if not launched.has_daemon:
        typer.echo(
            "no daemon is running in this Dagster home: it waits for `dagster dev`, or for "
            "`dagster-daemon run`",
            err=True,
        )


def _open_instance() -> "DagsterInstance":
    default_dagster_home()
    from dagster import DagsterInstance

    return DagsterInstance.get()


def _make_plan(
    instance: "DagsterInstance", select: str | None, first: str, last: str, only: str
) -> "Plan":
    from backfill_assets.definitions import defs
    from backfill_assets.lake.warehouse import Warehouse
    from backfill_assets.orchestration.plans import Only, open_planner
    from backfill_assets.orchestration.selections import select_tables
    from backfill_assets.pipelines import list_recipes

    if only not in set(Only):
        raise SettingsError(f"--only {only}: choose one of {', '.join(Only)}")
    settings, graph = read_settings(), defs.get_repository_def().asset_graph
    now = datetime.now(tz=UTC)
    tables = select_tables(Warehouse(settings.warehouse), select, first=first, last=last)
    planner = open_planner(instance, graph, list_recipes(), settings, tables=tables, now=now)
    return planner.plan(tables, first=first, last=last, only=Only(only))


def _print_plan(found: "Plan") -> None:
    _print_tables(found)
    for table in found.tables:
        _print_remarks(table)


def _print_tables(found: "Plan") -> None:
    from rich.table import Table as Grid

    grid = Grid("table", "now")
    for name in ("partitions", "runs", "commits", "read", "rows", "write", "seconds"):
        grid.add_column(name, justify="right")
    for one in found.tables:
        grid.add_row(
            one.table,
            ", ".join(f"{count:,} {state}" for state, count in one.states.items()),
            f"{one.partitions:,}",
            f"{len(one.ranges):,}",
            f"{one.commits:,}",
            _format_bytes(one.bytes_read),
            f"{one.rows:,}",
            _format_bytes(one.bytes_written),
            _format_seconds(one.seconds),
        )
    print_grid(grid, width=160)


def _print_remarks(table: "TablePlan") -> None:
    from backfill_assets.orchestration.ranges import shorten

    for words, texts in (
        ("stale", table.stale),
        ("can't go yet", table.waits),
        ("runs are at work on", table.at_work),
    ):
        for text in shorten(list(texts), _LISTED):
            typer.echo(f"{words}: {table.table} {text}")
    if table.seconds and table.partitions:
        typer.echo(f"estimate of {table.table}: {_describe_estimate(table.seconds)}")


def _describe_estimate(found: "Estimate") -> str:
    if found.steps < _FEWEST_STEPS:
        return f"by earlier steps: {found.steps}, too few to say how good it is"
    return (
        f"by {found.steps} earlier steps, half of which it would have been off by "
        f"× {found.off_by:.2f} at most"
    )


def _print_commands(found: "Plan") -> None:
    from backfill_assets.orchestration.ranges import build_command, join_tables, shorten

    commands = [
        build_command(keys, start, end, {})
        for keys, ranges in join_tables({one.table: one.ranges for one in found.tables})
        for start, end in ranges
    ]
    if not commands:
        typer.echo("nothing is to be run")
        return
    typer.echo("to run it:")
    for command in shorten(commands, _LISTED):
        typer.echo(f"  {command}")


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
