"""What `plan`, `launch` and `run` have in common: what to run and how, and the plan of it."""

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

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
from backfill_engine.cli.terminal import echo
from backfill_engine.errors import SettingsError

if TYPE_CHECKING:
    from dagster import DagsterInstance

    from backfill_engine.orchestration.planning.launching import Launch
    from backfill_engine.orchestration.planning.plans import Only, Plan
    from backfill_engine.tables.declarations import Table

Yes = Annotated[bool, typer.Option("--yes", help="Don't ask.")]


class Template(BaseModel):
    """Options under a name; None where it says nothing of one.

    Attributes:
        when: when to use it, for people.
        only: which partitions of the range.
        downstream: whether also what was computed from them.
        chunk: what is committed and recorded together.
        restart: whether chunks are computed again that stand.
        keep_going: whether it goes on after a chunk that failed.
        window: when chunks may begin.
        write_mode: how rows are written.
        filter: which computed rows count.
        max_parallel: runs of it at once.
        priority: in the run queue.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    when: str
    only: str | None = None
    downstream: bool | None = None
    chunk: str | None = None
    restart: bool | None = None
    keep_going: bool | None = None
    window: str | None = None
    write_mode: str | None = None
    filter: str | None = None
    max_parallel: int | None = None
    priority: int | None = None


_TEMPLATES = TypeAdapter(dict[str, Template])
_NO_TEMPLATE = Template(when="")


def read_template(name: str | None, path: Path | None) -> Template:
    """Reads a template; one that says nothing, without a name.

    Args:
        name: of it.
        path: the user's file; None for those of the package.

    Raises:
        SettingsError: if the file can't be read, or has no such template.
    """
    if name is None:
        return _NO_TEMPLATE
    templates = read_templates(path)
    if name not in templates:
        listed = "; ".join(f"{key}: {one.when}" for key, one in templates.items())
        raise SettingsError(f"there is no template {name}; there are: {listed}")
    return templates[name]


def read_templates(path: Path | None) -> dict[str, Template]:
    """Reads all templates of a file, or those of the package.

    Raises:
        SettingsError: if it can't be read, or says what no template says.
    """
    source = path if path is not None else files("backfill_engine").joinpath("templates.toml")
    try:
        return _TEMPLATES.validate_python(tomllib.loads(source.read_text(encoding="utf-8")))
    except OSError as error:
        raise SettingsError(f"BACKFILL_TEMPLATES={path} can't be read: {error.strerror}") from None
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise SettingsError(f"templates in {source}: {where}: {first['msg']}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsError(f"templates in {source}: {error}") from None


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
        from backfill_engine.orchestration.selecting.bounds import (
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
