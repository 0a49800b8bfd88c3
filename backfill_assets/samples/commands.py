"""`backfill-assets sample`: lands real data to try things out."""

from typing import Annotated

import typer

from backfill_engine import SettingsError, read_settings

app = typer.Typer(no_args_is_help=True, help="Land real data to try things out.")


@app.command("flights")
def sample_flights(
    history: Annotated[
        str | None,
        typer.Option(
            help="Instead, land synthetic flights of earlier years, comma-separated, as CSV by "
            "month: for docs/historical-loads.md."
        ),
    ] = None,
) -> None:
    """Land the flights of 2013 as gzipped JSON lines, by landing day."""
    from backfill_assets.samples.flights import land_flights

    root = _find_landing()
    if history is not None:
        _land_history(root, history)
        return
    report = land_flights(root)
    typer.echo(
        f"landed {report.records:,} records on {report.days} days below {root} "
        f"({report.files_written} files written, the others had the same bytes)"
    )


def _land_history(root: str, years: str) -> None:
    from backfill_assets.samples.flights_history import land_flights_history

    names = [name.strip() for name in years.split(",")]
    if not all(name.isascii() and name.isdigit() for name in names):
        raise SettingsError(f"--history {years}: give years, comma-separated, as 2011,2012")
    report = land_flights_history(root, {int(name) for name in names})
    typer.echo(
        f"landed {report.records:,} synthetic records of {report.days} days below {root} "
        f"({report.files_written} files written, the others had the same bytes)"
    )


@app.command("weather")
def sample_weather() -> None:
    """Land the weather of 2013 as gzipped JSON lines, by hour (UTC)."""
    from backfill_assets.samples.weather import land_weather

    root = _find_landing()
    report = land_weather(root)
    typer.echo(
        f"landed {report.records:,} records in {report.hours:,} hours below {root} "
        f"({report.files_written:,} files written, the others had the same bytes)"
    )


@app.command("orders")
def sample_orders(
    scale: Annotated[
        float, typer.Option(help="TPC-H scale factor, 1 is 1.5 million orders.")
    ] = 0.1,
) -> None:
    """Land generated orders and their lines as Parquet files."""
    from backfill_assets.samples.orders import land_orders

    root = _find_landing()
    report = land_orders(root, scale=scale)
    typer.echo(
        f"landed {report.orders:,} orders up to key {report.largest_key:,} with "
        f"{report.lines:,} lines below {root} "
        f"({report.files_written} files written, the others had the same bytes)"
    )


def _find_landing() -> str:
    # Every command imports this module to know of `sample`: Arrow is for those that land something.
    from backfill_engine import check_writable

    root = read_settings().landing
    check_writable(root, "BACKFILL_LANDING")
    return root
