"""`plan`: what a backfill would do, before anything runs."""

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
from backfill_assets.settings import read_settings

if TYPE_CHECKING:
    from backfill_assets.health.estimates import Estimate
    from backfill_assets.orchestration.plans import Plan, TablePlan

_LISTED = 20


def plan(
    first: First,
    last: Last,
    select: Select = None,
    only: Annotated[
        str, typer.Option(help="Which of them: all, missing, failed (or withheld) or stale.")
    ] = "all",
    downstream: Annotated[  # noqa: FBT002 (an option)
        bool, typer.Option(help="Also what was computed from them, of tables not selected.")
    ] = False,
    as_json: AsJson = False,  # noqa: FBT002 (an option)
) -> None:
    """Show what a backfill would do: partitions and why, runs, commits, bytes, time, conflicts.

    Nothing is written and nothing runs. Durations are those of earlier runs, by their certificates
    of the last 90 days.
    """
    from backfill_assets.orchestration.plans import Only

    if only not in set(Only):
        listed = ", ".join(Only)
        raise typer.BadParameter(f"{only} is none of {listed}", param_hint="--only")
    found = _make_plan(select, first, last, only)
    if as_json:
        print_json(found)
        return
    _print_tables(found)
    for table in found.tables:
        _print_remarks(table)
    if downstream:
        for key, ranges in found.downstream.items():
            listed = ", ".join(f"{start}...{end}" for start, end in ranges[:_LISTED])
            typer.echo(f"downstream, at most: {key} {listed}")
        if not found.downstream:
            typer.echo("downstream: nothing else was computed from them")
    _print_commands(found)


def _make_plan(select: str | None, first: str, last: str, only: str) -> "Plan":
    default_dagster_home()
    from dagster import DagsterInstance

    from backfill_assets.definitions import defs
    from backfill_assets.orchestration.plans import Only, open_planner
    from backfill_assets.orchestration.selections import select_tables
    from backfill_assets.pipelines import list_recipes

    settings, graph = read_settings(), defs.get_repository_def().asset_graph
    with DagsterInstance.get() as instance:
        now = datetime.now(tz=UTC)
        planner = open_planner(instance, graph, list_recipes(), settings, now=now)
        tables = select_tables(planner.warehouse, select, first=first, last=last)
        return planner.plan(tables, first=first, last=last, only=Only(only))


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
        typer.echo(
            f"estimate of {table.table}: by {table.seconds.steps} earlier steps, half of which it "
            f"would have been off by × {table.seconds.off_by:.2f} at most"
        )


def _print_commands(found: "Plan") -> None:
    from backfill_assets.orchestration.ranges import build_command, shorten

    ranges: dict[tuple[str, str], list[str]] = {}
    for table in found.tables:
        for one in table.ranges:
            ranges.setdefault(one, []).append(table.table)
    if not ranges:
        typer.echo("nothing is to be run")
        return
    typer.echo("to run it:")
    commands = [build_command(keys, start, end, {}) for (start, end), keys in ranges.items()]
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
