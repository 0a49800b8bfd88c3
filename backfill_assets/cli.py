"""The console script `backfill-assets`. Every failure is one line on stderr and a non-zero exit."""

import sys
from typing import Annotated

import typer

from backfill_assets.errors import BackfillError
from backfill_assets.settings import read_settings

app = typer.Typer(
    name="backfill-assets",
    help="Safe partition backfills on Dagster, Spark and Delta Lake.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
sample_app = typer.Typer(no_args_is_help=True, help="Land real data to try things out.")
app.add_typer(sample_app, name="sample")


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


def main() -> None:
    """Runs the command line."""
    try:
        app()
    except BackfillError as error:
        typer.echo(f"error: {error}", err=True)
        sys.exit(1)
