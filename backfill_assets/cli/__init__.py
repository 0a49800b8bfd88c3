"""The console script `backfill-assets`. Every failure is one line on stderr and a non-zero exit.

Commands import what they need when they run: Dagster and Spark take seconds to import.
"""

import sys

import typer

from backfill_assets.cli import partition_commands, proof_commands, setup_commands
from backfill_assets.errors import BackfillError

app = typer.Typer(
    name="backfill-assets",
    help="Safe partition backfills on Dagster, Spark and Delta Lake.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.add_typer(setup_commands.sample_app, name="sample")
for _command in (
    setup_commands.check,
    partition_commands.status,
    partition_commands.missing,
    partition_commands.recover,
    partition_commands.watermark,
    proof_commands.reconcile,
    proof_commands.history,
    proof_commands.diff,
    proof_commands.certificate,
    partition_commands.rollback,
):
    app.command()(_command)


def main() -> None:
    """Runs the command line."""
    try:
        app()
    except BackfillError as error:
        typer.echo(f"error: {error}", err=True)
        sys.exit(1)
