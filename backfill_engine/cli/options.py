"""Options that commands share, and how they print."""

import dataclasses
import json
import os
import shutil
import sys
import textwrap
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from backfill_engine.cli.location import load_catalog, load_graph
from backfill_engine.cli.terminal import echo, echo_lines
from backfill_engine.damages import describe_damage
from backfill_engine.errors import BackfillError, SettingsError
from backfill_engine.escaping import escape_hidden

if TYPE_CHECKING:
    from dagster import DagsterInstance
    from pyspark.sql import SparkSession

    from backfill_engine.cli.terminal import Grid
    from backfill_engine.contents.partition_contents import PartitionReader
    from backfill_engine.orchestration.planning.planning import Planner

First = Annotated[str, typer.Option("--from", help="First partition key.")]
Last = Annotated[str, typer.Option("--to", help="Last partition key, included.")]
_UNBOUNDED = 10_000
"""Columns, more than any grid needs."""
_FAULT_LENGTH = 200


def refuse_empty(value: str | None) -> str | None:
    """Refuses an empty text where an option left out means something else.

    Raises:
        SettingsError: if it is empty.
    """
    if value is not None and not value.strip(" ,"):
        raise SettingsError("an option is empty: give it a value, or leave it out")
    return value


def refuse_blank(value: str) -> str:
    """Refuses blanks where an empty text says the same as no option.

    Raises:
        SettingsError: if it is blank.
    """
    return value if value == "" else str(refuse_empty(value))


SELECT_HELP = (
    "Tables, comma-separated, as raw/flights; or of Dagster's selection language: "
    'group:staging, key:"raw/*", staging/flights+. All if left out.'
)
Select = Annotated[str | None, typer.Option(help=SELECT_HELP, callback=refuse_empty)]
TableKeys = Annotated[
    str | None,
    typer.Option(
        "--select",
        help="Tables, comma-separated, as raw/flights; all if left out.",
        callback=refuse_empty,
    ),
]
Reason = Annotated[str, typer.Option(help="Why; a tag of the runs.")]
OverrideProtection = Annotated[
    str | None,
    typer.Option(
        help="Why protected partitions are to be published all the same.", callback=refuse_empty
    ),
]
Yes = Annotated[bool, typer.Option("--yes", help="Don't ask.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
TableKey = Annotated[str, typer.Argument(help="A table, as staging/flights.")]


def confirm(question: str, *, is_aside: bool = False) -> None:
    """Asks a person whether to go on.

    Args:
        question: whose answer is yes or no.
        is_aside: whether it goes to stderr.

    Raises:
        SettingsError: if nobody is there to answer.
        Abort: if the answer is no.
    """
    nobody = SettingsError(f"{question} nobody answered: say --yes beforehand; nothing was done")
    if sys.stdin is None or sys.stdin.closed:
        raise nobody
    try:
        agreed = typer.confirm(escape_hidden(question), err=is_aside)
    except typer.Abort:  # the end of the input, or Ctrl-C at a terminal
        echo(err=True)
        if sys.stdin.isatty():
            raise
        raise nobody from None
    if not agreed:
        raise typer.Abort


def print_json(result: Any) -> None:
    """Prints dataclasses, or what is plain already, as JSON objects."""
    many = isinstance(result, Sequence)
    plain = [_make_plain(row) for row in result] if many else _make_plain(result)
    echo_lines(json.dumps(plain, indent=2, default=str))  # dates as ISO 8601


def _make_plain(row: Any) -> Any:
    return dataclasses.asdict(row) if dataclasses.is_dataclass(row) else row  # type: ignore[arg-type]


def print_grid(grid: "Grid", *, width: int) -> None:
    """Prints a grid as wide as the terminal; into a file or a pipe as wide as it needs."""
    from rich.console import Console

    Console(width=None if sys.stdout.isatty() else width).print(grid)


def is_too_wide(grid: "Grid") -> bool:
    """Tells whether a grid has not all the room that it needs on this terminal."""
    from rich.console import Console

    console = Console()
    unbounded = console.options.update(max_width=_UNBOUNDED)
    needed = console.measure(grid, options=unbounded).maximum
    return sys.stdout.isatty() and needed > console.width


def print_line(line: str, *, indent: str = "") -> None:
    """Prints a line; on a terminal that is narrower, broken between words and indented further."""
    if not sys.stdout.isatty():
        echo(indent + line)
        return
    broken = textwrap.fill(
        line,
        shutil.get_terminal_size().columns,
        initial_indent=indent,
        subsequent_indent=f"{indent}  ",
        break_long_words=False,
        break_on_hyphens=False,
    )
    echo_lines(broken)


def default_dagster_home() -> None:
    """Makes the working directory the Dagster home if it has a dagster.yaml and none is set."""
    if home := os.environ.get("DAGSTER_HOME"):
        if not Path(home).is_dir():
            raise SettingsError(f"DAGSTER_HOME={home} is no folder: export one that exists")
        return
    if not Path("dagster.yaml").exists():
        raise SettingsError(
            "DAGSTER_HOME is not set: export the folder that holds dagster.yaml, "
            "or run this in the project's folder"
        )
    os.environ["DAGSTER_HOME"] = str(Path.cwd())


def open_instance() -> "DagsterInstance":
    """Opens the Dagster instance of DAGSTER_HOME.

    Raises:
        SettingsError: if there is none, or its dagster.yaml can't be used.
    """
    default_dagster_home()
    from dagster import DagsterInstance

    try:
        return DagsterInstance.get()
    except Exception as error:
        if isinstance(error, BackfillError) or describe_damage(error) is not None:
            raise
        fault = " ".join(str(error).split())[:_FAULT_LENGTH]
        raise SettingsError(
            f"{Path(os.environ['DAGSTER_HOME'], 'dagster.yaml')} can't be used ({fault}): mend it"
        ) from error


def prepare_planner(instance: "DagsterInstance") -> "Planner":
    """Prepares to plan tables as they are now, of the environment's warehouse; takes seconds."""
    from backfill_engine.orchestration.planning.planning import open_planner

    return open_planner(instance, load_graph(), load_catalog(), now=datetime.now(tz=UTC))


def recover_dead_runs(instance: "DagsterInstance") -> None:
    """Records what killed runs have left, so that nothing waits for them; says so on stderr."""
    from backfill_engine.orchestration.recovery.recovering import recover_tables
    from backfill_engine.orchestration.runs.claims import find_dead_runs

    catalog, now = load_catalog(), datetime.now(tz=UTC)
    settings = catalog.settings
    if find_dead_runs(instance, now=now, silent_seconds=settings.silent_seconds):
        reader = build_partition_reader()
        report = recover_tables(catalog, instance, None, dry_run=False, reader=reader)
        for message in report.messages:
            echo(message, err=True)


def build_partition_reader() -> "PartitionReader":
    """Builds what reads partitions back; where it starts Spark, it says so on stderr."""
    from backfill_engine.contents.partition_contents import PartitionReader

    catalog = load_catalog()
    settings = catalog.settings

    def open_session() -> "SparkSession":
        from backfill_engine.resources import build_spark

        echo(
            f"{settings.read_back_bytes:,} bytes of data files or more are to be read: Spark's "
            "tasks read them (BACKFILL_READ_BACK_BYTES)",
            err=True,
        )
        return build_spark(catalog).spark_session

    return PartitionReader(cache(open_session), settings.read_back_bytes)
