"""What `plan`, `launch` and `run` have in common: what to run and how, and the plan of it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Annotated

import typer

from backfill_engine.cli.location import load_catalog, load_graph
from backfill_engine.cli.options import Select, prepare_planner
from backfill_engine.cli.plan_options import (
    AllowNewCode,
    BoundedColumn,
    Chunk,
    Downstream,
    End,
    FirstOrAll,
    KeepGoing,
    LastOrAll,
    OnlyThese,
    OverrideProtection,
    Reason,
    Restart,
    RowFilter,
    SaveWatermark,
    SparkRemote,
    Start,
    Strict,
    TemplateName,
    Window,
    WriteModeName,
)
from backfill_engine.cli.templates import Template, read_template
from backfill_engine.cli.terminal import echo
from backfill_engine.errors import SettingsError

if TYPE_CHECKING:
    from dagster import DagsterInstance

    from backfill_engine.orchestration.planning.launching import Launch
    from backfill_engine.orchestration.planning.plans import Only, Plan
    from backfill_engine.tables.declarations import Table

Yes = Annotated[bool, typer.Option("--yes", help="Don't ask.")]


@dataclass(frozen=True, kw_only=True)
class Asked:
    """Which partitions are asked for: a selection, a range as keys or as bounds, what follows.

    Or, of partitions as keys, which of their rows: bounds of a column that isn't the partition's.
    """

    first: FirstOrAll = None
    last: LastOrAll = None
    start: Start = None
    end: End = None
    column: BoundedColumn = None
    strict: Strict = False
    select: Select = None
    only: OnlyThese = None
    downstream: Downstream = None
    template_name: TemplateName = None

    @cached_property
    def template(self) -> Template:
        """The options that are asked for by a name.

        Raises:
            SettingsError: if there is no such template.
        """
        catalog = load_catalog()
        return read_template(self.template_name, catalog.settings.templates)

    def build_row_filter(self, tables: "Sequence[Table]") -> str:
        """Builds the filter of the rows that are asked for; empty if that is all of them.

        Raises:
            PartitionRangeError: if tables can't be bounded by the column.
        """
        from backfill_engine.orchestration.selecting.column_bounds import (
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
        from backfill_engine.orchestration.selecting.bounds import find_touched_partitions
        from backfill_engine.orchestration.selecting.selections import find_table_ranges

        if by_keys or self.start is None or self.end is None:
            return find_table_ranges(tables, first=self.first, last=self.last)
        found: dict[Table, tuple[str, str]] = {}
        for table in tables:
            touched = find_touched_partitions(table, self.start, self.end, strict=self.strict)
            found[table] = touched.first, touched.last
            if touched.snapped:
                echo(touched.snapped, err=True)
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
        from backfill_engine.orchestration.planning.plans import Only

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


@dataclass(frozen=True, kw_only=True)
class HowToRun:
    """How it is to be run: what its runs are told, beside their partitions."""

    chunk: Chunk = None
    restart: Restart = None
    keep_going: KeepGoing = None
    window: Window = None
    write_mode: WriteModeName = None
    row_filter: RowFilter = None
    save_watermark: SaveWatermark = None
    reason: Reason = ""
    override_protection: OverrideProtection = ""
    allow_new_code: AllowNewCode = ""
    spark_remote: SparkRemote = None

    def fill_in(self, template: Template) -> "HowToRun":
        """Returns the same, and as the template has it what nothing is said of here."""
        of_template = {
            "chunk": template.chunk,
            "restart": template.restart,
            "keep_going": template.keep_going,
            "window": template.window,
            "write_mode": template.write_mode,
            "row_filter": template.filter,
        }
        unsaid = {name: of for name, of in of_template.items() if getattr(self, name) is None}
        return replace(self, **unsaid)

    def build_launch(self) -> "Launch":
        """Builds what the runs are told."""
        from backfill_engine.orchestration.planning.launching import Launch

        return Launch(
            reason=self.reason,
            options={
                "chunk": self.chunk,
                "restart": self.restart,
                "keep_going": self.keep_going,
                "window": self.window,
                "write_mode": self.write_mode,
                "filter": self.row_filter,
                "save_watermark": self.save_watermark,
            },
            override_protection=self.override_protection,
            allow_new_code=self.allow_new_code,
            spark_remote=self.spark_remote,
        )


def make_plan(instance: "DagsterInstance", asked: Asked, how: HowToRun) -> "Plan":
    """Makes the plan of what is asked for.

    Args:
        instance: the Dagster instance.
        asked: which partitions.
        how: how they are to be run, with what the template says of it.

    Raises:
        BackfillError: if a table or a partition is unknown, a log can't be read, or a table's
            partitions don't fit into such chunks.
    """
    catalog = load_catalog()
    asked.check()
    from backfill_engine.orchestration.selecting.selections import select_tables
    from backfill_engine.publishing.pacing import IN_ONE_GO, choose_pace
    from backfill_engine.publishing.write_modes.options import OVERWRITE, WriteOptions

    mode, kept = how.write_mode, how.row_filter
    written = WriteOptions(write_mode=mode or OVERWRITE.write_mode, row_filter=kept or "")
    tables = select_tables(
        catalog,
        catalog.warehouse,
        asked.select,
        first=asked.first,
        last=asked.last,
        load_graph=load_graph,
    )
    row_filter = asked.build_row_filter(tables)
    wanted = asked.read_only(by_keys=bool(row_filter))
    paces = {choose_pace(table, chunk=how.chunk, restart=how.restart) for table in tables}
    ranges = asked.find_ranges(tables, by_keys=bool(row_filter))
    downstream = asked.takes_downstream
    known = catalog.tables if downstream else tables
    plan = prepare_planner(instance, known).plan(
        ranges,
        only=wanted,
        pace=next(iter(paces), IN_ONE_GO),
        options=written if mode or kept else None,
        downstream=downstream,
        row_filter=row_filter,
    )
    for one in plan.tables:  # Those downstream have to be fit for it, too.
        choose_pace(catalog.find_table(one.table), chunk=how.chunk, restart=how.restart)
    return plan
