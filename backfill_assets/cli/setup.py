"""What comes before the first run: data to try things out, and whether Spark can start."""

import typer

from backfill_assets.settings import read_settings

sample_app = typer.Typer(no_args_is_help=True, help="Land real data to try things out.")


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


def check() -> None:
    """Check that Spark can start here; fetch the Delta jars if they are not cached yet."""
    from backfill_assets.spark.session import check_prerequisites

    settings = read_settings()
    check_prerequisites(remote=settings.spark_remote, jars=settings.jars)
    typer.echo(f"ready: Spark {'at ' + settings.spark_remote if settings.spark_remote else 'here'}")
