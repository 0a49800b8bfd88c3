"""Tables in a few lines: a function of frames, and what each frame holds.

    files = CsvFiles("trips/{partition:%Y-%m}.csv", fields=FIELDS, where="picked_up")

    @table("staging/trips", partition_by="day", inputs={"trips": files})
    def trips(trips):
        return trips.select("day", "zone", "fare")

    @table("features/zone_weeks", partition_by="until", inputs={"trips": window(trips, days=7)})
    def zone_weeks(trips):
        return trips.groupBy("until", "zone").agg(F.sum("fare").alias("fares"))

What `@table_asset` takes is found from this: columns, mappings, what is read, and what is counted.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from backfill_engine.audit_columns import (
    LANDED_FILE,
    REJECT_REASON,
    REJECTED_FILE,
    REJECTED_LINE,
    is_reserved,
)
from backfill_engine.errors import DeclarationError, LandingError
from backfill_engine.grains.dates import DAYS, Daily
from backfill_engine.grains.grain import Grain
from backfill_engine.orchestration.instance.partition_definitions import map_offsets
from backfill_engine.rules.rule import Rule
from backfill_engine.sources.input_window import InputWindow
from backfill_engine.sources.source import Source
from backfill_engine.table_assets import TableAsset, Upstream, is_same_key, table_asset
from backfill_engine.tables.columns import Column, required
from backfill_engine.tables.declarations import Table
from backfill_engine.transforms.landed_rows import build_landed_rows

Transform: TypeAlias = Callable[..., DataFrame]


@dataclass(frozen=True)
class DayWindow:
    """The rows of an input of as many days: those of a partition's own day, and of days before."""

    table: Table
    days: int


def window(read: TableAsset | Table, *, days: int) -> DayWindow:
    """Declares an input of which a partition reads several days; both tables are by days.

    The function gets each row once for each partition that reads the row, which the column says
    that its table is partitioned by.

    Args:
        read: the input.
        days: how many, with the partition's own day as the last.

    Raises:
        DeclarationError: if it isn't partitioned by days, or for no day at all.
    """
    found = _find_table(read)
    if not isinstance(found.grain, Daily) or found.grain.column_types != ("DATE",) or days < 1:
        raise DeclarationError(
            f"a window of {days} days of {found.key}, by {found.grain}: give one day or more of a "
            "table by days; for other windows there is `@table_asset`"
        )
    return DayWindow(found, days)


Input: TypeAlias = Source | TableAsset | Table | Upstream | DayWindow
"""What a frame is read from: what lands, or a table, the same partition of it or a window."""


def table(
    key: str,
    *,
    partition_by: str = "",
    inputs: Mapping[str, Input],
    columns: Sequence[Column] = (),
    grain: Grain[Any] = DAYS,
    rules: Sequence[Rule] = (),
    files: Sequence[Path | str] = (),
    **declaration: Any,
) -> Callable[[Transform], TableAsset]:
    """Decorates a function of frames, which computes a table.

    Columns that aren't declared are what the function computes in the first run; from then on they
    stay as they are stored, and a run that computes another type is refused.

    Args:
        key: `layer/name` of the table.
        partition_by: the column whose values decide the partition; left out of a table that is
            read and written whole.
        inputs: what each parameter of the function is read from. Of files it gets the declared
            fields, typed, without the records that are rejected, and beside them the partition's
            column and `source_file`; fields that aren't declared aren't read. Of Parquet without
            declared fields it gets all columns as they are.
        columns: those to declare: of a natural key, or that rules are about.
        grain: which values of the column make one partition.
        rules: what a partition must meet, beside what every table must.
        files: that the function reads besides, as SQL.
        declaration: what else `Table` takes, such as `natural_key`.

    Raises:
        DeclarationError: if the table couldn't be as it is declared.
    """
    layer, _, name = key.partition("/")
    sources = [read for read in inputs.values() if isinstance(read, Source)]
    if len(sources) > 1:
        raise DeclarationError(
            f"{key}: it reads several sources: read each into a table of its own, then these"
        )
    for read in inputs.values():
        if isinstance(read, DayWindow) and read.table.partition_by == partition_by:
            raise DeclarationError(
                f"{key} has rows of several days of {read.table.key}, whose `{partition_by}` says "
                "of which: call its own partition column otherwise"
            )
    if partition_by and not any(column.name == partition_by for column in columns):
        columns = (required(partition_by, grain.column_types[0]), *columns)
    declared = Table(
        layer,
        name,
        partition_by,
        tuple(columns),
        grain=grain,
        rules=tuple(rules),
        infers=True,
        **declaration,
    )

    def decorate(function: Transform) -> TableAsset:
        computation = _Computation(declared, function, tuple(inputs.items()))
        return table_asset(
            declared,
            inputs=list(computation.list_upstreams()),
            landing=sources[0] if sources else None,
            count_source=computation.count if computation.has_window else None,
            files=files,
        )(computation)

    return decorate


def _find_table(read: TableAsset | Table) -> Table:
    return read.table if isinstance(read, TableAsset) else read


def _build_upstream(read: TableAsset | Table | Upstream | DayWindow) -> Upstream:
    match read:
        case DayWindow():
            return Upstream(read.table, map_offsets(start=1 - read.days))
        case Upstream():
            return read
        case _:
            return Upstream(_find_table(read))


@dataclass(frozen=True)
class _Computation:
    """Computes a table from its window: reads a frame for each parameter, and calls the function.

    Attributes:
        table: as declared.
        function: of frames, by the names of the inputs.
        inputs: by name.
    """

    table: Table = field(repr=False)
    function: Transform
    inputs: tuple[tuple[str, Input], ...]

    def __post_init__(self) -> None:
        # Its description and its module are the function's.
        for name in ("__doc__", "__module__"):
            object.__setattr__(self, name, getattr(self.function, name))

    def __call__(self, window: InputWindow) -> DataFrame:
        rejects: DataFrame | None = None
        frames: dict[str, DataFrame] = {}
        for name, read in self.inputs:
            if isinstance(read, Source) and read.reads_lines:
                frames[name], rejects = self._read_records(window, read)
            elif isinstance(read, Source):
                frames[name] = window.read_landing()
            else:
                days = read.days if isinstance(read, DayWindow) else 1
                frames[name] = self._read_table(window, _build_upstream(read), days)
        rows = self.function(**frames)
        if rejects is None:
            return rows
        if LANDED_FILE not in rows.columns:
            rejects = rejects.withColumnRenamed(LANDED_FILE, REJECTED_FILE)
        # Beside the rows, so that the function sees good records only, and can lose no others.
        return rows.unionByName(rejects, allowMissingColumns=True)

    @property
    def has_window(self) -> bool:
        """Whether its only input is a window."""
        return len(self.inputs) == 1 and isinstance(self.inputs[0][1], DayWindow)

    def count(self, window: InputWindow) -> Mapping[str, int]:
        """Counts the rows of each partition's window."""
        ((_, read),) = self.inputs
        assert isinstance(read, DayWindow)
        return window.count_input(read.table, before=read.days - 1)

    def list_upstreams(self) -> Iterator[Upstream]:
        """Lists the tables that it reads."""
        for _, read in self.inputs:
            if not isinstance(read, Source):
                yield _build_upstream(read)

    def _read_records(self, window: InputWindow, source: Source) -> tuple[DataFrame, DataFrame]:
        """Reads records as typed rows, and apart from these those that are rejected."""
        by, grain, fields = self.table.partition_by, self.table.grain, source.record_fields
        columns = required(by, grain.column_types[0]), *fields, Column(LANDED_FILE, "STRING")
        landed = Table(self.table.layer, self.table.name, by, columns, grain=grain)
        rows = window.read_landed_rows()
        if rows is None and not fields:
            raise LandingError(
                f"{self.table.key}: none of its files is there that would tell its columns: land "
                "one again, or declare `fields`; nothing was written"
            )
        if rows is None:
            rows = build_landed_rows(window.read_landing(), landed, fields)
            names = list(landed.column_names)
        else:
            names = [name for name in rows.columns if not is_reserved(name)]
        is_rejected = F.col(REJECT_REASON).isNotNull()
        rejects = rows.where(is_rejected).select(by, LANDED_FILE, REJECT_REASON, REJECTED_LINE)
        return rows.where(~is_rejected).select(*names), rejects

    def _read_table(self, window: InputWindow, upstream: Upstream, days: int) -> DataFrame:
        by, found = self.table.partition_by, upstream.table
        if not found.partition_by:
            return window.read_whole(found)
        rows = window.read(found, column=found.partition_by, days_before=days - 1)
        if days == 1:
            has_same_key = upstream.mapping is None or is_same_key(upstream.mapping)
            if has_same_key and found.partition_by != by and found.grain == self.table.grain:
                return rows.withColumn(by, F.col(found.partition_by))
            return rows
        until = F.sequence(found.partition_by, F.date_add(found.partition_by, days - 1))
        return window.keep_partitions(rows.withColumn(by, F.explode(until)))
