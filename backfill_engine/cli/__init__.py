"""The console script `backfill-assets`. Every failure is one line on stderr and a non-zero exit.

That is 2 where what was asked can't be, as by wrong arguments, and 1 for what came of it.

Commands import what they need when they run: Dagster and Spark take seconds to import.
"""

import importlib
import sys
import traceback
from itertools import takewhile
from pathlib import Path
from typing import Annotated

import typer

from backfill_engine.cli import backfill_commands, proof_commands, version_commands
from backfill_engine.cli.location import choose_module, read_project
from backfill_engine.cli.options import CommandGroup, GroupedCommand, fix_options
from backfill_engine.cli.partition_commands import (
    accept,
    adopt,
    migrate,
    protect,
    recover,
    rollback,
)
from backfill_engine.cli.plan_commands import launch, plan
from backfill_engine.cli.proof_commands import history
from backfill_engine.cli.rehearsal_commands import apply, rehearse
from backfill_engine.cli.run_command import run
from backfill_engine.cli.setup_commands import check, init
from backfill_engine.cli.status_commands import status
from backfill_engine.cli.terminal import echo, echo_lines
from backfill_engine.damages import describe_damage
from backfill_engine.errors import BackfillError, SettingsError

_DEBUG = "--debug"

app = typer.Typer(
    name="backfill-assets",
    cls=CommandGroup,
    help="Safe partition backfills on Dagster, Spark and Delta Lake.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # its boxes take lines and columns: a page of help is to fit a screen
)
for _command in (
    *(init, check, plan, launch, run, rehearse, apply),
    *(status, history, rollback, accept, adopt, migrate, recover, protect),
):
    app.command(cls=GroupedCommand)(_command)
# Short names that scripts go by; `--help` lists only what they stand for.
for _name, _command, _fixed in (
    ("missing", status, {"missing": True}),
    ("watermark", status, {"watermark": True}),
    ("pin", history, {"consistent": True}),
    ("certificate", proof_commands.certificate, {}),
):
    app.command(_name, hidden=True)(fix_options(_command, **_fixed))
app.add_typer(backfill_commands.app, name="backfill", cls=CommandGroup)
app.add_typer(proof_commands.app, name="proof", cls=CommandGroup)
app.add_typer(version_commands.app, name="version", cls=CommandGroup)


@app.callback()
def _take_options(
    module: Annotated[
        str | None, typer.Option("-m", "--module-name", help="The module that has the definitions.")
    ] = None,
    workspace: Annotated[
        Path | None, typer.Option("-w", "--workspace", help="A workspace file that names it.")
    ] = None,
    debug: Annotated[bool, typer.Option(_DEBUG, help="Print the trace of an error.")] = False,
) -> None:
    # `main` has to know of it even where a command can't be parsed, and looks for itself.
    del debug
    choose_module(module, workspace)


def main() -> None:
    """Runs the command line."""
    try:
        add_project_commands()
        code = app(standalone_mode=False)
    except typer.Abort:
        echo("aborted: nothing was done", err=True)
        sys.exit(1)
    except Exception as error:
        if _DEBUG in takewhile(lambda argument: argument.startswith("-"), sys.argv[1:]):
            traceback.print_exc()
        if type(error).__name__ == "NoArgsIsHelpError":  # a group without a command
            echo_lines(str(error), err=True)
        else:
            echo(f"error: {_describe(error)}", err=True)
        sys.exit(getattr(error, "exit_code", 1))
    sys.exit(code if isinstance(code, int) else 0)


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
        app.add_typer(commands, name=name, cls=CommandGroup)


def _describe(error: Exception) -> str:
    if isinstance(error, BackfillError):
        return " ".join(str(error).splitlines())  # what was given may have several
    if describe := getattr(error, "format_message", None):  # typer can't read the arguments
        context = getattr(error, "ctx", None)
        command = context.command_path if context else app.info.name
        return f"{' '.join(describe().split()).rstrip('.')}: `{command} --help` lists what there is"
    damage = describe_damage(error)
    if damage is not None:
        return damage
    lines = (line.strip() for line in str(error).splitlines())
    first = next((line for line in lines if line), "")
    return (
        f"{type(error).__name__}: {first}; `backfill-assets {_DEBUG} …` shows where it comes from"
    )
