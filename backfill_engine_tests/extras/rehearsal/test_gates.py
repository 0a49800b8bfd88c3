"""Bounds of what a rehearsal may change."""

import pytest

from backfill_engine.extras.comparison.rows import PartitionDiff
from backfill_engine.extras.rehearsal.records import Gates, find_changed_share

DIFF = PartitionDiff(
    rows_before=90,
    rows_after=100,
    added=10,
    changed=5,
    psi={"carrier": 0.2, "origin": 0.05, "hour": None},
)


def test_share_is_of_the_more_rows() -> None:
    assert find_changed_share(DIFF) == pytest.approx(0.15)


def test_an_empty_partition_has_no_share() -> None:
    assert find_changed_share(PartitionDiff(rows_before=0, rows_after=0)) == 0


def test_without_bounds_nothing_is_exceeded() -> None:
    assert list(Gates().find_exceeded(DIFF)) == []


def test_a_bound_that_is_just_met_holds() -> None:
    assert list(Gates(max_changed_share=0.15, max_psi=0.2).find_exceeded(DIFF)) == []


def test_each_bound_is_named_with_its_figure() -> None:
    assert list(Gates(max_changed_share=0.1, max_psi=0.1).find_exceeded(DIFF)) == [
        "15.0% of its rows differ (at most 10.0%)",
        "PSI of carrier is 0.200 (at most 0.1)",
    ]
