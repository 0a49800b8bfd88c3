"""What partitions hold, which are to be run, and how they are taken back."""

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from backfill_assets.cli.options import (
    AsJson,
    First,
    Last,
    Select,
    TableKey,
    build_partition_reader,
    default_dagster_home,
    print_grid,
    print_json,
)
from backfill_assets.lake.run_ids import refuse_short_id
from backfill_assets.settings import read_settings

if TYPE_CHECKING:
    from backfill_assets.orchestration.partition_statuses import PartitionStatus


_WAITING_EXIT = 3


def status(
    first: First,
    last: Last,
    select: Select = None,
    as_json: AsJson = False,  # noqa: FBT002 (an option)
) -> None:
    """Show rows, status and Delta version of each partition and layer."""
    statuses = _read_statuses(select, first, last)
    if as_json:
        print_json(statuses)
    else:
        _print_statuses(statuses)


def missing(
    first: First,
    last: Last,
    select: Select = None,
    failed: Annotated[bool, typer.Option(help="Leave out what no run ever tried.")] = False,  # noqa: FBT002
    as_json: AsJson = False,  # noqa: FBT002 (an option)
) -> None:
    """Print what is missing or failed as ranges: table, then what --partition-range takes.

    What runs are at work on, or queued for, is named on stderr, and what is not due, as its
    upstream never came. Exit 0: there is none of either, and nothing is missing; 1: something is
    missing or failed; 3: all the rest is in progress or not due.
    """
    from backfill_assets.orchestration.partition_statuses import (
        FAILED,
        IN_PROGRESS,
        MISSING,
        NOT_DUE,
        find_ranges_of,
    )

    statuses = _read_statuses(select, first, last)
    ranges = find_ranges_of(statuses, {FAILED} if failed else {FAILED, MISSING})
    waiting = {
        words: find_ranges_of(statuses, {status})
        for words, status in (("in progress", IN_PROGRESS), ("not due", NOT_DUE))
    }
    if as_json:
        print_json(ranges)
    else:
        for missing_range in ranges:
            typer.echo(f"{missing_range.table}\t{missing_range}")
    for words, found in waiting.items():
        for waiting_range in found:
            typer.echo(f"{words}: {waiting_range.table} {waiting_range}", err=True)
    if ranges or any(waiting.values()):
        raise typer.Exit(1 if ranges else _WAITING_EXIT)


def withheld(
    table: TableKey,
    first: First,
    last: Last,
    most: Annotated[int, typer.Option(min=1, help="Rows of each kind to show.")] = 20,
    as_json: AsJson = False,  # noqa: FBT002 (an option)
) -> None:
    """Show rows that were withheld and records that were rejected, with run and reason."""
    from backfill_assets.catalog import find_table
    from backfill_assets.lake.kept_aside import read_kept_aside
    from backfill_assets.lake.partitions import build_partitions
    from backfill_assets.lake.warehouse import Warehouse
    from backfill_assets.orchestration.partition_definitions import find_partitions_def
    from backfill_assets.orchestration.selections import find_keys_in_range

    declared = find_table(table)
    warehouse = Warehouse(read_settings().warehouse)
    warehouse.check_root()
    keys = find_keys_in_range(find_partitions_def(declared), first=first, last=last)
    found = read_kept_aside(warehouse, declared, build_partitions(declared, keys), most=most)
    if as_json:
        print_json(found)
        return
    for kept in found:
        if not kept.count:
            continue
        typer.echo(f"{kept.count:,} {kept.what} in {kept.table}")
        for row in kept.rows:
            typer.echo("  " + json.dumps(row, default=str))
    if not any(kept.count for kept in found):
        typer.echo(f"nothing is kept aside of {table} {first}...{last}")


def recover(
    select: Select = None,
    dry_run: Annotated[bool, typer.Option(help="Only say what would be recorded.")] = False,  # noqa: FBT002
    as_json: AsJson = False,  # noqa: FBT002 (an option)
) -> None:
    """Tell this Dagster home what the tables know: after a crash, or in a new or older home.

    Runs whose process is gone are marked failed; what they, or runs of another home, published or
    withheld is recorded. Repeated, it finds nothing more to do.
    """
    default_dagster_home()
    from dagster import DagsterInstance

    from backfill_assets.orchestration.recovering import recover_tables

    with DagsterInstance.get() as instance:
        report = recover_tables(
            instance, read_settings(), select, dry_run=dry_run, reader=build_partition_reader()
        )
    if as_json:
        print_json(report)
        return
    for message in report.messages or ["nothing to recover: this Dagster home knows all"]:
        typer.echo(message)


def watermark(as_json: AsJson = False) -> None:  # noqa: FBT002 (an option)
    """Show up to where incremental runs have processed each table."""
    from backfill_assets.lake.warehouse import Warehouse
    from backfill_assets.lake.watermarks import read_watermarks

    found = list(read_watermarks(Warehouse(read_settings().warehouse)).values())
    if as_json:
        print_json(found)
        return
    for mark in found:
        typer.echo(
            f"{mark.table}\tbefore {mark.next_key}\t{mark.moved_at:%Y-%m-%d %H:%M}\t{mark.run_id}"
        )


def rollback(
    table: TableKey,
    first: First,
    last: Last,
    to_version: Annotated[int | None, typer.Option(help="Delta version to go back to.")] = None,
    before: Annotated[str | None, typer.Option(help="Or the run to undo.")] = None,
    force: Annotated[  # noqa: FBT002 (an option)
        bool, typer.Option(help="Undo later runs too, and publish what fails its audit.")
    ] = False,
    downstream: Annotated[  # noqa: FBT002 (an option)
        bool, typer.Option(help="Request a backfill of what was computed from the partitions.")
    ] = False,
) -> None:
    """Take partitions back to what an earlier version of the table held."""
    if before is not None:
        refuse_short_id(before)
    default_dagster_home()
    from dagster import DagsterInstance

    from backfill_assets.cli.job_runs import run_job

    config = {
        "table": table,
        "first": first,
        "last": last,
        "to_version": to_version,
        "before_run": before,
        "force": force,
        "downstream": downstream,
    }
    with DagsterInstance.get() as instance:
        typer.echo(run_job(instance, "rollback_partitions", "restore_partitions", config))


def _read_statuses(select: str | None, first: str, last: str) -> "list[PartitionStatus]":
    default_dagster_home()
    from dagster import DagsterInstance

    from backfill_assets.lake.warehouse import Warehouse
    from backfill_assets.orchestration.claims import find_dead_runs
    from backfill_assets.orchestration.partition_statuses import read_statuses
    from backfill_assets.orchestration.recovery_messages import (
        describe_dead_runs,
        describe_recovery,
    )
    from backfill_assets.orchestration.selections import select_tables

    settings = read_settings()
    warehouse = Warehouse(settings.warehouse)
    with DagsterInstance.get() as instance:
        tables = select_tables(warehouse, select, first=first, last=last)
        now = datetime.now(tz=UTC)
        dead = find_dead_runs(instance, now=now, silent_seconds=settings.silent_seconds)
        found = read_statuses(instance, warehouse, tables, first=first, last=last, dead=dead)
    notes = describe_dead_runs(dead, done=False)
    for table in found:
        notes += describe_recovery(table.recovery, done=False)
    if notes:
        notes.append("`backfill-assets recover` records this, and so does the next run")
    for note in notes:
        typer.echo(note, err=True)
    return [status for table in found for status in table.partitions]


def _print_statuses(statuses: "list[PartitionStatus]") -> None:
    from rich.table import Table as Grid

    by_cell = {(status.partition, status.table): status for status in statuses}
    tables = list(dict.fromkeys(status.table for status in statuses))
    grid = Grid("partition", title="rows, status and Delta version by partition and table")
    for table in tables:
        grid.add_column(table, justify="right")
    for partition in dict.fromkeys(status.partition for status in statuses):
        grid.add_row(partition, *(_format_cell(by_cell[partition, table]) for table in tables))
    grid.add_section()
    totals = (
        sum(status.rows or 0 for status in statuses if status.table == table) for table in tables
    )
    grid.add_row("all", *(f"{total:,} rows" for total in totals))
    print_grid(grid, width=30 + 34 * len(tables))


def _format_cell(status: "PartitionStatus") -> str:
    colour = {"materialized": "green", "failed": "red"}.get(status.status, "yellow")
    shown = f"[{colour}]{status.status}[/]"
    if status.version is None:
        return shown
    return f"{status.rows:,} {shown} v{status.version}"
