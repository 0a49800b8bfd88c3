"""The page of commands is what `--help` says; `UPDATE_DOCS=1` writes it anew."""

import inspect
import os
import textwrap
from collections.abc import Iterator
from pathlib import Path

import typer
from typer.core import TyperArgument, TyperCommand, TyperGroup, TyperOption
from typer.testing import CliRunner

from backfill_engine.cli import app
from backfill_engine.cli.launch_options import PartitionOptions
from backfill_engine.orchestration.runs.option_declarations import Launch

PAGE = Path(__file__).parents[2] / "docs" / "commands.md"
HEAD = """\
# Commands

What each command says of itself; `backfill-assets COMMAND --help` explains its options,
`--help-all` also those that few need. Every failure is one line on stderr; the exit is 2 where what
is asked can't be, as by wrong arguments or settings, else 1. What asks takes `--yes`; without it
and without a terminal it exits with 2. `--json` prints what programs read; all else fits the
terminal, or `COLUMNS`, but for commands to copy. A run or a backfill is named by its id, or by the
first eight characters or more of it. For scripts there are also `missing`, `watermark`, `pin` and
`certificate`, short for `status --missing`, `status --watermark`, `history --consistent` and `proof
certificate`.
"""


GROUPS = ("backfill", "proof", "version")


def list_commands(app: typer.Typer) -> Iterator[tuple[str, TyperCommand]]:
    """Each command of the engine; other tests may have added groups of a project."""
    group = typer.main.get_command(app)
    assert isinstance(group, TyperGroup)
    for name, command in group.commands.items():
        if isinstance(command, TyperCommand) and not command.hidden:
            yield name, command
        elif name in GROUPS:
            assert isinstance(command, TyperGroup)
            for inner, inner_command in command.commands.items():
                assert isinstance(inner_command, TyperCommand)
                yield f"{name} {inner}", inner_command


def wrap(text: str) -> str:
    return "\n".join(textwrap.wrap(" ".join(text.split()), 120, break_on_hyphens=False)) + "\n"


def render_page() -> str:
    parts = [HEAD]
    for name, command in list_commands(app):
        arguments = [
            str(param.metavar or param.name).upper()
            if param.required
            else f"[{str(param.name).upper()}]"
            for param in command.params
            if isinstance(param, TyperArgument)
        ]
        parts.append(f"## {name}\n")
        parts.append(f"    backfill-assets {' '.join([name, *arguments])} [OPTIONS]\n")
        for paragraph in inspect.cleandoc(command.help or "").split("\n\n"):
            is_example = paragraph.startswith("Example: ")
            parts.append(f"    {paragraph[9:]}\n" if is_example else wrap(paragraph))
        options = [param.opts[0] for param in command.params if isinstance(param, TyperOption)]
        if options:
            parts.append(wrap(f"Options: {', '.join(f'`{option}`' for option in options)}."))
    parts.append("## Options of `plan`, `launch` and `run`, in full\n")
    parts.append("\n".join(f"- {line}" for line in describe_options()) + "\n")
    return "\n".join(parts)


def describe_options() -> Iterator[str]:
    """Describes in full the options that `--help` describes only in part."""
    for model in (PartitionOptions, Launch):
        for name, field in model.model_fields.items():
            if field.description:
                option = f"--{(field.title or name).replace('_', '-')}"
                yield wrap(f"`{option}`: {field.description}").rstrip().replace("\n", "\n  ")


def test_the_page_of_commands_says_what_help_says() -> None:
    page = render_page()
    if os.environ.get("UPDATE_DOCS"):
        PAGE.write_text(page, encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == page, "UPDATE_DOCS=1 writes it anew"


def test_plan_takes_every_option_of_launch_and_of_run() -> None:
    options = {
        name: {option for param in command.params for option in param.opts}
        for name, command in list_commands(app)
    }
    assert options["launch"] | options["run"] <= options["plan"]


def test_each_help_has_an_example() -> None:
    for name, command in list_commands(app):
        shown = CliRunner().invoke(app, [*name.split(), "--help"])
        assert f"Example: backfill-assets {name}" in " ".join(shown.output.split()), name
        examples = [line for line in (command.help or "").splitlines() if "Example: " in line]
        assert len(examples) == 1, name
