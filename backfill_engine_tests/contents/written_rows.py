"""Flights and events, and tables that hold them, to read and compare."""

import datetime as dt
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import pyarrow as pa
from deltalake import write_deltalake

from backfill_engine.contents.canonical_words import find_arrow_type
from backfill_engine.extras.comparison.contents import Contents, read_contents
from backfill_engine.extras.comparison.rows import PartitionDiff
from backfill_engine.grains.buckets import Buckets
from backfill_engine.lake.partitions import Partition, Slice
from backfill_engine.lake.table_log import TableLog, read_log
from backfill_engine.lake.warehouse import Warehouse
from backfill_engine.rules.drift import Drift
from backfill_engine.tables.declarations import Column, Table, required
from backfill_engine_tests.shared_fixtures import build_days

WEEK = build_days("2013-01-01", 7)
KEY = ("flight", "origin")
MILES = Drift("miles", (500, 1000))
FLIGHTS = Table(
    layer="staging",
    name="flights",
    partition_by="day",
    columns=(
        required("flight", "INT", "Number"),
        required("origin", "STRING", "Airport"),
        required("day", "DATE", "Day"),
        Column("delay", "DOUBLE", "Minutes"),
        Column("gate", "STRING", "Gate"),
        Column("departed", "TIMESTAMP", "Instant"),
        Column("miles", "BIGINT", "Miles"),
        Column("cancelled", "BOOLEAN", "Never departed"),
    ),
    natural_key=KEY,
    rules=(MILES,),
)
EVENTS = Table(
    layer="raw",
    name="events",
    partition_by="part",
    columns=(required("part", "INT", "Part"), Column("code", "STRING", "Code")),
    grain=Buckets(1, 10_000),
)
Row = dict[str, Any]


def build_flights(days: Sequence[Partition] = WEEK, *, count: int = 20) -> list[Row]:
    """`count` flights a day, the same numbers each day; no values repeat, some are null."""
    return [
        {
            "flight": number,
            "origin": "JFK" if number % 2 else "LGA",
            "day": day.slice.start,
            "delay": None if number == 7 else number / 4,
            "gate": f'{day.key}, {number} "é"\n',
            "departed": dt.datetime(2013, 1, 1, number % 24, tzinfo=dt.UTC),
            "miles": 100 * number,
            "cancelled": number == 3,
        }
        for day in days
        for number in range(count)
    ]


def find_flight(rows: Sequence[Row], day: Partition, flight: int) -> Row:
    (found,) = (row for row in rows if row["day"] == day.slice.start and row["flight"] == flight)
    return found


def as_arrow(table: Table, rows: Sequence[Row]) -> pa.Table:
    fields = [pa.field(column.name, find_arrow_type(column)) for column in table.columns]
    return pa.Table.from_pylist(list(rows), pa.schema(fields))


def write_rows(warehouse: Warehouse, table: Table, rows: Sequence[Row]) -> int:
    """Replaces all of the table; returns the version."""
    write_deltalake(
        warehouse.uri(table),
        as_arrow(table, rows),
        mode="overwrite",
        schema_mode="overwrite",
        partition_by=[table.partition_by],
    )
    return warehouse.open(table).version()


def write_versions(warehouse: Warehouse, table: Table, *versions: Sequence[Row]) -> list[TableLog]:
    """Replaces all of the table again and again; its log as of each version."""
    numbers = [write_rows(warehouse, table, rows) for rows in versions]
    return [read_log(warehouse, table, version=number) for number in numbers]


def read_both(
    warehouse: Warehouse,
    table: Table,
    partitions: Sequence[Partition],
    before: Sequence[Row],
    after: Sequence[Row],
) -> tuple[Contents, Contents]:
    older, newer = write_versions(warehouse, table, before, after)
    return read_contents(older, partitions), read_contents(newer, partitions)


class Changes(NamedTuple):
    """Counts the rows of a partition by what became of them, as `PartitionDiff` does."""

    same: int = 0
    added: int = 0
    removed: int = 0
    changed: int = 0
    duplicates: int = 0


def count_changes(diffs: Mapping[str, PartitionDiff]) -> dict[str, Changes]:
    return {
        key: Changes(*(getattr(diff, name) for name in Changes._fields))
        for key, diff in diffs.items()
    }


def find_changes(diffs: Mapping[str, PartitionDiff]) -> dict[str, Changes]:
    """Counts the changes of the partitions that aren't equal, or have duplicates."""
    counted = count_changes(diffs)
    return {key: counted[key] for key, diff in diffs.items() if not diff.equal or diff.duplicates}


def build_parts(*parts: int) -> list[Partition]:
    return [Partition(f"part {part}", Slice(part, part + 1)) for part in parts]


def build_events(**codes: str) -> list[Row]:
    """The letters of each value as codes: `p0="ab"` is two rows of part 0."""
    return [
        {"part": int(part[1:]), "code": code} for part, letters in codes.items() for code in letters
    ]
