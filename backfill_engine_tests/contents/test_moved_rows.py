"""Rows tell for whom they came or went, whichever partition of the source they are in."""

import datetime as dt
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from hypothesis import given
from hypothesis import strategies as st

from backfill_engine.contents.rows import PartitionIndex, find_moved_rows
from backfill_engine.lake.partitions import Partition
from backfill_engine.lake.table_log import TableLog, read_log
from backfill_engine.lake.warehouse import Warehouse
from backfill_engine.tables.declarations import Column, Table, required
from backfill_engine_tests.contents.written_rows import Row, write_rows
from backfill_engine_tests.shared_fixtures import build_days

LANDED = Table(
    layer="raw",
    name="records",
    partition_by="landed",
    columns=(
        required("landed", "DATE", "Day on which it landed"),
        Column("day", "DATE", "Day that it is of"),
        required("value", "INT", "Value"),
    ),
)
READING = Table(
    layer="staging",
    name="records",
    partition_by="day",
    columns=(required("day", "DATE", "Day"), required("value", "INT", "Value")),
)
DAYS = build_days("2013-01-01", 5)
READ = DAYS[1:]
"""Nobody reads the first day's rows."""

rows = st.lists(
    st.builds(
        lambda landed, day, value: {"landed": landed, "day": day, "value": value},
        st.sampled_from([day.slice.start for day in DAYS]),
        st.sampled_from([None, *(day.slice.start for day in DAYS)]),
        st.integers(0, 1),
    ),
    max_size=12,
)


def find(before: TableLog, after: TableLog, partitions: Sequence[Partition] = DAYS):
    readers = PartitionIndex(READING, READ)
    return find_moved_rows(before, after, partitions, column="day", readers=readers)


def find_naively(before: Sequence[Row], after: Sequence[Row]) -> dict[str, set[str]]:
    old, new = (Counter(tuple(row.values()) for row in side) for side in (before, after))
    read = {day.slice.start: day.key for day in READ}
    moved: dict[str, set[str]] = {}
    for landed, day, _ in (old - new) + (new - old):
        if day in read:
            moved.setdefault(read[day], set()).add(landed.isoformat())
    return moved


@given(before=rows, after=rows)
def test_just_those_whose_rows_differ_as_multisets(before: list[Row], after: list[Row]) -> None:
    with TemporaryDirectory() as folder:
        warehouse = Warehouse(str(Path(folder, "warehouse")))
        versions = [write_rows(warehouse, LANDED, side) for side in (before, after)]
        older, newer = (read_log(warehouse, LANDED, version=version) for version in versions)
        assert find(older, newer) == find_naively(before, after)
        nothing = TableLog(warehouse, LANDED, None)
        assert find(nothing, newer) == find_naively([], after)


def test_only_the_partitions_asked_about_are_read(warehouse: Warehouse) -> None:
    first, second = DAYS[1], DAYS[2]
    row = {"landed": first.slice.start, "day": dt.date(2013, 1, 4), "value": 1}
    older = write_rows(warehouse, LANDED, [])
    newer = write_rows(warehouse, LANDED, [row, {**row, "landed": second.slice.start}])
    before, after = (read_log(warehouse, LANDED, version=version) for version in (older, newer))
    assert find(before, after, [second]) == {"2013-01-04": {second.key}}
    (path,) = (uri for uri in DeltaTable(after.uri).file_uris() if first.key in uri)
    Path(path).unlink()
    assert find(before, after, [second]) == {"2013-01-04": {second.key}}
    with pytest.raises(pa.ArrowInvalid, match="No such file"):
        find(before, after, [first])
