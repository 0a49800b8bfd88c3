"""`plan`: what a backfill would do, before anything runs; `launch`: asks Dagster for just that."""

import shutil
import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from backfill_assets.cli.launch_options import (
    AllowNewCode,
    Asked,
    BoundedColumn,
    Chunk,
    Downstream,
    End,
    FirstOrAll,
    KeepGoing,
    LastOrAll,
    OnlyThese,
    OverrideProtection,
    Reason,
    Restart,
    RowFilter,
    SaveWatermark,
    SparkRemote,
    Start,
    Strict,
    TemplateName,
    Window,
    WriteModeName,
    Yes,
    make_plan,
    merge_options,
)
from backfill_assets.cli.options import (
    AsJson,
    Select,
    confirm,
    load_graph,
    open_instance,
    print_grid,
    print_json,
)
from backfill_assets.cli.templates import read_template
from backfill_assets.settings import read_settings

if TYPE_CHECKING:
    from backfill_assets.health.estimates import Estimate
    from backfill_assets.orchestration.planning.plans import Plan, TablePlan

_LISTED = 20
_GRID_WIDTH = 140  # Characters; a narrower one cuts the names of tables.

_FEWEST_STEPS = 3
_BEHIND_THE_DAILY_RUN = -1


def plan(
    first: FirstOrAll = None,
    last: LastOrAll = None,
    start: Start = None,
    end: End = None,
    column: BoundedColumn = None,
    strict: Strict = False,  # noqa: FBT002 (an option)
    select: Select = None,
    only: OnlyThese = None,
    downstream: Downstream = None,
    template: TemplateName = None,
    chunk: Chunk = None,
    as_json: AsJson = False,  # noqa: FBT002 (an option)
) -> None:
    """Show what a backfill would do: partitions and why, runs, commits, bytes, time, conflicts.

    Nothing is written and nothing runs. Durations are those of earlier runs, by their certificates
    of the last 90 days.
    """
    chosen = read_template(template, read_settings().templates)
    asked = Asked(
        select=select,
        first=first,
        last=last,
        start=start,
        end=end,
        column=column,
        strict=strict,
        only=only,
        downstream=downstream,
        template=chosen,
    )
    with open_instance() as instance:
        found = make_plan(instance, asked, chunk=chunk or chosen.chunk)
    if as_json:
        print_json(found)
        return
    print_plan(found, downstream=asked.takes_downstream)
    _print_commands(found, chunk=chunk or chosen.chunk)


def launch(
    first: FirstOrAll = None,
    last: LastOrAll = None,
    start: Start = None,
    end: End = None,
    column: BoundedColumn = None,
    strict: Strict = False,  # noqa: FBT002 (an option)
    select: Select = None,
    only: OnlyThese = None,
    downstream: Downstream = None,
    template: TemplateName = None,
    chunk: Chunk = None,
    restart: Restart = None,
    keep_going: KeepGoing = None,
    window: Window = None,
    write_mode: WriteModeName = None,
    row_filter: RowFilter = None,
    save_watermark: SaveWatermark = None,
    max_parallel: Annotated[
        int | None, typer.Option(min=1, help="Runs of it that are at work at once.")
    ] = None,
    priority: Annotated[
        int | None, typer.Option(help="In the run queue; -1 if left out: the daily run has 0.")
    ] = None,
    reason: Reason = "",
    override_protection: OverrideProtection = "",
    allow_new_code: AllowNewCode = "",
    spark_remote: SparkRemote = None,
    yes: Yes = False,  # noqa: FBT002 (an option)
    as_json: AsJson = False,  # noqa: FBT002 (an option)
) -> None:
    """Show the plan, and ask Dagster for a backfill of just these partitions.

    It is on the Backfills page of the UI then, and Dagster's daemon carries it out: the tables that
    others read first, one run for each contiguous range of a table. Refused while other runs are at
    work on any of the partitions, or requested, and if any is protected (docs/protection.md). With
    --json its id and the plan are printed as JSON, the question goes to stderr.
    """
    from backfill_assets.orchestration.instance.daemons import DAEMON_COMMANDS, NO_DAEMON
    from backfill_assets.orchestration.planning.launching import (
        Launch,
        check_launch,
        request_planned,
    )

    chosen = read_template(template, read_settings().templates)
    asked = Asked(
        select=select,
        first=first,
        last=last,
        start=start,
        end=end,
        column=column,
        strict=strict,
        only=only,
        downstream=downstream,
        template=chosen,
    )
    given = {
        "chunk": chunk,
        "restart": restart,
        "keep_going": keep_going,
        "window": window,
        "write_mode": write_mode,
        "filter": row_filter,
        "save_watermark": save_watermark,
    }
    ranks = (priority, chosen.priority, _BEHIND_THE_DAILY_RUN)
    told = Launch(
        reason=reason,
        priority=next(rank for rank in ranks if rank is not None),
        options=merge_options(chosen, given),
        max_parallel=max_parallel or chosen.max_parallel,
        override_protection=override_protection,
        allow_new_code=allow_new_code,
        spark_remote=spark_remote,
    )
    with open_instance() as instance:
        found = make_plan(instance, asked, chunk=chunk or chosen.chunk)
        if not as_json:
            print_plan(found, downstream=asked.takes_downstream)
        check_launch(found, told)
        launched = None
        if any(table.partitions for table in found.tables):
            if not yes:
                confirm("launch it?", is_aside=as_json)
            launched = request_planned(instance, load_graph(), found, told)
    if as_json:
        print_json(
            {
                "backfill_id": launched.backfill_id if launched else "",
                "title": launched.title if launched else "",
                "plan": asdict(found),
            }
        )
    elif launched:
        typer.echo(f"requested backfill {launched.backfill_id}: {launched.title}")
    if launched and not launched.has_daemon:
        typer.echo(f"{NO_DAEMON}: it waits for {DAEMON_COMMANDS}", err=True)


def print_plan(found: "Plan", *, downstream: bool) -> None:
    """Prints a grid of the tables, and what there is to remark of each.

    Args:
        found: the plan.
        downstream: whether what was computed from the selected partitions is part of it.
    """
    _print_tables(found)
    for table in found.tables:
        _print_remarks(table)
    if downstream:
        for key, ranges in found.downstream.items():
            listed = ", ".join(f"{start}...{end}" for start, end in ranges[:_LISTED])
            typer.echo(f"downstream, at most: {key} {listed}")
        if not found.downstream:
            typer.echo("downstream: nothing else was computed from them")
    if found.row_filter:
        typer.echo(f"only rows with {found.row_filter}; the others stay as they are published")


def _print_tables(found: "Plan") -> None:
    from rich.table import Table as Grid

    counts = ("partitions", "runs", "chunks", "commits")
    names = (*counts, "read", "rows", "write", "seconds")
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
            f"{one.rows:,}",
            _format_bytes(one.bytes_written),
            _format_seconds(one.seconds),
        ]
        grid.add_row(one.table, states, *cells)
        if is_narrow:
            told = [f"{name} {cell}" for name, cell in zip(names, cells, strict=True)]
            lines = [", ".join(told[: len(counts)]), ", ".join(told[len(counts) :])]
            typer.echo("\n  ".join([f"{one.table}: {states}", *lines]))
    if not is_narrow:
        print_grid(grid, width=160)


def _print_remarks(table: "TablePlan") -> None:
    from backfill_assets.orchestration.instance.ranges import shorten

    for words, texts in (
        ("stale", table.stale),
        ("can't go yet", table.waits),
        ("runs are at work on", table.at_work),
        ("protected", table.protected),
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


def _print_commands(found: "Plan", *, chunk: str | None) -> None:
    from backfill_assets.orchestration.instance.ranges import build_command, join_tables, shorten
    from backfill_assets.orchestration.runs.run_options import build_options_config

    options = {"chunk": chunk}
    if found.row_filter:
        options |= {"write_mode": "merge", "filter": found.row_filter}
    commands = [
        build_command(keys, start, end, build_options_config(keys, options))
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
