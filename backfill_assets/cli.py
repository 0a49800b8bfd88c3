"""The console script `backfill-assets`. Every failure is one line on stderr and a non-zero exit."""

import dataclasses
import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from backfill_assets.errors import BackfillError, SettingsError
from backfill_assets.settings import read_settings

if TYPE_CHECKING:
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


@app.command()
def status(
    first: Annotated[str, typer.Option("--from", help="First partition key.")],
    last: Annotated[str, typer.Option("--to", help="Last partition key, included.")],
    select: Annotated[
        str | None, typer.Option(help="Tables, comma-separated: raw/flights,staging/flights")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,  # noqa: FBT002
) -> None:
    """Show rows, status and Delta version of each partition and layer."""
    _default_dagster_home()
    from dagster import DagsterInstance

    from backfill_assets.definitions import defs
    from backfill_assets.lake.warehouse import Warehouse
    from backfill_assets.status import read_statuses
    from backfill_assets.tables.catalog import TABLES, find_table

    tables = [find_table(key.strip()) for key in select.split(",")] if select else TABLES
    with DagsterInstance.get() as instance:
        statuses = read_statuses(
            instance, defs, Warehouse(read_settings().warehouse), tables, first=first, last=last
        )
    if as_json:
        typer.echo(json.dumps([dataclasses.asdict(one) for one in statuses], indent=2))
    else:
        _print_statuses(statuses)


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
    if "DAGSTER_HOME" in os.environ:
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
