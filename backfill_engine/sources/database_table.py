"""A table, or a query, of a database: its rows become lines of JSON, as they would land as files.

Spark's tasks ask the database, each for partitions of its own, by SQLAlchemy: no driver in Java is
needed. Which rows there are is asked by one query, in this process.
"""

import base64
import datetime as dt
import json
import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import KW_ONLY, dataclass, field, replace
from decimal import Decimal
from typing import Any, ClassVar, NamedTuple

import pyarrow as pa
import sqlalchemy as sa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from backfill_engine.audit_columns import LANDED_FILE, LANDED_LINE
from backfill_engine.errors import DeclarationError, LandingNotFoundError
from backfill_engine.lake.partitions import Partition, Slice, merge_slices, sort_partitions
from backfill_engine.lake.reader import add_folder
from backfill_engine.rules.rule import INTEGERS
from backfill_engine.sources.databases import (
    HASHES,
    build_hash,
    build_key,
    describe_place,
    is_within,
    list_parts,
    open_database,
    read_value,
)
from backfill_engine.sources.evidence import EvidenceListing
from backfill_engine.sources.source import Source
from backfill_engine.tables.column_types import BARE
from backfill_engine.tables.columns import Column, check_columns
from backfill_engine.tables.declarations import Table

_ROWS_OF_A_READ = 1_000_000
"""Rows of a partition above which it is read in parts, where `split_by` says by what."""

_TASKS, _BATCH_ROWS, _FIELD_BYTES = 64, 10_000, 16


class FoundRows(NamedTuple):
    """What the database says of a group of rows.

    Attributes:
        rows: how many there are.
        state: sum of their hashes, or their greatest `updated_at`.
        smallest: of `split_by`; None without it, and so is `largest`.
        largest: of `split_by`.
    """

    rows: int
    state: Any
    smallest: int | None = None
    largest: int | None = None


class Read(NamedTuple):
    """What is read by one query: rows of a partition, maybe only some by their `split_by`.

    Attributes:
        slice: of the partition.
        first: the first value that is read; None from the least on, nulls included.
        end: the first value after these; None for up to the greatest.
    """

    slice: Slice
    first: int | None = None
    end: int | None = None


@dataclass(frozen=True)
class DatabaseTable(Source):
    """Rows of a database: `DatabaseTable("shop.orders", url="SHOP_DB", fields=…, where="day")`.

    Attributes:
        table: with its schema, where it needs that; of a query what the rows are called.
        url: name of the environment variable that has the URL, as SQLAlchemy writes URLs; or the
            URL itself. It is stored and shown nowhere.
        fields: the columns that are read.
        where: the column that says which partition a row is of: a day, a time in UTC, an integer.
        query: that gives the rows, in place of a table.
        updated_at: a column that grows with each change of a row, which is quicker to compare than
            hashes of all rows. PostgreSQL and SQLite have these.
        split_by: a column of integers, by which a partition of over a million rows is read by
            several queries.

    Raises:
        DeclarationError: when it is made, if it can't be as it is declared.
    """

    table: str
    _: KW_ONLY
    # Neither the place nor the way of reading decides a row: no part of the code version.
    url: str = field(repr=False)
    fields: tuple[Column, ...]
    where: str
    query: str = ""
    updated_at: str = ""
    split_by: str = field(default="", repr=False)
    reads_lines: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_columns(f"`{self.table}`", self.fields)
        for name in ("table", "url", "fields", "where"):
            if not getattr(self, name):
                raise DeclarationError(f"database table `{self.table}`: `{name}` is empty")

    @property
    def dataset(self) -> str:  # type: ignore[override]
        """What it is called."""
        return self.table

    @property
    def record_fields(self) -> tuple[Column, ...]:  # type: ignore[override]
        """What a row holds."""
        return self.fields

    def refuse_table(self, table: Table) -> None:
        """Refuses a table by names, and one by days or times where an integer is to say these."""
        if table.grain.is_named:
            raise DeclarationError(
                f"{table.key}: `where` of `{self.table}` is a day, a time or an integer, and the "
                f"table is partitioned by {table.grain}: read it into a table by days, and that "
                "into this one"
            )
        kinds = {column.name: column.parsed_type.kind for column in self.fields}
        kind = kinds.get(self.where)
        if kind in INTEGERS and table.grain.bound_type != "BIGINT":
            raise DeclarationError(
                f"{table.key}: `where` of `{self.table}` is `{self.where}`, which is {kind} and "
                f"says no partition by {table.grain}: give a `query` that makes a day or a time of "
                f"it, as SELECT *, to_date({self.where}::text, 'YYYYMMDD') AS day FROM {self.table}"
            )

    def describe_place(self, table: Table) -> tuple[str, str]:
        """Describes it."""
        return "sql", self.table

    def locate(self, root: str) -> str:
        """Names the environment variable, or the database without who asks it."""
        return describe_place(self.url) if "://" in self.url else self.url

    def list_files(
        self, root: str, table: Table, partitions: Iterable[Partition]
    ) -> "DatabaseListing":
        """Asks what rows partitions have, by one query.

        Raises:
            LandingNotFoundError: if the environment variable isn't set.
            LandingError: if the database can't be asked.
        """
        wanted = sort_partitions(partitions)
        found, elsewhere = self._ask(table, wanted) if wanted else ({}, 0)
        what = f"newest `{self.updated_at}`" if self.updated_at else "hash"
        return DatabaseListing(
            self,
            root,
            table,
            wanted,
            {key: f"{rows.rows} rows, {what} {rows.state}" for key, rows in found.items()},
            {key: rows.rows for key, rows in found.items()},
            (f"{elsewhere:,} rows of {self.table} without a `{self.where}`",) if elsewhere else (),
            found,
        )

    def find_url(self) -> str:
        """Finds the URL, by the environment if that has it.

        Raises:
            LandingNotFoundError: if the variable isn't set.
        """
        url = self.url if "://" in self.url else os.environ.get(self.url, "")
        if not url:
            raise LandingNotFoundError(
                f"{self.table}: the environment variable {self.url} isn't set: set it to the URL "
                "of the database, as postgresql://user:password@host/name; nothing was written"
            )
        return url

    def connect(self) -> AbstractContextManager[sa.Connection]:
        """Opens the database; it raises LandingError if it can't be opened, or asked."""
        return open_database(self.find_url(), self.table)

    def _ask(
        self, table: Table, partitions: Sequence[Partition]
    ) -> tuple[dict[str, FoundRows], int]:
        """Asks what rows partitions have, by key; and how many rows say no partition."""
        grain, bounds = table.grain, partitions[0].slice
        keys = {partition.slice.start: partition.key for partition in partitions}
        found: dict[str, FoundRows] = {}
        elsewhere = 0
        with self.connect() as connection:
            where = build_key(self.where, connection.dialect, bounds)
            parts = list_parts(where, bounds)
            figures = [sa.func.count(), self._build_state(connection.dialect)]
            if self.split_by:
                figures += [agg(sa.column(self.split_by)) for agg in (sa.func.min, sa.func.max)]
            asked = (
                sa.select(*parts, *figures)
                .select_from(self._build_from())
                .where(
                    sa.or_(
                        where.is_(None),
                        *(
                            is_within(where, stretch, connection.dialect)
                            for stretch in merge_slices(part.slice for part in partitions)
                        ),
                    )
                )
                .group_by(*parts)
            )
            for row in connection.execute(asked):
                values, rows = row[: len(parts)], FoundRows(*row[len(parts) :])
                if None in values:
                    elsewhere += rows.rows
                elif key := keys.get(grain.find_first(read_value(values, bounds))):
                    found[key] = self._add(found[key], rows) if key in found else rows
        if not self.updated_at:
            found = {
                key: rows._replace(state=f"{int(rows.state) % HASHES:016x}")
                for key, rows in found.items()
            }
        return found, elsewhere

    def _add(self, rows: FoundRows, more: FoundRows) -> FoundRows:
        states = [state for state in (rows.state, more.state) if state is not None]
        return FoundRows(
            rows.rows + more.rows,
            max(states, default=None) if self.updated_at else sum(map(int, states)),
            min((n for n in (rows.smallest, more.smallest) if n is not None), default=None),
            max((n for n in (rows.largest, more.largest) if n is not None), default=None),
        )

    def _build_from(self) -> Any:
        if self.query:
            # A colon is no parameter.
            query = self.query.strip().rstrip(";").replace(":", r"\:")
            return sa.text(f"({query}) AS rows_of_query")
        schema, _, name = self.table.rpartition(".")
        return sa.table(name, schema=schema or None)

    def _build_state(self, dialect: sa.Dialect) -> sa.ColumnElement[Any]:
        if self.updated_at:
            return sa.func.max(sa.column(self.updated_at))
        return build_hash(dict.fromkeys((self.where, *(f.name for f in self.fields))), dialect)

    def plan_reads(self, partition: Partition, found: FoundRows) -> list[Read]:
        """Plans the queries that read a partition."""
        smallest, largest = found.smallest, found.largest
        parts = -(-found.rows // _ROWS_OF_A_READ)
        if smallest is None or largest is None or parts < 2:
            return [Read(partition.slice)]
        width = -(-(int(largest) - int(smallest) + 1) // parts)
        cuts = [int(smallest) + width * part for part in range(1, parts)]
        ends = zip((None, *cuts), (*cuts, None), strict=True)
        return [Read(partition.slice, first, end) for first, end in ends]

    def stream_lines(self, connection: sa.Connection, read: Read) -> Iterator[pa.RecordBatch]:
        """Streams rows: each as a line of JSON, beside the text of what says its partition."""
        where, split = sa.column(self.where), sa.column(self.split_by)
        bounded = build_key(self.where, connection.dialect, read.slice)
        asked = (
            sa.select(*(sa.column(field.name) for field in self.fields), where.label("_where"))
            .select_from(self._build_from())
            .where(is_within(bounded, read.slice, connection.dialect))
        )
        if read.first is not None:
            asked = asked.where(split >= read.first)
        if read.end is not None:
            is_below = split < read.end
            asked = asked.where(is_below if read.first is not None else is_below | split.is_(None))
        rows = connection.execution_options(yield_per=_BATCH_ROWS).execute(asked)
        for batch in rows.partitions():
            yield pa.RecordBatch.from_pydict(
                {
                    LANDED_LINE: pa.array([self._write_line(row) for row in batch], pa.string()),
                    "start": pa.array([_write_start(row[-1], read.slice) for row in batch]),
                }
            )

    def _write_line(self, row: Sequence[Any]) -> str:
        values = zip(self.fields, row, strict=False)
        return json.dumps(
            {field.name: _write_field(value, field.type) for field, value in values},
            ensure_ascii=False,
        )


@dataclass(frozen=True)
class DatabaseListing(EvidenceListing):
    """A `Listing` of rows of a database, by partition, ascending.

    Attributes:
        source: whose.
        found: what the database said, by partition key.
    """

    source: DatabaseTable
    found: Mapping[str, FoundRows] = field(default_factory=dict)

    def measure_bytes(self) -> Mapping[str, int]:
        """Estimates the bytes of rows, by partition key."""
        width = _FIELD_BYTES * len(self.source.fields)
        return {key: rows * width for key, rows in self.count_records().items()}

    def read(self, spark: SparkSession, kind: str = "") -> DataFrame:
        """Reads the rows of the listed partitions as lines, by queries of Spark's tasks.

        Returns:
            `value` STRING, the row as JSON; the table's partition column (and its folder column):
            the first value of its partition, and of a time its own; `source_file` STRING, the name
            of the table.

        Raises:
            LandingError: if a kind of files is asked for.
        """
        self.refuse_kind(kind)
        source = replace(self.source, url=self.source.find_url())  # Tasks have no environment.
        reads = [
            read
            for partition in self.partitions
            if partition.key in self.found
            for read in source.plan_reads(partition, self.found[partition.key])
        ]

        def read_in_tasks(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            with source.connect() as connection:
                for batch in batches:
                    for number in batch.column(0).to_pylist():
                        yield from source.stream_lines(connection, reads[number])

        tasks = spark.range(0, len(reads), 1, max(1, min(len(reads), _TASKS)))
        lines = tasks.mapInArrow(read_in_tasks, f"{LANDED_LINE} string, start string")
        by, grain = self.table.partition_by, self.table.grain
        start = lines.withColumn("start", F.col("start").cast(grain.bound_type))
        return add_folder(
            start.select(
                LANDED_LINE,
                F.expr(grain.stored_sql("start")).alias(by),
                F.lit(self.dataset).alias(LANDED_FILE),
            ),
            self.table,
        )

    def count(self, spark: SparkSession) -> Mapping[str, int]:
        """Counts the rows of all listed partitions, by key, as the database has counted them."""
        counted = self.count_records()
        return {part.key: counted.get(part.key, 0) for part in self.partitions}


def _write_start(value: object, bounds: Slice) -> str:
    """Writes what a row says of its partition: a time; else the partition's first value."""
    if not isinstance(bounds.start, dt.datetime):
        return str(bounds.start)
    try:
        time = value if isinstance(value, dt.datetime) else dt.datetime.fromisoformat(str(value))
    except ValueError:
        return str(bounds.start)
    return str(time.astimezone(dt.UTC) if time.tzinfo else time.replace(tzinfo=dt.UTC))


def _write_field(value: Any, type_: str) -> Any:
    """Writes a value as JSON's text of a declared type would be: see your-own-pipeline.md."""
    match value:
        case None:
            return None
        case 0 | 1 if type_ == "BOOLEAN":
            return bool(value)  # SQLite has no others.
        case Decimal() if type_ in BARE and value.is_finite():
            return int(value) if value == value.to_integral_value() else float(value)
    written = _write_value(value)
    if type_ != "STRING" or isinstance(written, str):
        return written
    return json.dumps(written, ensure_ascii=False)


def _write_value(value: Any) -> Any:
    match value:
        case None | bool() | int() | str():
            return value
        case float() if math.isfinite(value):
            return value
        case dt.datetime() if value.tzinfo is not None:
            return value.astimezone(dt.UTC).isoformat().replace("+00:00", "Z")
        case dt.date() | dt.time():
            return value.isoformat()
        case bytes() | memoryview():
            return base64.b64encode(value).decode()
        case list() | tuple():
            return [*map(_write_value, value)]
        case dict():
            return {str(name): _write_value(part) for name, part in value.items()}
        case _:
            return str(value)
