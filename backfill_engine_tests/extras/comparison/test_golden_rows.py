"""Golden data sets of every format are read as the table is, or refused by name."""

import datetime as dt
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from deltalake import DeltaTable, write_deltalake

from backfill_engine.errors import GoldenError
from backfill_engine.extras.comparison.contents import read_contents
from backfill_engine.extras.comparison.golden import ExampleKey, find_example_keys, read_golden
from backfill_engine.extras.comparison.rows import PartitionDiff, compare_contents
from backfill_engine.lake.warehouse import Warehouse
from backfill_engine.tables.declarations import required
from backfill_engine_tests.contents.written_rows import (
    EVENTS,
    FLIGHTS,
    KEY,
    WEEK,
    Changes,
    Row,
    as_arrow,
    build_flights,
    build_parts,
    count_changes,
    find_changes,
    find_flight,
    write_versions,
)


def write_csv(path: Path, rows: pa.Table, *, suffix: str = "") -> Path:
    path = path / f"golden.csv{suffix}"
    with pa.output_stream(str(path)) as file:  # compressed, as its name says
        pyarrow.csv.write_csv(rows, file)
    return path


def write_zipped_csv(path: Path, rows: pa.Table) -> Path:
    return write_csv(path, rows, suffix=".gz")


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
    texts = [column.cast(pa.string()) for column in rows.columns]
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

    def compare() -> tuple[dict[str, PartitionDiff], dict[str, tuple[ExampleKey, ...]]]:
        (log,) = write_versions(warehouse, FLIGHTS, rows)
        contents = read_contents(log, WEEK[1:])
        return compare_contents(golden, contents), find_example_keys(golden, contents)

    changes, examples = compare()
    assert count_changes(changes) == {day.key: Changes(same=20) for day in WEEK[1:]}
    assert examples == {}
    rows.remove(find_flight(rows, WEEK[0], 0))
    rows.remove(find_flight(rows, WEEK[2], 4))
    find_flight(rows, WEEK[3], 7)["delay"] = 0.5
    changes, examples = compare()
    assert find_changes(changes) == {
        WEEK[2].key: Changes(same=19, removed=1),
        WEEK[3].key: Changes(same=19, changed=1),
    }
    assert examples == {
        WEEK[2].key: (ExampleKey("missing", {"flight": 4, "origin": "LGA"}),),
        WEEK[3].key: (ExampleKey("changed", {"flight": 7, "origin": "JFK"}),),
    }


def test_golden_of_other_types_and_fewer_columns(warehouse: Warehouse, tmp_path: Path) -> None:
    rows = build_flights(WEEK[:2])
    (log,) = write_versions(warehouse, FLIGHTS, rows)
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
    contents = read_contents(log, WEEK[:2], columns=golden.compared)
    changes = compare_contents(golden, contents)
    assert count_changes(changes) == {day.key: Changes(same=20) for day in WEEK[:2]}


def test_csv_as_pandas_writes_it(warehouse: Warehouse, tmp_path: Path) -> None:
    midnight = dt.datetime(2013, 1, 1, tzinfo=dt.UTC)
    rows = [
        {"flight": 1, "miles": 9_007_199_254_740_993, "departed": midnight, "cancelled": True},
        {"flight": 2, "miles": None, "departed": midnight, "cancelled": False},
        {"flight": 3, "miles": 7, "departed": midnight.replace(hour=5, microsecond=250_000)},
        {"flight": 4, "miles": 7, "departed": midnight.replace(hour=5)},
    ]
    rows = [{**row, "origin": "JFK", "day": WEEK[0].slice.start} for row in rows]
    (log,) = write_versions(warehouse, FLIGHTS, rows)
    path = tmp_path / "golden.csv"
    path.write_text(
        "flight,origin,day,miles,departed,cancelled,gate\n"
        "1,JFK,2013-01-01,9007199254740993.0,2013-01-01,True,\n"
        '2,"JFK",2013-01-01,,2013-01-01 00:00:00,False,""\n'
        "3.0,JFK,2013-01-01,7,2013-01-01 05:00:00.25,,\n"
        "4,JFK,2013-01-01,7,2013-01-01T00:00:00-05:00,,\n"
    )
    golden = read_golden(path, FLIGHTS, WEEK[:1], keys=["flight"])
    contents = read_contents(log, WEEK[:1], columns=golden.compared, keys=["flight"])
    diffs = compare_contents(golden, contents)
    assert count_changes(diffs) == {WEEK[0].key: Changes(same=4)}
    assert diffs[WEEK[0].key].null_shares == {
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
