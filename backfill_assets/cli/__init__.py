"""The console script `backfill-assets`. Every failure is one line on stderr and a non-zero exit.

Commands import what they need when they run: Dagster and Spark take seconds to import.
"""

import sys
import traceback
from itertools import takewhile
from typing import Annotated

import typer

from backfill_assets.cli import (
    backfill_commands,
    once_command,
    partition_commands,
    pause_commands,
    plan_command,
    proof_commands,
    protection_commands,
    rehearsal_commands,
    run_command,
    setup_commands,
    status_commands,
    version_commands,
)
from backfill_assets.cli.terminal import echo
from backfill_assets.damages import describe_damage
from backfill_assets.errors import BackfillError

_DEBUG = "--debug"

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
    plan_command.plan,
    plan_command.launch,
    pause_commands.pause,
    pause_commands.unpause,
    run_command.run,
    once_command.once,
    rehearsal_commands.rehearse,
    rehearsal_commands.apply,
    backfill_commands.backfills,
    backfill_commands.watch,
    backfill_commands.cancel,
    backfill_commands.resume,
    status_commands.status,
    status_commands.missing,
    partition_commands.withheld,
    partition_commands.recover,
    partition_commands.watermark,
    proof_commands.reconcile,
    proof_commands.history,
    proof_commands.diff,
    proof_commands.certificate,
    proof_commands.pin,
    version_commands.promote,
    version_commands.versions,
    version_commands.retire,
    partition_commands.rollback,
    partition_commands.accept,
    protection_commands.protect,
    protection_commands.unprotect,
    protection_commands.protections,
):
    app.command()(_command)


@app.callback()
def _take_options(
    debug: Annotated[bool, typer.Option(_DEBUG, help="Print the trace of an error.")] = False,  # noqa: FBT002
) -> None:
    # `main` has to know of it even where a command can't be parsed, and looks for itself.
    del debug


def main() -> None:
    """Runs the command line."""
    try:
        app()
    except Exception as error:
        if _DEBUG in takewhile(lambda argument: argument.startswith("-"), sys.argv[1:]):
            traceback.print_exc()
        echo(f"error: {_describe(error)}", err=True)
        sys.exit(1)


def _describe(error: Exception) -> str:
    if isinstance(error, BackfillError):
        return " ".join(str(error).splitlines())  # what was given may have several
    damage = describe_damage(error)
    if damage is not None:
        return damage
    lines = (line.strip() for line in str(error).splitlines())
    first = next((line for line in lines if line), "")
    return (
        f"{type(error).__name__}: {first}; `backfill-assets {_DEBUG} …` shows where it comes from"
    )
