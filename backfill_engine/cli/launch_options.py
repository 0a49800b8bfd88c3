"""What `plan`, `launch` and `run` have in common: what to run and how, and the plan of it."""

import tomllib
from collections.abc import Sequence
from functools import cached_property
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from backfill_engine.cli.location import (
    load_catalog,
    prepare_planner,
    recover_dead_runs,
    select_tables,
)
from backfill_engine.cli.options import SELECT_HELP, build_origin
from backfill_engine.cli.terminal import echo
from backfill_engine.errors import SettingsError
from backfill_engine.orchestration.runs.option_declarations import (
    Launch,
    PaceOptions,
    RowOptions,
    RunOptions,
)

if TYPE_CHECKING:
    from dagster import DagsterInstance

    from backfill_engine.orchestration.planning.plans import Only, Plan
    from backfill_engine.tables.declarations import Table

Options = TypeVar("Options", bound=RunOptions)


class Template(PaceOptions, RowOptions):
    """Options under a name; None where it says nothing of one.

    Attributes:
        when: when to use it, for people.
        only: which partitions of the range.
        downstream: whether also what was computed from them.
        max_parallel: runs of it at once.
        priority: in the run queue.
    """

    model_config = ConfigDict(extra="forbid", strict=True)

    when: str
    only: str | None = None
    downstream: bool | None = None
    max_parallel: int | None = None
    priority: int | None = None

    def fill_in(self, options: Options) -> Options:
        """Returns options of a run, and as the template has it what they say nothing of."""
        names = (*PaceOptions.model_fields, *RowOptions.model_fields)
        unsaid = {name: getattr(self, name) for name in names if getattr(options, name) is None}
        return options.model_copy(update=unsaid)


_TEMPLATES = TypeAdapter(dict[str, Template])
_NO_TEMPLATE = Template(when="")
_NO_OPTIONS = Launch()


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
        listed = "; ".join(f"{key}: {template.when}" for key, template in templates.items())
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


class RangeOptions(BaseModel):
    """Which partitions are asked for: a selection, a range as keys or as bounds, what follows."""

    model_config = ConfigDict(frozen=True, title="Which partitions")

    first: str | None = Field(
        None, title="from", description="First partition key; without --from and --to all."
    )
    last: str | None = Field(None, title="to", description="Last partition key, included.")
    start: str | None = Field(
        None, description="In place of --from, a date, time or integer; times are UTC."
    )
    end: str | None = Field(None, description="In place of --to, the first value not meant.")
    strict: bool = Field(default=False, description="Refuse bounds inside a partition.")
    select: str | None = Field(None, description=SELECT_HELP)
    only: str | None = Field(
        None,
        description="missing, failed, withheld, stale; or all, which needs a range and is "
        "the default; missing: never tried; failed: their step ended before them; withheld: by a "
        "verdict of their audit; stale: input or code is another one.",
    )
    downstream: bool | None = Field(
        None,
        description="Also what was computed from them. With --chunk, what stands when its turn "
        "comes is left as it is.",
    )


class PartitionOptions(RangeOptions):
    """Also, of partitions as keys, which of their rows; and what a template says of it all."""

    column: str | None = Field(
        None,
        description="Whose values --start and --end are. Of the partitions --from --to only "
        "rows between them are computed anew, by a merge.",
    )
    template_name: str | None = Field(
        None,
        title="template",
        description="repair, logic_change, full_refresh; options that belong together, "
        "or those of BACKFILL_TEMPLATES; what is given besides wins.",
    )

    @cached_property
    def template(self) -> Template:
        """The options that are asked for by a name.

        Raises:
            SettingsError: if there is no such template.
        """
        catalog = load_catalog()
        return read_template(self.template_name, catalog.settings.templates)

    def find_ranges(self, tables: "Sequence[Table]") -> "tuple[dict[Table, tuple[str, str]], str]":
        """Finds first and last key of each table, and the filter of the rows that are asked for.

        It says on stderr where a bound cuts a partition.

        Returns:
            The ranges, and the filter; that is empty if all rows are asked for.

        Raises:
            BackfillError: if there is no such range, or tables can't be bounded by the column.
        """
        from backfill_engine.orchestration.selecting.selections import (
            build_column_filter,
            find_table_ranges,
            find_touched_partitions,
            is_of_partitions,
        )

        if self.start is None or self.end is None:
            return find_table_ranges(tables, first=self.first, last=self.last), ""
        if self.column is not None and not is_of_partitions(tables, self.column):
            row_filter = build_column_filter(tables, self.column, self.start, self.end)
            return find_table_ranges(tables, first=self.first, last=self.last), row_filter
        found: dict[Table, tuple[str, str]] = {}
        for table in tables:
            touched = find_touched_partitions(table, self.start, self.end, strict=self.strict)
            found[table] = touched.first, touched.last
            if touched.snapped:
                echo(touched.snapped, err=True)
        return found, ""

    @property
    def takes_downstream(self) -> bool:
        """Whether what was computed from them is meant: as asked, or as the template has it."""
        given = self.downstream
        return bool(self.template.downstream) if given is None else given

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
                f"{', '.join(only for only in Only if only is not Only.ALL)}"
            )
        return frozenset(map(Only, names))


def add_origin(request: Launch) -> Launch:
    """Adds to a request the command at work, and what kind of runs it asks for by a name."""
    origin = build_origin()
    operation = "apply" if request.rehearsal else request.operation
    return request.model_copy(
        update={"command": origin.command, "operation": origin.operation or operation}
    )


def make_plan(
    instance: "DagsterInstance",
    partitions: PartitionOptions,
    options: Launch = _NO_OPTIONS,
    *,
    recovers: bool = False,
) -> "Plan":
    """Makes the plan of the partitions that options name.

    Args:
        instance: the Dagster instance.
        partitions: which they are.
        options: of their runs, with what the template says of them.
        recovers: first record what killed runs have left, once the options can be honoured.

    Raises:
        BackfillError: if a table or a partition is unknown, a log can't be read, or a table can't
            honour the options.
    """
    from backfill_engine.orchestration.planning.launching import check_options
    from backfill_engine.orchestration.runs.chains import build_limit_tag

    load_catalog()  # settings that can't be used are named before options
    partitions.check()
    tables = select_tables(partitions.select, partitions.first, partitions.last)
    ranges, row_filter = partitions.find_ranges(tables)
    only = partitions.read_only(by_keys=bool(row_filter))
    check_options(ranges, options)
    build_limit_tag(instance, options.max_parallel, value="")
    if recovers:
        recover_dead_runs(instance)
    return prepare_planner(instance).plan(
        ranges,
        only=only,
        options=options,
        downstream=partitions.takes_downstream,
        row_filter=row_filter,
    )
