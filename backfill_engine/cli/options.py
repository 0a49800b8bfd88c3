"""Options that commands share: each declared once, alone or as the field of a model."""

import inspect
import re
import shlex
from collections.abc import Callable
from functools import wraps
from typing import Annotated, Any

import typer
from pydantic import BaseModel
from pydantic.fields import FieldInfo
from typer.core import TyperCommand, TyperGroup

from backfill_engine.cli.terminal import echo_lines
from backfill_engine.errors import SettingsError
from backfill_engine.lake.origins import TO_FILL_IN, Origin, find_user, hide_secrets

try:
    from typer._click.globals import get_current_context
except ImportError:  # before typer 0.2x, which has a copy of its own
    from click import get_current_context


def refuse_unsaid(parameter: typer.CallbackParam, value: str | None) -> str | None:
    """Refuses a text that says nothing, where an option left out means something else.

    Raises:
        SettingsError: if it is empty, or the word that stands for a reason in commands to copy.
    """
    if value is not None and value != parameter.default and not value.strip(" ,"):
        raise SettingsError("an option is empty: give it a value, or leave it out")
    if value == TO_FILL_IN:
        raise SettingsError(f"say your reason in place of {TO_FILL_IN}")
    return value


SELECT_HELP = (
    "Tables, comma-separated, as raw/flights; or of Dagster's selection language: "
    'group:staging, key:"raw/*", staging/flights+. Left out: those of pipelines that have begun.'
)
Select = Annotated[str | None, typer.Option(help=SELECT_HELP, callback=refuse_unsaid)]
First = Annotated[str, typer.Option("--from", help="First partition key.")]
Last = Annotated[str, typer.Option("--to", help="Last partition key, included.")]
MaybeFirst = Annotated[str | None, typer.Option("--from", help="First partition key.")]
MaybeLast = Annotated[str | None, typer.Option("--to", help="Last partition key, included.")]
Reason = Annotated[
    str, typer.Option(help="Why; it is kept in the records.", callback=refuse_unsaid)
]
Accept = Annotated[
    str,
    typer.Option(help="Why it is right though it is beyond the gates.", callback=refuse_unsaid),
]
MaxPsi = Annotated[
    float | None, typer.Option(min=0, help="Most that a column with a drift rule may drift.")
]
OverrideProtection = Annotated[
    str | None,
    typer.Option(
        help="Why protected partitions are to be published all the same.", callback=refuse_unsaid
    ),
]
RequestDownstream = Annotated[
    bool,
    typer.Option(
        "--downstream", help="Request a backfill of what was computed from the partitions."
    ),
]
MaxParallel = Annotated[int | None, typer.Option(min=1, help="Most of its runs at work at once.")]
Priority = Annotated[int | None, typer.Option(help="In the queue; else -1, the daily run has 0.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only say what would be done.")]
Yes = Annotated[bool, typer.Option("--yes", help="Don't ask.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
TableKey = Annotated[str, typer.Argument(help="A table, as staging/flights.")]
MaybeTableKey = Annotated[str | None, typer.Argument(help="A table, as staging/flights.")]


_EVERYDAY = {"first", "last", "select", "only", "downstream", "chunk", "reason"}
"""Of the options in groups those that `--help` shows; `--help-all` shows the others, too."""
_SHOWS_ALL = f"{__name__}.shows_all"
_WHOLE = 1000
"""Characters, more than any sentence has."""


def _show_all(context: typer.Context, asked: bool) -> None:  # noqa: FBT001
    if asked:
        context.meta[_SHOWS_ALL] = True
        echo_lines(context.get_help())
        raise typer.Exit


_HelpAll = Annotated[
    bool,
    typer.Option(
        "--help-all", is_eager=True, callback=_show_all, help="Show all options, and exit."
    ),
]


class CommandGroup(TyperGroup):
    """A group whose help lists each command with a whole sentence, also where that takes lines."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Writes the commands that aren't hidden."""
        commands = ((name, self.get_command(ctx, name)) for name in self.list_commands(ctx))
        with formatter.section("Commands"):
            formatter.write_dl(
                [
                    (name, command.get_short_help_str(_WHOLE))
                    for name, command in commands
                    if command is not None and not command.hidden
                ]
            )


class GroupedCommand(TyperCommand):
    """A command whose help has its options in groups, and at first only those of every day."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Writes the groups, each below its name."""
        groups: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            group = getattr(parameter, "rich_help_panel", None)
            is_shown = group is None or parameter.name in _EVERYDAY or _SHOWS_ALL in ctx.meta
            record = parameter.get_help_record(ctx)
            if record is not None and is_shown:
                kind = "Arguments" if parameter.param_type_name == "argument" else "Options"
                groups.setdefault(group or kind, []).append(record)
        for group, records in groups.items():
            with formatter.section(group):
                formatter.write_dl(records)


def spread_options(command: Callable[..., None]) -> Callable[..., None]:
    """Lets typer see the fields of a command's models as options, in their place.

    A field with a description is an option. Its name is that of the field, or its title, if it has
    one; its help is how the description begins; its group is the title of the model that declares
    it. The command gets the models.

    Args:
        command: of which parameters are annotated with models whose fields have defaults.
    """
    models: dict[str, type[BaseModel]] = {}
    parameters: list[inspect.Parameter] = []
    for parameter in inspect.signature(command).parameters.values():
        kind = parameter.annotation
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            models[parameter.name] = kind
            parameters += [
                inspect.Parameter(
                    name,
                    inspect.Parameter.KEYWORD_ONLY,
                    default=field.default,
                    annotation=Annotated[
                        field.annotation, _build_option(name, field, _find_group(kind, name))
                    ],
                )
                for name, field in _find_options(kind).items()
            ]
        else:
            parameters.append(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY))

    if any(_find_group(kind, name) for kind in models.values() for name in _find_options(kind)):
        parameters.append(
            inspect.Parameter(
                "help_all", inspect.Parameter.KEYWORD_ONLY, default=False, annotation=_HelpAll
            )
        )

    @wraps(command)
    def spread(**given: Any) -> None:
        given.pop("help_all", None)
        built = {
            name: kind(**{option: given.pop(option) for option in _find_options(kind)})
            for name, kind in models.items()
        }
        command(**built, **given)

    # What typer goes by, and `inspect` with it.
    spread.__dict__["__signature__"] = inspect.Signature(parameters)
    return spread


def fix_options(command: Callable[..., None], **fixed: Any) -> Callable[..., None]:
    """Gives a command again, with some of its options fixed."""

    @wraps(command)
    def fixed_command(**given: Any) -> None:
        command(**{**given, **fixed})

    return fixed_command


def build_origin() -> Origin:
    """Builds who asks for what by the command at work; its operation is a template's name.

    Of the command only its own options are told, as they were given: no setting.
    """
    context = get_current_context(silent=True)
    if context is None:
        return Origin(by=find_user())
    words, group = list[str](), context
    while group.parent is not None:
        words.insert(0, group.info_name or "")
        group = group.parent
    for parameter in context.command.params:
        source = context.get_parameter_source(parameter.name or "")
        if source is None or source.name != "COMMANDLINE":
            continue
        value = context.params[parameter.name or ""]
        name = max(parameter.opts, key=len)
        if parameter.param_type_name == "argument":
            words.append(value)
        elif isinstance(value, bool):
            words.append(name if value else max(parameter.secondary_opts, key=len))
        else:
            words += [name, str(value)]
    command = shlex.join(["backfill-assets", *map(hide_secrets, words)])
    return Origin(context.params.get("template_name") or "", find_user(), command=command)


def _find_options(kind: type[BaseModel]) -> dict[str, FieldInfo]:
    return {name: field for name, field in kind.model_fields.items() if field.description}


def _find_group(kind: type[BaseModel], name: str) -> str | None:
    """Finds the title of the model that declares a field."""
    declaring = [
        model
        for model in kind.__mro__
        if issubclass(model, BaseModel) and name in model.model_fields
    ]
    return declaring[-1].model_config.get("title")


def _build_option(name: str, field: FieldInfo, group: str | None) -> Any:
    word = (field.title or name).replace("_", "-")
    # The rest is for the Launchpad, and for the docs: a screen has to hold all options.
    words = re.split(r"[;.] ", field.description or "")[0].rstrip(".") + "."
    if field.annotation in (bool, bool | None):
        names = f"--{word}" if field.annotation is bool else f"--{word}/--no-{word}"
        return typer.Option(names, help=words, rich_help_panel=group)
    return typer.Option(f"--{word}", help=words, callback=refuse_unsaid, rich_help_panel=group)
