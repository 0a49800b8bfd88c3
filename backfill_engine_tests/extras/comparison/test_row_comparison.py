"""Every kind of difference between two contents is found, in exactly its partition."""

import datetime as dt
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from deltalake import write_deltalake
from hypothesis import event, given
from hypothesis import strategies as st

from backfill_engine.extras.comparison.contents import Contents, read_contents
from backfill_engine.extras.comparison.golden import ExampleKey, find_example_keys
from backfill_engine.extras.comparison.rows import (
    PartitionDiff,
    compare_contents,
)
from backfill_engine.lake.table_log import read_log
from backfill_engine.lake.warehouse import Warehouse
from backfill_engine.rules.drift import MIN_VALUES, compute_psi
from backfill_engine_tests.contents.written_rows import (
    EVENTS,
    FLIGHTS,
    MILES,
    WEEK,
    Changes,
    as_arrow,
    build_flights,
    build_parts,
    count_changes,
    find_changes,
    find_flight,
    read_both,
    write_rows,
)
from backfill_engine_tests.shared_fixtures import build_days


def test_equal_contents_in_another_order_and_in_other_files(warehouse: Warehouse) -> None:
    rows = build_flights()
    older = write_rows(warehouse, FLIGHTS, rows)
    write_rows(warehouse, FLIGHTS, rows[::2][::-1])
    write_deltalake(warehouse.uri(FLIGHTS), as_arrow(FLIGHTS, rows[1::2]), mode="append")
    newer = warehouse.open(FLIGHTS).version()
    before = read_contents(read_log(warehouse, FLIGHTS, version=older), WEEK[::-1])
    after = read_contents(read_log(warehouse, FLIGHTS, version=newer), WEEK)
    expected = {day.key: Changes(same=20) for day in WEEK}
    diffs = compare_contents(before, after)
    assert count_changes(diffs) == expected
    assert list(diffs) == [day.key for day in WEEK]
    assert all(diff.equal for diff in diffs.values())


def test_every_kind_of_difference_is_found_and_named_in_exactly_its_partition(
    warehouse: Warehouse,
) -> None:
    before, after = build_flights(), build_flights()
    after.remove(find_flight(after, WEEK[0], 4))
    after.append({**find_flight(after, WEEK[1], 4), "flight": 99})
    find_flight(after, WEEK[2], 5)["delay"] += 0.001
    find_flight(after, WEEK[2], 6)["gate"] = "elsewhere"
    after.append(find_flight(after, WEEK[3], 8))
    find_flight(after, WEEK[4], 9)["delay"] = None
    find_flight(after, WEEK[5], 10)["day"] = WEEK[6].slice.start
    older, newer = read_both(warehouse, FLIGHTS, WEEK, before, after)
    assert count_changes(compare_contents(older, newer)) == {
        WEEK[0].key: Changes(same=19, removed=1),
        WEEK[1].key: Changes(same=20, added=1),
        WEEK[2].key: Changes(same=18, changed=2),
        WEEK[3].key: Changes(same=20, added=1, duplicates=1),
        WEEK[4].key: Changes(same=19, changed=1),
        WEEK[5].key: Changes(same=19, removed=1),
        WEEK[6].key: Changes(same=20, added=1, duplicates=1),
    }
    examples = find_example_keys(older, newer)
    of_two = examples.pop(WEEK[2].key)
    assert {(found.difference, found.values["flight"]) for found in of_two} == {
        *(("changed", 5), ("changed", 6))
    }
    assert examples == {
        WEEK[0].key: (ExampleKey("missing", {"flight": 4, "origin": "LGA"}),),
        WEEK[1].key: (ExampleKey("extra", {"flight": 99, "origin": "LGA"}),),
        WEEK[3].key: (ExampleKey("extra", {"flight": 8, "origin": "LGA"}),),
        WEEK[4].key: (ExampleKey("changed", {"flight": 9, "origin": "JFK"}),),
        WEEK[5].key: (ExampleKey("missing", {"flight": 10, "origin": "LGA"}),),
        WEEK[6].key: (ExampleKey("extra", {"flight": 10, "origin": "LGA"}),),
    }
    shares = {key: diff.null_shares for key, diff in compare_contents(older, newer).items()}
    assert shares.pop(WEEK[4].key) == {"delay": (0.05, 0.1)}
    assert {name for names in shares.values() for name in names} == {"delay"}


def test_each_column_is_compared(warehouse: Warehouse) -> None:
    days = build_days("2013-01-01", len(FLIGHTS.columns))
    before, after = build_flights(days), build_flights(days)
    other = {"delay": -1.5, "gate": "", "departed": dt.datetime(2014, 1, 1, tzinfo=dt.UTC)}
    other |= {"miles": -1, "cancelled": True}
    for day, (name, value) in zip(days, other.items(), strict=False):
        find_flight(after, day, 2)[name] = value
    older, newer = read_both(warehouse, FLIGHTS, days, before, after)
    changes = find_changes(compare_contents(older, newer))
    assert changes == {day.key: Changes(same=19, changed=1) for day in days[: len(other)]}


def test_psi_null_shares_and_rows_of_partitions(warehouse: Warehouse) -> None:
    before = build_flights(WEEK[:4], count=MIN_VALUES + 1)
    after = build_flights(WEEK[:4], count=MIN_VALUES + 1)
    for flight in before + after:
        flight["departed"] = None
        flight["miles"] = [100, 499, 500, 1000][flight["flight"] % 4]
    for flight in after:
        if flight["day"] == WEEK[0].slice.start:
            flight["miles"] += 1
    for number in (0, 1):
        find_flight(after, WEEK[1], number)["miles"] = None
    after = [flight for flight in after if flight["day"] != WEEK[2].slice.start]
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
        same=rows,
    )
    assert compare_contents(older, newer) == {
        WEEK[0].key: replace(untouched, changed=rows, same=0, psi={"miles": psi}),
        WEEK[1].key: replace(
            untouched,
            changed=2,
            same=rows - 2,
            null_shares={**untouched.null_shares, "miles": (0.0, 2 * delay)},
            psi={"miles": None},  # 99 values
        ),
        WEEK[2].key: replace(
            untouched,
            rows_after=0,
            removed=rows,
            same=0,
            null_shares={"delay": (delay, 0.0), "departed": (1.0, 0.0)},
            psi={"miles": None},
        ),
        WEEK[3].key: untouched,
    }
    assert older.histograms[MILES.histogram].tolist() == [[51, 25, 25, 0]] * 4
    assert newer.histograms[MILES.histogram][1].tolist() == [49, 25, 25, 2]


def build_contents(rows: Sequence[tuple[int, int, int]], *, keyed: bool) -> Contents:
    """Builds contents of three partitions from `(partition, key, value)` rows by a simple hash."""
    owners, keys, values = np.array(rows, np.int64).reshape(-1, 3).T
    spread = np.uint64(0x9E3779B97F4A7C15)
    return Contents(
        table=EVENTS,
        stream=lambda columns, index: iter(()),
        partitions=tuple(build_parts(0, 1, 2)),
        keys=("key",) if keyed else (),
        compared=(),
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
) -> Changes:
    older, newer = (Counter(row for row in rows if row[0] == part) for rows in (before, after))
    same = (older & newer).total()
    lost, gained = ((left - right) for left, right in ((older, newer), (newer, older)))
    changed = 0
    if keyed:
        lost_keys, gained_keys = Counter[int](), Counter[int]()
        for counts, keys in ((lost, lost_keys), (gained, gained_keys)):
            for row in counts.elements():
                keys[row[1]] += 1
        changed = (lost_keys & gained_keys).total()
    duplicates = newer.total() - len({row[1] for row in newer}) if keyed else 0
    return Changes(same, gained.total() - changed, lost.total() - changed, changed, duplicates)


SOME_ROWS = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2), st.integers(0, 2)))


@given(before=SOME_ROWS, after=SOME_ROWS, keyed=st.booleans())
def test_small_multisets_compare_as_counters_do(
    *, before: list[tuple[int, int, int]], after: list[tuple[int, int, int]], keyed: bool
) -> None:
    found = count_changes(
        compare_contents(build_contents(before, keyed=keyed), build_contents(after, keyed=keyed))
    )
    assert found == {
        f"part {part}": compare_naively(before, after, part, keyed=keyed) for part in range(3)
    }
    for kind in ("same", "added", "removed", "changed", "duplicates"):
        if any(getattr(counts, kind) for counts in found.values()):
            event(kind)
