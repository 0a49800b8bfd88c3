"""Contents tell rows apart by the columns asked for, and take a few bytes a row."""

import math
import subprocess
import sys
from dataclasses import replace

import pytest

from backfill_engine.extras.comparison.contents import read_contents
from backfill_engine.extras.comparison.rows import compare_contents
from backfill_engine.lake.table_log import read_log
from backfill_engine.lake.warehouse import Warehouse
from backfill_engine_tests.contents.written_rows import (
    EVENTS,
    FLIGHTS,
    KEY,
    WEEK,
    Changes,
    build_events,
    build_flights,
    build_parts,
    count_changes,
    find_changes,
    find_flight,
    read_both,
    write_rows,
    write_versions,
)
from backfill_engine_tests.shared_fixtures import build_days


def test_nulls_are_not_the_numbers_that_stand_for_them(warehouse: Warehouse) -> None:
    """The canonical words of null, NaN and infinity are those of numbers, too."""
    alike = [0x6E756C6C / 1e6, 0x6E616E / 1e6, 0x696E66 / 1e6]
    pairs = [*zip(alike, [None, math.nan, math.inf], strict=True), (None, math.nan), (0.0, 1e-6)]
    days = build_days("2013-01-01", len(pairs) + 1)
    before, after = build_flights(days), build_flights(days)
    for day, (former, latter) in zip(days, pairs, strict=False):
        find_flight(before, day, 0)["delay"], find_flight(after, day, 0)["delay"] = former, latter
    for rows in (before, after):
        find_flight(rows, days[-1], 0)["delay"] = math.nan
    find_flight(before, days[0], 1)["miles"] = 0x6E756C6C
    find_flight(after, days[0], 1)["miles"] = None
    older, newer = read_both(warehouse, FLIGHTS, days, before, after)
    changed = {key: diff.changed for key, diff in compare_contents(older, newer).items()}
    assert changed == dict(zip([day.key for day in days], [2, 1, 1, 1, 1, 0], strict=True))


def test_column_added_later_reads_as_null(warehouse: Warehouse) -> None:
    rows = build_flights(WEEK[:2])
    narrow = replace(FLIGHTS, columns=FLIGHTS.columns[:-1], rules=())
    write_rows(warehouse, narrow, rows)
    logs = write_versions(warehouse, FLIGHTS, [{**row, "cancelled": None} for row in rows], rows)
    older = read_log(warehouse, FLIGHTS, version=logs[0].version - 1)
    before, null, after = (read_contents(log, WEEK[:2]) for log in (older, *logs))
    assert find_changes(compare_contents(before, null)) == {}
    diffs = compare_contents(before, after)
    assert {key: diff.changed for key, diff in diffs.items()} == {day.key: 20 for day in WEEK[:2]}
    assert diffs[WEEK[0].key].null_shares == {"delay": (0.05, 0.05), "cancelled": (1.0, 0.0)}


def test_only_the_columns_asked_for_and_the_keys_are_compared(warehouse: Warehouse) -> None:
    rows = build_flights(WEEK[:1])
    changed_rows = [{**row, "gate": None} if at == 4 else row for at, row in enumerate(rows)]
    logs = write_versions(warehouse, FLIGHTS, rows, changed_rows)
    for columns, changed in ((["miles", "delay"], 0), (["gate"], 1)):
        before, after = (read_contents(log, WEEK[:1], columns=columns) for log in logs)
        assert set(before.compared) == {*KEY, "day", *columns}
        assert compare_contents(before, after)[WEEK[0].key].changed == changed
    with pytest.raises(ValueError, match="differ in their compared"):
        compare_contents(before, read_contents(logs[0], WEEK[:1]))
    with pytest.raises(ValueError, match="staging/flights has no columns gates"):
        read_contents(logs[0], WEEK[:1], columns=["gates"])


def test_no_partitions_and_no_rows(warehouse: Warehouse) -> None:
    older, newer = read_both(warehouse, EVENTS, build_parts(7), build_events(p0="a"), [])
    assert count_changes(compare_contents(older, newer)) == {"part 7": Changes()}
    nothing = read_contents(read_log(warehouse, EVENTS, version=0), [])
    assert compare_contents(nothing, nothing) == {}


def test_a_row_takes_twenty_bytes(warehouse: Warehouse) -> None:
    older, _ = read_both(warehouse, FLIGHTS, WEEK, build_flights(), build_flights())
    assert older.key_hashes is not None
    kept = (older.owners, older.key_hashes, older.row_hashes)
    assert sum(partition.nbytes for partition in kept) == 20 * 7 * 20


def test_neither_spark_nor_dagster_is_imported() -> None:
    code = (
        "import sys, backfill_engine.extras.comparison.golden; "
        "import backfill_engine.extras.comparison.golden as golden; "
        "print(golden.__name__, {'pyspark', 'py4j', 'dagster'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "backfill_engine.extras.comparison.golden set()"
