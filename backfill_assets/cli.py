"""The console script `backfill-assets`. Every failure is one line on stderr and a non-zero exit."""

import dataclasses
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from backfill_assets.errors import BackfillError, CertificateError, SettingsError
from backfill_assets.settings import read_settings

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    from backfill_assets.status import PartitionStatus

app = typer.Typer(
    name="backfill-assets",
    help="Safe partition backfills on Dagster, Spark and Delta Lake.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
sample_app = typer.Typer(no_args_is_help=True, help="Land real data to try things out.")
app.add_typer(sample_app, name="sample")

# Commands import what they need when they run: Dagster and Spark take seconds to import.


@sample_app.command("flights")
def sample_flights() -> None:
    """Land the flights of 2013 as gzipped JSON lines, by landing day."""
    from backfill_assets.samples.flights import land_flights

    root = read_settings().landing
    report = land_flights(root)
    typer.echo(
        f"landed {report.records:,} records on {report.days} days below {root} "
        f"({report.files_written} files written, the others had the same bytes)"
    )


@app.command()
def check() -> None:
    """Check that Spark can start here; fetch the Delta jars if they are not cached yet."""
    from backfill_assets.spark.session import check_prerequisites

    settings = read_settings()
    check_prerequisites(remote=settings.spark_remote, jars=settings.jars)
    typer.echo(f"ready: Spark {'at ' + settings.spark_remote if settings.spark_remote else 'here'}")


_First = Annotated[str, typer.Option("--from", help="First partition key.")]
_Last = Annotated[str, typer.Option("--to", help="Last partition key, included.")]
_Select = Annotated[
    str | None, typer.Option(help="Tables, comma-separated, as raw/flights; all if left out.")
]
_Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@app.command()
def status(
    first: _First,
    last: _Last,
    select: _Select = None,
    as_json: _Json = False,  # noqa: FBT002 (an option)
) -> None:
    """Show rows, status and Delta version of each partition and layer."""
    statuses = _read_statuses(select, first, last)
    if as_json:
        _print_json(statuses)
    else:
        _print_statuses(statuses)


@app.command()
def missing(
    first: _First,
    last: _Last,
    select: _Select = None,
    failed: Annotated[bool, typer.Option(help="Leave out what no run ever tried.")] = False,  # noqa: FBT002
    as_json: _Json = False,  # noqa: FBT002 (an option)
) -> None:
    """Print what is missing or failed as ranges: table, then what --partition-range takes."""
    from backfill_assets.status import find_missing_ranges

    ranges = find_missing_ranges(_read_statuses(select, first, last), only_failed=failed)
    if as_json:
        _print_json(ranges)
    else:
        for one in ranges:
            typer.echo(f"{one.table}\t{one.first}...{one.last}")


_Table = Annotated[str, typer.Argument(help="A table, as staging/flights.")]


@app.command()
def rollback(
    table: _Table,
    first: _First,
    last: _Last,
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
    _default_dagster_home()
    from dagster import DagsterInstance

    from backfill_assets.job_runs import run_job

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


@app.command()
def history(
    table: _Table,
    first: Annotated[str | None, typer.Option("--from", help="First partition key.")] = None,
    last: Annotated[str | None, typer.Option("--to", help="Last partition key.")] = None,
    as_json: _Json = False,  # noqa: FBT002 (an option)
) -> None:
    """List the commits of a table, or those that changed a range of partitions; newest first."""
    from backfill_assets.lake.warehouse import Warehouse
    from backfill_assets.proof.history import list_changes
    from backfill_assets.tables.catalog import find_table

    warehouse = Warehouse(read_settings().warehouse)
    changes = list_changes(warehouse, find_table(table), first=first, last=last)
    if as_json:
        _print_json(changes)
        return
    for one in changes:
        typer.echo(
            f"version {one.version}  {one.committed_at}  {one.write_mode or one.operation}  "
            + (
                f"{one.first}...{one.last} ({one.partitions} partitions, {one.rows:,} rows)  "
                f"run {one.run_id}"
                if one.run_id
                else ""
            )
        )


@app.command()
def certificate(
    run: Annotated[str, typer.Argument(help="A run or a backfill, or the beginning of its id.")],
    verify: Annotated[bool, typer.Option(help="Recompute it from the tables.")] = False,  # noqa: FBT002
    as_json: _Json = False,  # noqa: FBT002 (an option)
) -> None:
    """Show what a run or a backfill did; with --verify, which of it still holds."""
    from backfill_assets.lake.warehouse import Warehouse
    from backfill_assets.proof.certificates import find_certificates
    from backfill_assets.proof.pages import render_certificate, render_verification

    warehouse = Warehouse(read_settings().warehouse)
    found = find_certificates(warehouse, run)
    if not found:
        raise CertificateError(
            f"no certificate of {run} below {warehouse.root}/certificates: "
            "`backfill-assets history TABLE` lists the runs of a table"
        )
    if not verify:
        if as_json:
            _print_json(found)
        else:
            typer.echo("\n".join(map(render_certificate, found)))
        return
    from backfill_assets.partitions import build_daily_partitions
    from backfill_assets.proof.verification import verify_certificate
    from backfill_assets.tables.catalog import find_table

    verified = [
        (
            one,
            verify_certificate(
                warehouse, find_table(one.asset_key), one, build_daily_partitions(one.published)
            ),
        )
        for one in found
    ]
    if as_json:
        _print_json([line for _, lines in verified for line in lines])
    else:
        for one, lines in verified:
            typer.echo(render_verification(one, lines))
    if any(line.holds is False for _, lines in verified for line in lines):
        raise typer.Exit(1)


def _read_statuses(select: str | None, first: str, last: str) -> "list[PartitionStatus]":
    _default_dagster_home()
    from dagster import DagsterInstance

    from backfill_assets.lake.warehouse import Warehouse
    from backfill_assets.status import read_statuses
    from backfill_assets.tables.catalog import TABLES, find_table

    tables = [find_table(key.strip()) for key in select.split(",")] if select else TABLES
    warehouse = Warehouse(read_settings().warehouse)
    with DagsterInstance.get() as instance:
        return read_statuses(instance, warehouse, tables, first=first, last=last)


def _print_json(results: Sequence["DataclassInstance"]) -> None:
    typer.echo(json.dumps([dataclasses.asdict(one) for one in results], indent=2))


def _print_statuses(statuses: "list[PartitionStatus]") -> None:
    from rich.console import Console
    from rich.table import Table as Grid

    by_cell = {(one.partition, one.table): one for one in statuses}
    tables = list(dict.fromkeys(one.table for one in statuses))
    grid = Grid("partition", title="rows, status and Delta version by partition and table")
    for table in tables:
        grid.add_column(table, justify="right")
    for partition in dict.fromkeys(one.partition for one in statuses):
        grid.add_row(partition, *(_format_cell(by_cell[partition, table]) for table in tables))
    grid.add_section()
    totals = (sum(one.rows or 0 for one in statuses if one.table == table) for table in tables)
    grid.add_row("all", *(f"{total:,} rows" for total in totals))
    Console(width=None if sys.stdout.isatty() else 30 + 34 * len(tables)).print(grid)


def _format_cell(status: "PartitionStatus") -> str:
    colour = {"materialized": "green", "failed": "red"}.get(status.status, "yellow")
    shown = f"[{colour}]{status.status}[/]"
    if status.version is None:
        return shown
    return f"{status.rows:,} {shown} v{status.version}"


def _default_dagster_home() -> None:
    """The working directory is the Dagster home where it has a dagster.yaml and none is set."""
    if home := os.environ.get("DAGSTER_HOME"):
        if not Path(home).is_dir():
            raise SettingsError(f"DAGSTER_HOME={home} is no folder: export one that exists")
        return
    if not Path("dagster.yaml").exists():
        raise SettingsError(
            "DAGSTER_HOME is not set: export the folder that holds dagster.yaml, "
            "or run this in the project's folder"
        )
    os.environ["DAGSTER_HOME"] = str(Path.cwd())


def main() -> None:
    """Runs the command line."""
    try:
        app()
    except BackfillError as error:
        typer.echo(f"error: {error}", err=True)
        sys.exit(1)
