"""Examples name the keys that differ, some of each kind."""

from collections import Counter
from pathlib import Path

from backfill_engine.extras.comparison.golden import ExampleKey, find_example_keys
from backfill_engine.lake.warehouse import Warehouse
from backfill_engine_tests.contents.written_rows import (
    EVENTS,
    FLIGHTS,
    WEEK,
    build_events,
    build_flights,
    build_parts,
    find_flight,
    read_both,
)


def test_key_with_several_changed_rows_is_named_once(warehouse: Warehouse) -> None:
    (row,) = build_flights(WEEK[:1], count=1)
    after = [{**row, "gate": "other"}, {**row, "gate": "third"}]
    older, newer = read_both(warehouse, FLIGHTS, WEEK[:1], [row] * 2, after)
    assert find_example_keys(older, newer) == {
        WEEK[0].key: (ExampleKey("changed", {"flight": 0, "origin": "LGA"}),)
    }


def test_without_a_key_whole_rows_are_named(warehouse: Warehouse) -> None:
    parts = build_parts(0, 1, 2)
    before = [*build_events(p0="aab", p1="c"), {"part": 2, "code": None}]
    older, newer = read_both(warehouse, EVENTS, parts, before, build_events(p0="abbb", p1="c"))
    assert find_example_keys(older, newer) == {
        "part 0": (
            ExampleKey("missing", {"part": 0, "code": "a"}),
            ExampleKey("extra", {"part": 0, "code": "b"}),
        ),
        "part 2": (ExampleKey("missing", {"part": 2, "code": None}),),
    }


def test_examples_of_each_kind_are_limited(warehouse: Warehouse) -> None:
    before, after = build_flights(WEEK[:2]), build_flights(WEEK[:2])
    for number in range(10):
        find_flight(after, WEEK[0], number)["gate"] = None
    for number in range(12, 20):
        after.remove(find_flight(after, WEEK[0], number))
    after.append({**after[0], "flight": 99, "day": WEEK[0].slice.start})
    older, newer = read_both(warehouse, FLIGHTS, WEEK[:2], before, after)
    (found,) = find_example_keys(older, newer, limit=2).values()
    assert [example.difference for example in found] == [
        *("changed", "changed", "missing", "missing", "extra")
    ]
    assert len({example.values["flight"] for example in found}) == 5
    again = read_both(warehouse, FLIGHTS, WEEK[:2], before[::-1], after[::-1])
    assert find_example_keys(*again, limit=2) == {WEEK[0].key: found}
    everything = find_example_keys(older, newer, limit=100)[WEEK[0].key]
    kinds = Counter(example.difference for example in everything)
    assert kinds == {"changed": 10, "missing": 8, "extra": 1}


def test_examples_open_only_files_of_partitions_that_differ(warehouse: Warehouse) -> None:
    before, after = build_flights(), build_flights()
    after.remove(find_flight(after, WEEK[2], 4))
    older, newer = read_both(warehouse, FLIGHTS, WEEK, before, after)
    for file in Path(warehouse.uri(FLIGHTS)).rglob("*.parquet"):
        if file.parent.name != f"day={WEEK[2].key}":
            file.unlink()
    assert list(find_example_keys(older, newer)) == [WEEK[2].key]
