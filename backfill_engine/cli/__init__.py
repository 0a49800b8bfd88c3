"""The console script `backfill-assets`. Every failure is one line on stderr and a non-zero exit.

Commands import what they need when they run: Dagster and Spark take seconds to import.
"""

import importlib
import sys
import traceback
from itertools import takewhile
from pathlib import Path
from typing import Annotated

import typer

from backfill_engine.cli import (
    backfill_commands,
    partition_commands,
    plan_command,
    proof_commands,
    protection_commands,
    rehearsal_commands,
    run_command,
    setup_commands,
    status_commands,
    version_commands,
)
from backfill_engine.cli.location import choose_module, read_project
from backfill_engine.cli.terminal import echo
from backfill_engine.damages import describe_damage
from backfill_engine.errors import BackfillError, SettingsError

_DEBUG = "--debug"

app = typer.Typer(
    name="backfill-assets",
    help="Safe partition backfills on Dagster, Spark and Delta Lake.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
for _command in (
    setup_commands.init,
    setup_commands.check,
    plan_command.plan,
    plan_command.launch,
    backfill_commands.pause,
    backfill_commands.unpause,
    run_command.run,
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
    module: Annotated[
        str | None,
        typer.Option("-m", "--module-name", help="The module that has the definitions."),
    ] = None,
    workspace: Annotated[
        Path | None, typer.Option("-w", "--workspace", help="A workspace file that names it.")
    ] = None,
    debug: Annotated[bool, typer.Option(_DEBUG, help="Print the trace of an error.")] = False,  # noqa: FBT002
) -> None:
    # `main` has to know of it even where a command can't be parsed, and looks for itself.
    del debug
    choose_module(module, workspace)


def main() -> None:
    """Runs the command line."""
    try:
        add_project_commands()
        app()
    except Exception as error:
        if _DEBUG in takewhile(lambda argument: argument.startswith("-"), sys.argv[1:]):
            traceback.print_exc()
        echo(f"error: {_describe(error)}", err=True)
        sys.exit(1)


def add_project_commands() -> None:
    """Adds the commands of the project in the working directory, `[tool.backfill] commands`.

    Raises:
        SettingsError: if one can't be loaded.
    """
    known = {group.name for group in app.registered_groups}
    for name, place in read_project().get("backfill", {}).get("commands", {}).items():
        if name in known:
            continue
        module, _, attribute = str(place).partition(":")
        sys.path.insert(0, str(Path.cwd()))
        try:
            commands = getattr(importlib.import_module(module), attribute)
        except (ImportError, AttributeError, ValueError) as error:
            raise SettingsError(
                f"[tool.backfill] commands: {name} = {place!r} can't be loaded ({error}): write "
                '"module:app"'
            ) from error
        app.add_typer(commands, name=name)


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
