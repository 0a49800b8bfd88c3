"""Every kind of difference between two contents is found, in exactly its partition."""

import datetime as dt
import math
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from deltalake import DeltaTable, write_deltalake
from hypothesis import event, given
from hypothesis import strategies as st

from backfill_assets.errors import GoldenError
from backfill_assets.lake.slices import Partition, Slice
from backfill_assets.lake.warehouse import Warehouse
from backfill_assets.quality.comparison import (
    Contents,
    ExampleKey,
    PartitionDiff,
    RowChanges,
    build_diffs,
    compare_contents,
    find_example_keys,
    read_contents,
    read_golden,
)
from backfill_assets.quality.drift import MIN_VALUES, compute_psi
from backfill_assets.quality.rows import TableRows, find_arrow_type
from backfill_assets.tables.declarations import Column, Table, required
from backfill_assets.tables.rules import Drift
from backfill_assets_tests.conftest import build_days

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
)
EVENTS_BY_CODE = replace(
    EVENTS, columns=(EVENTS.columns[0], required("code", "STRING", "Code")), natural_key=("code",)
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
    (found,) = (one for one in rows if one["day"] == day.slice.start and one["flight"] == flight)
    return found


def as_arrow(table: Table, rows: Sequence[Row]) -> pa.Table:
    fields = [pa.field(one.name, find_arrow_type(one)) for one in table.columns]
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


def read_both(
    warehouse: Warehouse,
    table: Table,
    partitions: Sequence[Partition],
    before: Sequence[Row],
    after: Sequence[Row],
) -> tuple[Contents, Contents]:
    versions = [write_rows(warehouse, table, rows) for rows in (before, after)]
    older, newer = (
        read_contents(warehouse, table, partitions, version=version) for version in versions
    )
    return older, newer


def find_changes(changes: dict[str, RowChanges]) -> dict[str, RowChanges]:
    """Of the partitions that aren't equal, or have duplicates."""
    return {key: one for key, one in changes.items() if not one.equal or one.duplicates}


def build_parts(*parts: int) -> list[Partition]:
    return [Partition(f"part {part}", Slice(part, part + 1)) for part in parts]


def build_events(**codes: str) -> list[Row]:
    """The letters of each value as codes: `p0="ab"` is two rows of part 0."""
    return [{"part": int(part[1:]), "code": code} for part, some in codes.items() for code in some]


def test_equal_contents_in_another_order_and_in_other_files(warehouse: Warehouse) -> None:
    rows = build_flights()
    older = write_rows(warehouse, FLIGHTS, rows)
    write_rows(warehouse, FLIGHTS, rows[::2][::-1])
    write_deltalake(warehouse.uri(FLIGHTS), as_arrow(FLIGHTS, rows[1::2]), mode="append")
    newer = warehouse.open(FLIGHTS).version()
    before = read_contents(warehouse, FLIGHTS, WEEK[::-1], version=older)
    after = read_contents(warehouse, FLIGHTS, WEEK, version=newer)
    expected = {day.key: RowChanges(same=20) for day in WEEK}
    assert compare_contents(before, after) == expected
    assert list(compare_contents(before, after)) == [day.key for day in WEEK]
    assert find_example_keys(before, after) == {}
    diffs = build_diffs(FLIGHTS, before, after)
    assert all(diff.equal for diff in diffs.values())


def test_every_kind_of_difference_is_found_in_exactly_its_partition(warehouse: Warehouse) -> None:
    before, after = build_flights(), build_flights()
    after.remove(find_flight(after, WEEK[0], 4))
    after.append({**find_flight(after, WEEK[1], 4), "flight": 99})
    find_flight(after, WEEK[2], 5)["delay"] += 0.001
    find_flight(after, WEEK[2], 6)["gate"] = "elsewhere"
    after.append(find_flight(after, WEEK[3], 8))
    find_flight(after, WEEK[4], 9)["delay"] = None
    find_flight(after, WEEK[5], 10)["day"] = WEEK[6].slice.start
    older, newer = read_both(warehouse, FLIGHTS, WEEK, before, after)
    assert compare_contents(older, newer) == {
        WEEK[0].key: RowChanges(same=19, removed=1),
        WEEK[1].key: RowChanges(same=20, added=1),
        WEEK[2].key: RowChanges(same=18, changed=2),
        WEEK[3].key: RowChanges(same=20, added=1, duplicates=1),
        WEEK[4].key: RowChanges(same=19, changed=1),
        WEEK[5].key: RowChanges(same=19, removed=1),
        WEEK[6].key: RowChanges(same=20, added=1, duplicates=1),
    }
    found = find_example_keys(older, newer)
    expected = {
        WEEK[0].key: {("missing", 4)},
        WEEK[1].key: {("extra", 99)},
        WEEK[2].key: {("changed", 5), ("changed", 6)},
        WEEK[3].key: {("extra", 8)},
        WEEK[4].key: {("changed", 9)},
        WEEK[5].key: {("missing", 10)},
        WEEK[6].key: {("extra", 10)},
    }
    assert {
        key: {(one.difference, one.values["flight"]) for one in some} for key, some in found.items()
    } == expected
    assert found[WEEK[0].key] == (ExampleKey("missing", {"flight": 4, "origin": "LGA"}),)
    shares = {key: one.null_shares for key, one in build_diffs(FLIGHTS, older, newer).items()}
    assert shares.pop(WEEK[4].key) == {"delay": (0.05, 0.1)}
    assert {name for one in shares.values() for name in one} == {"delay"}


def test_each_column_is_compared(warehouse: Warehouse) -> None:
    days = build_days("2013-01-01", len(FLIGHTS.columns))
    before, after = build_flights(days), build_flights(days)
    other = {"delay": -1.5, "gate": "", "departed": dt.datetime(2014, 1, 1, tzinfo=dt.UTC)}
    other |= {"miles": -1, "cancelled": True}
    for day, (name, value) in zip(days, other.items(), strict=False):
        find_flight(after, day, 2)[name] = value
    older, newer = read_both(warehouse, FLIGHTS, days, before, after)
    changes = find_changes(compare_contents(older, newer))
    assert changes == {day.key: RowChanges(same=19, changed=1) for day in days[: len(other)]}


def test_duplicates_change_one_by_one(warehouse: Warehouse) -> None:
    rows = build_flights(WEEK[:1], count=1)
    other = {**rows[0], "gate": "other"}
    before = [*rows * 3, other]
    after = [rows[0], *[{**rows[0], "gate": "third"}] * 4]
    older, newer = read_both(warehouse, FLIGHTS, WEEK[:1], before, after)
    expected = RowChanges(same=1, changed=3, added=1, duplicates=4)
    assert compare_contents(older, newer) == {WEEK[0].key: expected}
    assert find_example_keys(older, newer) == {
        WEEK[0].key: (ExampleKey("changed", {"flight": 0, "origin": "LGA"}),)
    }


def test_nulls_are_not_the_numbers_that_stand_for_them(warehouse: Warehouse) -> None:
    """The canonical words of null, NaN and infinity are those of numbers, too."""
    alike = [0x6E756C6C / 1e6, 0x6E616E / 1e6, 0x696E66 / 1e6]
    pairs = [*zip(alike, [None, math.nan, math.inf], strict=True), (None, math.nan), (0.0, 1e-6)]
    days = build_days("2013-01-01", len(pairs) + 1)
    before, after = build_flights(days), build_flights(days)
    for day, (one, other) in zip(days, pairs, strict=False):
        find_flight(before, day, 0)["delay"], find_flight(after, day, 0)["delay"] = one, other
    for rows in (before, after):
        find_flight(rows, days[-1], 0)["delay"] = math.nan
    find_flight(before, days[0], 1)["miles"] = 0x6E756C6C
    find_flight(after, days[0], 1)["miles"] = None
    older, newer = read_both(warehouse, FLIGHTS, days, before, after)
    changed = {key: one.changed for key, one in compare_contents(older, newer).items()}
    assert changed == dict(zip([day.key for day in days], [2, 1, 1, 1, 1, 0], strict=True))


def test_without_a_key_nothing_is_changed(warehouse: Warehouse) -> None:
    parts = build_parts(0, 1, 2, 3)
    before = [*build_events(p0="aab", p1="a", p2="c"), {"part": 3, "code": None}]
    after = [*build_events(p0="abbb", p1="x", p2="c", p3="d"), {"part": 3, "code": None}]
    older, newer = read_both(warehouse, EVENTS, parts, before, after)
    assert older.key_hashes is None
    assert compare_contents(older, newer) == {
        "part 0": RowChanges(same=2, added=2, removed=1),
        "part 1": RowChanges(added=1, removed=1),
        "part 2": RowChanges(same=1),
        "part 3": RowChanges(same=1, added=1),
    }
    assert find_example_keys(older, newer) == {
        "part 0": (
            ExampleKey("missing", {"part": 0, "code": "a"}),
            ExampleKey("extra", {"part": 0, "code": "b"}),
        ),
        "part 1": (
            ExampleKey("missing", {"part": 1, "code": "a"}),
            ExampleKey("extra", {"part": 1, "code": "x"}),
        ),
        "part 3": (ExampleKey("extra", {"part": 3, "code": "d"}),),
    }


def test_examples_are_limited_and_each_kind_gets_its_turn(warehouse: Warehouse) -> None:
    before, after = build_flights(WEEK[:2]), build_flights(WEEK[:2])
    for number in range(10):
        find_flight(after, WEEK[0], number)["gate"] = None
    for number in range(12, 20):
        after.remove(find_flight(after, WEEK[0], number))
    after.append({**after[0], "flight": 99, "day": WEEK[0].slice.start})
    older, newer = read_both(warehouse, FLIGHTS, WEEK[:2], before, after)
    (found,) = find_example_keys(older, newer, limit=4).values()
    assert [one.difference for one in found] == ["changed", "missing", "extra", "changed"]
    assert len({one.values["flight"] for one in found}) == 4
    again = read_both(warehouse, FLIGHTS, WEEK[:2], before[::-1], after[::-1])
    assert find_example_keys(*again, limit=4) == {WEEK[0].key: found}
    everything = find_example_keys(older, newer, limit=100)[WEEK[0].key]
    assert Counter(one.difference for one in everything) == {
        **{"changed": 10, "missing": 8, "extra": 1}
    }


def test_examples_open_only_files_of_partitions_that_differ(warehouse: Warehouse) -> None:
    before, after = build_flights(), build_flights()
    after.remove(find_flight(after, WEEK[2], 4))
    older, newer = read_both(warehouse, FLIGHTS, WEEK, before, after)
    for file in Path(warehouse.uri(FLIGHTS)).rglob("*.parquet"):
        if file.parent.name != f"day={WEEK[2].key}":
            file.unlink()
    assert list(find_example_keys(older, newer)) == [WEEK[2].key]


def test_column_added_later_reads_as_null(warehouse: Warehouse) -> None:
    rows = build_flights(WEEK[:2])
    narrow = replace(FLIGHTS, columns=FLIGHTS.columns[:-1], rules=())
    older = write_rows(warehouse, narrow, rows)
    newer = write_rows(warehouse, FLIGHTS, [{**one, "cancelled": None} for one in rows])
    newest = write_rows(warehouse, FLIGHTS, rows)
    before, null, after = (
        read_contents(warehouse, FLIGHTS, WEEK[:2], version=one) for one in (older, newer, newest)
    )
    assert (before.missing, null.missing) == (("cancelled",), ())
    assert find_changes(compare_contents(before, null)) == {}
    diffs = build_diffs(FLIGHTS, before, after)
    assert {key: one.changed for key, one in diffs.items()} == {day.key: 20 for day in WEEK[:2]}
    assert diffs[WEEK[0].key].null_shares == {"delay": (0.05, 0.05), "cancelled": (1.0, 0.0)}


def test_only_the_columns_asked_for_and_the_keys_are_compared(warehouse: Warehouse) -> None:
    rows = build_flights(WEEK[:1])
    versions = [write_rows(warehouse, FLIGHTS, rows)]
    rows[4]["gate"] = None
    versions.append(write_rows(warehouse, FLIGHTS, rows))
    for columns, changed in ((["miles", "delay"], 0), (["gate"], 1)):
        before, after = (
            read_contents(warehouse, FLIGHTS, WEEK[:1], version=one, columns=columns)
            for one in versions
        )
        assert set(before.compared) == {*KEY, "day", *columns}
        assert compare_contents(before, after)[WEEK[0].key].changed == changed
    with pytest.raises(ValueError, match="differ in their compared"):
        compare_contents(before, read_contents(warehouse, FLIGHTS, WEEK[:1], version=versions[0]))
    with pytest.raises(ValueError, match="staging/flights has no columns gates"):
        read_contents(warehouse, FLIGHTS, WEEK[:1], version=versions[0], columns=["gates"])


def test_psi_null_shares_and_rows_of_partitions(warehouse: Warehouse) -> None:
    before = build_flights(WEEK[:4], count=MIN_VALUES + 1)
    after = build_flights(WEEK[:4], count=MIN_VALUES + 1)
    for one in before + after:
        one["departed"] = None
        one["miles"] = [100, 499, 500, 1000][one["flight"] % 4]
    for one in after:
        if one["day"] == WEEK[0].slice.start:
            one["miles"] += 1
    for number in (0, 1):
        find_flight(after, WEEK[1], number)["miles"] = None
    after = [one for one in after if one["day"] != WEEK[2].slice.start]
    older, newer = read_both(warehouse, FLIGHTS, WEEK[:4], before, after)
    # Of flights 0 to 100: 26 of 100 miles, 25 each of 499 (then 500), 500 and 1000.
    psi = compute_psi([26, 50, 25], [51, 25, 25])
    rows, delay = MIN_VALUES + 1, 1 / (MIN_VALUES + 1)
    untouched = PartitionDiff(
        rows_before=rows,
        rows_after=rows,
        added=0,
        removed=0,
        changed=0,
        duplicates=0,
        null_shares={"delay": (delay, delay), "departed": (1.0, 1.0)},
        psi={"miles": 0.0},
    )
    assert build_diffs(FLIGHTS, older, newer) == {
        WEEK[0].key: replace(untouched, changed=rows, psi={"miles": psi}),
        WEEK[1].key: replace(
            untouched,
            changed=2,
            null_shares={**untouched.null_shares, "miles": (0.0, 2 * delay)},
            psi={"miles": None},  # 99 values
        ),
        WEEK[2].key: replace(
            untouched,
            rows_after=0,
            removed=rows,
            null_shares={"delay": (delay, 0.0), "departed": (1.0, 0.0)},
            psi={"miles": None},
        ),
        WEEK[3].key: untouched,
    }
    assert older.histograms[MILES.histogram].tolist() == [[51, 25, 25, 0]] * 4
    assert newer.histograms[MILES.histogram][1].tolist() == [49, 25, 25, 2]


def test_thousands_of_separate_partitions(warehouse: Warehouse) -> None:
    parts = build_parts(*range(0, 4_001, 2))
    before, after = build_events(p0="ab", p4000="c"), build_events(p0="ab", p2000="c", p3="d")
    older, newer = read_both(warehouse, EVENTS_BY_CODE, parts, before, after)
    changes = compare_contents(older, newer)
    assert len(changes) == len(parts)
    assert {key: one for key, one in changes.items() if one != RowChanges()} == {
        "part 0": RowChanges(same=2),
        "part 2000": RowChanges(added=1),
        "part 4000": RowChanges(removed=1),
    }


def test_no_partitions_and_no_rows(warehouse: Warehouse) -> None:
    older, newer = read_both(warehouse, EVENTS, build_parts(7), build_events(p0="a"), [])
    assert compare_contents(older, newer) == {"part 7": RowChanges()}
    nothing = read_contents(warehouse, EVENTS, [], version=0)
    assert compare_contents(nothing, nothing) == {}


def test_a_row_takes_twenty_bytes(warehouse: Warehouse) -> None:
    older, _ = read_both(warehouse, FLIGHTS, WEEK, build_flights(), build_flights())
    assert older.key_hashes is not None
    kept = (older.owners, older.key_hashes, older.row_hashes)
    assert sum(one.nbytes for one in kept) == 20 * 7 * 20


def write_csv(path: Path, rows: pa.Table) -> Path:
    path = path / "golden.csv"
    pyarrow.csv.write_csv(rows, path)
    return path


def write_zipped_csv(path: Path, rows: pa.Table) -> Path:
    path = path / "golden.csv.gz"
    with pa.CompressedOutputStream(str(path), "gzip") as file:
        pyarrow.csv.write_csv(rows, file)
    return path


def write_parquet(path: Path, rows: pa.Table) -> Path:
    path = path / "golden.parquet"
    pyarrow.parquet.write_table(rows, path)
    return path


def write_parquet_folder(path: Path, rows: pa.Table) -> Path:
    """In folders by day, which are text to a reader; and an empty file as Spark leaves it."""
    pyarrow.parquet.write_to_dataset(rows, path / "golden", partition_cols=["day"])
    (path / "golden" / "_SUCCESS").touch()
    return path / "golden"


def write_delta(path: Path, rows: pa.Table) -> Path:
    write_deltalake(path / "golden", rows, mode="overwrite", partition_by=["day"])
    return path / "golden"


def write_delta_of_texts(path: Path, rows: pa.Table) -> Path:
    texts = [one.cast(pa.string()) for one in rows.columns]
    write_deltalake(path / "golden", pa.table(texts, rows.column_names), mode="overwrite")
    return path / "golden"


FORMATS = [
    *(write_csv, write_zipped_csv, write_parquet, write_parquet_folder),
    *(write_delta, write_delta_of_texts),
]


@pytest.mark.parametrize("write", FORMATS)
def test_golden_of_any_format_is_equal_or_differs(
    warehouse: Warehouse, tmp_path: Path, write: Callable[[Path, pa.Table], Path]
) -> None:
    rows = build_flights()
    path = write(tmp_path, as_arrow(FLIGHTS, rows))
    golden = read_golden(path, FLIGHTS, WEEK[1:], keys=KEY)
    assert golden.compared == FLIGHTS.column_names
    assert golden.missing == ()

    def compare() -> tuple[dict[str, RowChanges], dict[str, tuple[ExampleKey, ...]]]:
        version = write_rows(warehouse, FLIGHTS, rows)
        contents = read_contents(warehouse, FLIGHTS, WEEK[1:], version=version)
        return compare_contents(golden, contents), find_example_keys(golden, contents)

    changes, examples = compare()
    assert changes == {day.key: RowChanges(same=20) for day in WEEK[1:]}
    assert examples == {}
    rows.remove(find_flight(rows, WEEK[0], 0))
    rows.remove(find_flight(rows, WEEK[2], 4))
    find_flight(rows, WEEK[3], 7)["delay"] = 0.5
    changes, examples = compare()
    assert find_changes(changes) == {
        WEEK[2].key: RowChanges(same=19, removed=1),
        WEEK[3].key: RowChanges(same=19, changed=1),
    }
    assert examples == {
        WEEK[2].key: (ExampleKey("missing", {"flight": 4, "origin": "LGA"}),),
        WEEK[3].key: (ExampleKey("changed", {"flight": 7, "origin": "JFK"}),),
    }


def test_golden_of_other_types_and_fewer_columns(warehouse: Warehouse, tmp_path: Path) -> None:
    rows = build_flights(WEEK[:2])
    version = write_rows(warehouse, FLIGHTS, rows)
    wide = as_arrow(FLIGHTS, rows)
    golden_rows = pa.table(
        {
            "unknown": pa.nulls(len(rows)),
            "miles": wide["miles"].cast(pa.float64()),
            "day": wide["day"].cast(pa.timestamp("ns")),
            "departed": wide["departed"].cast(pa.timestamp("ns")),
            "origin": wide["origin"].cast(pa.large_string()).dictionary_encode(),
            "flight": wide["flight"].cast(pa.int64()),
        }
    )
    golden = read_golden(write_parquet(tmp_path, golden_rows), FLIGHTS, WEEK[:2], keys=KEY)
    assert golden.compared == ("flight", "origin", "day", "departed", "miles")
    assert golden.missing == ("delay", "gate", "cancelled")
    columns = golden.compared
    contents = read_contents(warehouse, FLIGHTS, WEEK[:2], version=version, columns=columns)
    changes = compare_contents(golden, contents)
    assert changes == {day.key: RowChanges(same=20) for day in WEEK[:2]}


def test_csv_as_pandas_writes_it(warehouse: Warehouse, tmp_path: Path) -> None:
    midnight = dt.datetime(2013, 1, 1, tzinfo=dt.UTC)
    rows = [
        {"flight": 1, "miles": 9_007_199_254_740_993, "departed": midnight, "cancelled": True},
        {"flight": 2, "miles": None, "departed": midnight, "cancelled": False},
        {"flight": 3, "miles": 7, "departed": midnight.replace(hour=5, microsecond=250_000)},
        {"flight": 4, "miles": 7, "departed": midnight.replace(hour=5)},
    ]
    rows = [{**one, "origin": "JFK", "day": WEEK[0].slice.start} for one in rows]
    version = write_rows(warehouse, FLIGHTS, rows)
    path = tmp_path / "golden.csv"
    path.write_text(
        "flight,origin,day,miles,departed,cancelled,gate\n"
        "1,JFK,2013-01-01,9007199254740993.0,2013-01-01,True,\n"
        '2,"JFK",2013-01-01,,2013-01-01 00:00:00,False,""\n'
        "3.0,JFK,2013-01-01,7,2013-01-01 05:00:00.25,,\n"
        "4,JFK,2013-01-01,7,2013-01-01T00:00:00-05:00,,\n"
    )
    golden = read_golden(path, FLIGHTS, WEEK[:1], keys=["flight"])
    contents = read_contents(
        warehouse, FLIGHTS, WEEK[:1], version=version, columns=golden.compared, keys=["flight"]
    )
    assert compare_contents(golden, contents) == {WEEK[0].key: RowChanges(same=4)}
    assert build_diffs(FLIGHTS, golden, contents)[WEEK[0].key].null_shares == {
        **{"gate": (1.0, 1.0), "miles": (0.25, 0.25), "cancelled": (0.5, 0.5)}
    }


@pytest.mark.parametrize(
    ("column", "value", "type_"),
    [
        ("flight", "1.5", "INT"),
        ("flight", "2147483648", "INT"),
        ("delay", "late", "DOUBLE"),
        ("day", "01/02/2013", "DATE"),
        ("departed", "noon", "TIMESTAMP"),
        ("cancelled", "perhaps", "BOOLEAN"),
    ],
)
def test_value_that_can_not_be_cast_is_named(
    tmp_path: Path, column: str, value: str, type_: str
) -> None:
    rows: list[Row] = [{"flight": 1, "origin": "JFK", "day": "2013-01-01"}] * 3
    rows[1] = {**rows[1], column: value}
    names = FLIGHTS.column_names
    texts = [[str(row.get(name, "")) for name in names] for row in rows]
    path = tmp_path / "golden.csv"
    path.write_text("\n".join([",".join(names), *map(",".join, texts)]))
    with pytest.raises(GoldenError) as raised:
        read_golden(path, FLIGHTS, WEEK, keys=KEY)
    for part in (str(path), f"column {column} ", repr(value), type_, "correct it"):
        assert part in str(raised.value)


def test_parquet_value_that_does_not_fit_is_named(tmp_path: Path) -> None:
    rows = as_arrow(FLIGHTS, build_flights(WEEK[:1], count=3))
    flights = pa.array([1, 2**40, 2])
    path = write_parquet(tmp_path, rows.set_column(0, "flight", flights))
    with pytest.raises(GoldenError, match=r"column flight holds 1099511627776, .* INT"):
        read_golden(path, FLIGHTS, WEEK, keys=KEY)


def test_rows_outside_the_partitions_are_not_even_cast(tmp_path: Path) -> None:
    path = tmp_path / "golden.csv"
    path.write_text("part,code\n-1,a\n0,b\n1,c\n,d\n1853189228,e\n")
    by_code = replace(EVENTS, columns=(EVENTS.columns[0], required("code", "INT", "Code")))
    assert read_golden(path, EVENTS, build_parts(0, 2), keys=[]).row_counts.tolist() == [1, 0]
    # What stands for null is a number, too; a row without a part isn't in its partition.
    null = build_parts(1853189228)
    assert read_golden(path, EVENTS, null, keys=[]).row_counts.tolist() == [1]
    assert read_golden(path, by_code, build_parts(2), keys=[]).row_counts.tolist() == [0]
    with pytest.raises(GoldenError, match="column code holds 'b'"):
        read_golden(path, by_code, build_parts(0), keys=[])


def test_golden_delta_table_whose_numbers_are_texts(tmp_path: Path) -> None:
    """As texts, 10 comes before 2."""
    rows = pa.table({"day": ["x"] * 3, "part": ["1", "2", "10"], "code": ["a", "b", "c"]})
    path = write_delta(tmp_path, rows)
    golden = read_golden(path, EVENTS, build_parts(2, 3, 9, 10), keys=[])
    assert golden.row_counts.tolist() == [1, 0, 0, 1]
    path = write_delta(tmp_path, rows.set_column(1, "part", [["1", "second", "10"]]))
    with pytest.raises(GoldenError, match="column part holds 'second'"):
        read_golden(path, EVENTS, build_parts(10), keys=[])


def test_csv_line_breaks_within_values_wherever_a_block_ends(tmp_path: Path) -> None:
    codes = ["\n" * 1_000 + str(number) for number in range(3_000)]
    rows = as_arrow(EVENTS, [{"part": 0, "code": code} for code in codes])
    golden = read_golden(write_csv(tmp_path, rows), EVENTS, build_parts(0), keys=["code"])
    assert golden.row_counts.tolist() == [3_000]
    assert len(np.unique(golden.identities)) == 3_000


def test_golden_without_rows_or_partitions(tmp_path: Path) -> None:
    path = tmp_path / "golden.csv"
    path.write_text("part,code\n")
    golden = read_golden(path, EVENTS, build_parts(0), keys=[])
    assert (golden.row_counts.tolist(), golden.compared) == ([0], ("part", "code"))
    assert read_golden(path, EVENTS, [], keys=[]).partitions == ()


def test_golden_that_lacks_its_keys_or_partition_column(tmp_path: Path) -> None:
    path = tmp_path / "golden.csv"
    path.write_text("flight,delay\n1,2\n")
    with pytest.raises(GoldenError, match=rf"{path} lacks columns day, origin, .* other keys"):
        read_golden(path, FLIGHTS, WEEK, keys=KEY)
    with pytest.raises(GoldenError, match=r"staging/flights has no columns wing .* keys among"):
        read_golden(path, FLIGHTS, WEEK, keys=["wing"])


@pytest.mark.parametrize("name", ["nothing.parquet", "empty.csv", "text.parquet", "ragged.csv"])
def test_golden_that_can_not_be_read_is_named(tmp_path: Path, name: str) -> None:
    (tmp_path / "empty.csv").touch()
    (tmp_path / "text.parquet").write_text("no Parquet")
    (tmp_path / "ragged.csv").write_text("part,code\n0,a\n0,b,c\n")
    with pytest.raises(GoldenError, match=f"golden {tmp_path / name} can't be read"):
        read_golden(tmp_path / name, EVENTS, build_parts(0), keys=[])


def test_golden_delta_table_with_a_lost_file_is_named(tmp_path: Path) -> None:
    path = write_delta(tmp_path, as_arrow(FLIGHTS, build_flights(WEEK[:2])))
    Path(DeltaTable(path).file_uris()[0]).unlink()
    with pytest.raises(GoldenError, match=r"golden .* can't be read"):
        read_golden(path, FLIGHTS, WEEK, keys=KEY)


def build_contents(rows: Sequence[tuple[int, int, int]], *, keyed: bool) -> Contents:
    """Contents of `(partition, key, value)` rows, hashed in a simple way; three partitions."""
    owners, keys, values = np.array(rows, np.int64).reshape(-1, 3).T
    spread = np.uint64(0x9E3779B97F4A7C15)
    return Contents(
        source=TableRows(Warehouse("/nowhere"), EVENTS, 0),
        partitions=tuple(build_parts(0, 1, 2)),
        keys=("key",) if keyed else (),
        compared=(),
        missing=(),
        owners=owners.astype(np.int32),
        key_hashes=(owners * 10 + keys).astype(np.uint64) * spread if keyed else None,
        row_hashes=(owners * 100 + keys * 10 + values).astype(np.uint64) * spread,
        row_counts=np.bincount(owners, minlength=3),
        nulls={},
        histograms={},
    )


def compare_naively(
    before: Sequence[tuple[int, int, int]],
    after: Sequence[tuple[int, int, int]],
    part: int,
    *,
    keyed: bool,
) -> RowChanges:
    older, newer = (Counter(row for row in rows if row[0] == part) for rows in (before, after))
    same = (older & newer).total()
    lost, gained = ((one - two) for one, two in ((older, newer), (newer, older)))
    changed = 0
    if keyed:
        lost_keys, gained_keys = Counter[int](), Counter[int]()
        for counts, keys in ((lost, lost_keys), (gained, gained_keys)):
            for row in counts.elements():
                keys[row[1]] += 1
        changed = (lost_keys & gained_keys).total()
    duplicates = newer.total() - len({row[1] for row in newer}) if keyed else 0
    return RowChanges(same, gained.total() - changed, lost.total() - changed, changed, duplicates)


SOME_ROWS = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2), st.integers(0, 2)))


@given(before=SOME_ROWS, after=SOME_ROWS, keyed=st.booleans())
def test_small_multisets_compare_as_counters_do(
    *, before: list[tuple[int, int, int]], after: list[tuple[int, int, int]], keyed: bool
) -> None:
    found = compare_contents(
        build_contents(before, keyed=keyed), build_contents(after, keyed=keyed)
    )
    assert found == {
        f"part {part}": compare_naively(before, after, part, keyed=keyed) for part in range(3)
    }
    for kind in ("same", "added", "removed", "changed", "duplicates"):
        if any(getattr(one, kind) for one in found.values()):
            event(kind)


def test_neither_spark_nor_dagster_is_imported() -> None:
    code = (
        "import sys, backfill_assets.quality.comparison as comparison; "
        "print(comparison.__name__, {'pyspark', 'py4j', 'dagster'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "backfill_assets.quality.comparison set()"
