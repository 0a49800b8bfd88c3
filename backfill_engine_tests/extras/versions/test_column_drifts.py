"""What was measured of partitions, as a series for each column."""

from dataclasses import replace

from backfill_engine.extras.comparison.rows import PartitionDiff
from backfill_engine.extras.versions.column_shifts import ColumnShift
from backfill_engine.extras.versions.drift_plots import ColumnDrift, build_column_drifts
from backfill_engine.rules.drift import Drift
from backfill_engine_tests.contents.written_rows import FLIGHTS

FIRST, SECOND, THIRD = "2013-01-01", "2013-01-02", "2013-01-03"
SHIFTS = [
    ColumnShift(FIRST, "delay", 4.0, 5.0, 0.1, 0.2, 1.0),
    ColumnShift(FIRST, "miles", 7.0, 7.0, 0.0, 0.0, 1.0),
    ColumnShift(SECOND, "delay", None, 5.0, 0.0, 0.2),
    ColumnShift(SECOND, "miles", None, 7.0, 0.0, 0.0),
]
DIFFS = {
    FIRST: PartitionDiff(10, 10, changed=3, psi={"miles": 0.5}),
    SECOND: PartitionDiff(0, 10, added=10, psi={"miles": None}),
    THIRD: PartitionDiff(10, 10),
}


def build(*shifts: ColumnShift, **diffs: PartitionDiff) -> dict[str, ColumnDrift]:
    found = build_column_drifts(FLIGHTS, shifts, diffs)
    return {one.column.name: one for one in found}


def test_figures_of_each_column_by_partition() -> None:
    found = build(*SHIFTS, **DIFFS)
    assert list(found) == ["delay", "miles"]
    delay, miles = found["delay"], found["miles"]
    assert (delay.means_before, delay.means_after) == ({FIRST: 4.0}, {FIRST: 5.0, SECOND: 5.0})
    assert delay.mean_shifts == {FIRST: 0.25}
    assert miles.mean_shifts == {FIRST: 0.0}
    assert delay.psi == {}, "it has no rule"


def test_partitions_without_rows_have_no_share_of_nulls() -> None:
    delay = build(*SHIFTS, **DIFFS)["delay"]
    assert (delay.nulls_before, delay.nulls_after) == ({FIRST: 0.1}, {FIRST: 0.2, SECOND: 0.2})


def test_equal_partitions_have_not_drifted_and_small_ones_are_not_known() -> None:
    assert build(*SHIFTS, **DIFFS)["miles"].psi == {FIRST: 0.5, THIRD: 0.0}


def test_a_column_has_moved_by_any_figure_or_as_it_is_new() -> None:
    same, equal = SHIFTS[1], {FIRST: PartitionDiff(10, 10)}
    assert not build(same, **equal)["miles"].has_moved
    for moved in (
        replace(same, mean_after=7.5),
        replace(same, nulls_after=0.1),
        replace(same, mean_before=None),
    ):
        assert build(moved, **equal)["miles"].has_moved
    assert build(same, **{FIRST: PartitionDiff(10, 10, changed=1, psi={"miles": 0.1})})[
        "miles"
    ].has_moved
    gate = ColumnShift(FIRST, "gate", None, None, 0.0, 0.0)
    assert build(gate, **{FIRST: PartitionDiff(0, 10, added=10)})["gate"].has_moved
    assert not build(gate, **equal)["gate"].has_moved


def test_the_bound_is_that_of_the_strictest_rule_or_as_given() -> None:
    rules = (
        Drift("miles", (500,), warn=0.1, fail=0.4),
        Drift("miles", (1000,), warn=0.3, blocking=False),
    )
    (miles,) = build_column_drifts(replace(FLIGHTS, rules=rules), SHIFTS[1:2], DIFFS)
    assert miles.find_bound(None) == 0.3
    assert miles.find_bound(0.7) == 0.7
    assert build(*SHIFTS)["delay"].find_bound(None) is None
