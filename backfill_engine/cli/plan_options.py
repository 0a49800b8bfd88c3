"""The options of `plan`, `launch` and `run`: how each is written, and what it is for."""

import inspect
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from functools import wraps
from typing import Annotated, Any, get_type_hints

import typer

from backfill_engine.cli.options import refuse_blank, refuse_empty

FirstOrAll = Annotated[
    str | None,
    typer.Option(
        "--from",
        help="First partition key; without --from and --to, all partitions.",
        callback=refuse_empty,
    ),
]
LastOrAll = Annotated[
    str | None,
    typer.Option("--to", help="Last partition key, included.", callback=refuse_empty),
]
Start = Annotated[
    str | None,
    typer.Option(
        help="In place of --from: a date, a time (UTC) or an integer, whatever the grain.",
        callback=refuse_empty,
    ),
]
End = Annotated[
    str | None,
    typer.Option(
        help="In place of --to: the first value that is no longer meant.", callback=refuse_empty
    ),
]
BoundedColumn = Annotated[
    str | None,
    typer.Option(
        "--column",
        help="--start and --end are values of this column, not of the partition's: of the "
        "partitions --from to --to only rows between them are computed anew, by a merge.",
        callback=refuse_empty,
    ),
]
Strict = Annotated[
    bool, typer.Option("--strict", help="Refuse a --start or --end inside a partition.")
]
OnlyThese = Annotated[
    str | None,
    typer.Option(
        help="Which of them, comma-separated: all (it needs a range; the default), missing (never "
        "tried), failed (their step ended before them), withheld (by a verdict of their audit), "
        "stale (input or code is another one).",
        callback=refuse_empty,
    ),
]
Downstream = Annotated[
    bool | None,
    typer.Option(
        "--downstream/--no-downstream",
        help="Also what else was computed from them, directly or not. With --chunk, what stands "
        "when its turn comes is left as it is.",
    ),
]
TemplateName = Annotated[
    str | None,
    typer.Option(
        "--template",
        help="Options that belong together: repair, logic_change, full_refresh, or those of "
        "BACKFILL_TEMPLATES; what is given besides wins.",
        callback=refuse_empty,
    ),
]
Chunk = Annotated[
    str | None,
    typer.Option(
        help="Commit and record chunk after chunk: years, months=1, weeks, days, hours=6, "
        "minutes=30, step=100000, files=100. What stands already is left as it is.",
        callback=refuse_empty,
    ),
]
Restart = Annotated[
    bool | None,
    typer.Option("--restart/--no-restart", help="Compute chunks that stand, too."),
]
KeepGoing = Annotated[
    bool | None,
    typer.Option("--keep-going/--no-keep-going", help="Go on after a chunk that failed."),
]
Window = Annotated[
    str | None,
    typer.Option(
        help="Begin chunks between these times only (UTC): 22:00-06:00.", callback=refuse_empty
    ),
]
WriteModeName = Annotated[
    str | None,
    typer.Option("--write-mode", help="overwrite, merge or append_once.", callback=refuse_empty),
]
RowFilter = Annotated[
    str | None,
    typer.Option(
        "--filter", help="Of a merge: only rows that this SQL is true for.", callback=refuse_empty
    ),
]
SaveWatermark = Annotated[
    bool | None,
    typer.Option("--save-watermark/--no-save-watermark", help="Move the production watermark."),
]
Reason = Annotated[str, typer.Option(help="Why; a tag of the runs.")]
OverrideProtection = Annotated[
    str,
    typer.Option(
        help="Why protected partitions are to be published all the same.", callback=refuse_blank
    ),
]
AllowNewCode = Annotated[
    str,
    typer.Option(
        help="Why a deploy meanwhile is not to stop its remaining runs.", callback=refuse_blank
    ),
]
SparkRemote = Annotated[
    str | None,
    typer.Option(
        help="The Spark Connect server of its runs, as sc://host:15002, in place of SPARK_REMOTE."
    ),
]


def spread_options(command: Callable[..., None]) -> Callable[..., None]:
    """Lets typer see the fields of a command's dataclasses as options, in their place.

    Their names, types and defaults are those of the fields; the command gets the dataclasses.

    Args:
        command: of which parameters are annotated with dataclasses whose fields have defaults.
    """
    bundles: dict[str, type[Any]] = {}
    parameters: list[inspect.Parameter] = []
    for parameter in inspect.signature(command).parameters.values():
        kind = parameter.annotation
        if not is_dataclass(kind):
            parameters.append(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY))
            continue
        assert isinstance(kind, type)
        bundles[parameter.name] = kind
        hints = get_type_hints(kind, include_extras=True)
        parameters += [
            inspect.Parameter(
                one.name,
                inspect.Parameter.KEYWORD_ONLY,
                default=one.default,
                annotation=hints[one.name],
            )
            for one in fields(kind)
        ]

    @wraps(command)
    def spread(**given: Any) -> None:
        bundled = {
            name: kind(**{one.name: given.pop(one.name) for one in fields(kind)})
            for name, kind in bundles.items()
        }
        command(**bundled, **given)

    # What typer goes by, and `inspect` with it.
    spread.__dict__["__signature__"] = inspect.Signature(parameters)
    spread.__annotations__ = {one.name: one.annotation for one in parameters}
    return spread
