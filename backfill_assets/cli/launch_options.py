"""What `plan`, `launch` and `run` have in common: what to run and how, and the plan of it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from backfill_assets.cli.options import load_graph, refuse_blank, refuse_empty
from backfill_assets.cli.templates import NO_TEMPLATE, Template
from backfill_assets.errors import SettingsError
from backfill_assets.settings import read_settings

if TYPE_CHECKING:
    from dagster import DagsterInstance

    from backfill_assets.orchestration.planning.plans import Only, Plan
    from backfill_assets.tables.declarations import Table

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
Yes = Annotated[bool, typer.Option("--yes", help="Don't ask.")]


@dataclass(frozen=True, kw_only=True)
class Asked:
    """Which partitions are asked for: a selection, a range as keys or as bounds, what follows.

    Or, of partitions as keys, which of their rows: bounds of a column that isn't the partition's.
    """

    select: str | None
    first: str | None
    last: str | None
    start: str | None
    end: str | None
    column: str | None = None
    strict: bool
    only: str | None
    downstream: bool | None
    template: Template = NO_TEMPLATE

    def build_row_filter(self, tables: "Sequence[Table]") -> str:
        """Builds the filter of the rows that are asked for; empty if that is all of them.

        Raises:
            PartitionRangeError: if tables can't be bounded by the column.
        """
        from backfill_assets.orchestration.selecting.column_bounds import (
            build_column_filter,
            is_of_partitions,
        )

        if self.column is None or self.start is None or self.end is None:
            return ""
        if is_of_partitions(tables, self.column):
            return ""
        return build_column_filter(tables, self.column, self.start, self.end)

    def find_ranges(
        self, tables: "Sequence[Table]", *, by_keys: bool
    ) -> "dict[Table, tuple[str, str]]":
        """Finds first and last key of each table; says on stderr where a bound cuts a partition.

        Args:
            tables: the tables.
            by_keys: whether --start and --end are about rows.

        Raises:
            BackfillError: if there is no such range.
        """
        from backfill_assets.orchestration.selecting.bounds import find_touched_partitions
        from backfill_assets.orchestration.selecting.selections import find_table_ranges

        if by_keys or self.start is None or self.end is None:
            return find_table_ranges(tables, first=self.first, last=self.last)
        found: dict[Table, tuple[str, str]] = {}
        for table in tables:
            touched = find_touched_partitions(table, self.start, self.end, strict=self.strict)
            found[table] = touched.first, touched.last
            if touched.snapped:
                typer.echo(touched.snapped, err=True)
        return found

    @property
    def takes_downstream(self) -> bool:
        """Whether what was computed from them is meant: as asked, or as the template has it."""
        asked = self.downstream
        return bool(self.template.downstream) if asked is None else asked

    def check(self) -> None:
        """Checks that one range is given, or none; beside a column, bounds of its values.

        Raises:
            SettingsError: if it is half of one, or two.
        """
        keys, bounds = (self.first, self.last), (self.start, self.end)
        if self.column is not None and not any(bounds):
            raise SettingsError(
                f"--column {self.column}: say by --start and --end which of its values are meant"
            )
        if self.column is None and any(keys) and any(bounds):
            raise SettingsError(
                "give --from and --to, or --start and --end, not both; with --column --start and "
                "--end are values of that"
            )
        if any(bounds) and not all(bounds):
            raise SettingsError("--start and --end belong together: give both, or neither")
        if self.strict and not any(bounds):
            raise SettingsError("--strict is about --start and --end: keys cut no partition")
        if self.strict and self.column is not None:
            raise SettingsError(
                "--strict is about partitions that --start and --end cut: with --column they cut "
                "none"
            )

    def read_only(self, *, by_keys: bool) -> "frozenset[Only]":
        """Reads which partitions of the range are meant.

        Args:
            by_keys: whether --start and --end are about rows.

        Raises:
            SettingsError: if that is unknown, or all partitions of all time would be run.
        """
        from backfill_assets.orchestration.planning.plans import Only

        text = self.only or self.template.only or Only.ALL
        names = {name.strip() for name in text.split(",")}
        if not names <= set(Only):
            raise SettingsError(f"--only {text}: choose one or more of {', '.join(Only)}")
        if Only.ALL in names and not (self.first or self.last or (self.start and not by_keys)):
            raise SettingsError(
                "give --from and --to, or choose with --only what to run of all partitions: "
                f"{', '.join(one for one in Only if one is not Only.ALL)}"
            )
        return frozenset(map(Only, names))


def merge_options(
    template: Template, given: Mapping[str, str | bool | None]
) -> dict[str, str | bool | None]:
    """Merges options of runs with a template's: what is given wins."""
    return {
        name: getattr(template, name, None) if value is None else value
        for name, value in given.items()
    }


def make_plan(instance: "DagsterInstance", asked: Asked, *, chunk: str | None) -> "Plan":
    """Makes the plan of what is asked for.

    Raises:
        BackfillError: if a table or a partition is unknown, a log can't be read, or a table's
            partitions don't fit into such chunks.
    """
    asked.check()
    from backfill_assets.catalog import find_table, list_tables
    from backfill_assets.lake.warehouse import Warehouse
    from backfill_assets.orchestration.planning.planning import open_planner
    from backfill_assets.orchestration.selecting.selections import select_tables
    from backfill_assets.pipelines import list_recipes
    from backfill_assets.publishing.pacing import choose_pace

    settings, now = read_settings(), datetime.now(tz=UTC)
    tables = select_tables(
        Warehouse(settings.warehouse),
        asked.select,
        first=asked.first,
        last=asked.last,
        load_graph=load_graph,
    )
    row_filter = asked.build_row_filter(tables)
    wanted = asked.read_only(by_keys=bool(row_filter))
    sizes = {choose_pace(table, chunk=chunk).chunk for table in tables}
    ranges = asked.find_ranges(tables, by_keys=bool(row_filter))
    downstream = asked.takes_downstream
    known = list_tables() if downstream else tables
    planner = open_planner(instance, load_graph(), list_recipes(), settings, tables=known, now=now)
    plan = planner.plan(
        ranges,
        only=wanted,
        chunk=next(iter(sizes), None),
        downstream=downstream,
        row_filter=row_filter,
    )
    for one in plan.tables:  # Those downstream have to be fit for it, too.
        choose_pace(find_table(one.table), chunk=chunk)
    return plan
