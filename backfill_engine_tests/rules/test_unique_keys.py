"""Rows of the same natural key."""

import pytest

from backfill_engine.rules.measured import PartitionMeasures
from backfill_engine.rules.verdicts import Check, Finding
from backfill_engine_tests.rules.judged_days import DAY, FAILED, PASSED, build_table, judge


@pytest.mark.parametrize(("duplicates", "outcome"), [(0, PASSED), (1, FAILED)])
def test_natural_keys_are_unique(duplicates, outcome):
    table = build_table(natural_key=("day", "id"))
    verdict = judge(table, PartitionMeasures(rows=500, key_duplicates=duplicates))
    assert verdict.findings[Check.VALID] == (
        Finding(
            "keys_are_unique",
            2.0 * duplicates,
            "0 duplicates of (day, id) per 1,000 rows",
            outcome,
        ),
    )


@pytest.mark.parametrize("source_records", [{DAY: 320}, {}])
def test_dropped_records_are_counted_apart_and_never_fail(source_records):
    table = build_table(natural_key=("day", "id"))
    measures = PartitionMeasures(rows=120, duplicates_dropped=200, identical_dropped=136)
    verdict = judge(table, measures, source_records=source_records)
    _, *dropped = verdict.findings[Check.VALID]
    assert dropped == [
        Finding("dropped_as_identical", 425.0, "none: 136 of 320 records", PASSED),
        Finding("dropped_as_older", 200.0, "none: 64 of 320 records", PASSED),
    ]


def test_without_records_nothing_is_dropped_of_them():
    measures = PartitionMeasures(identical_dropped=0)
    _, *dropped = judge(build_table(natural_key=("id",)), measures).findings[Check.VALID]
    assert [finding.value for finding in dropped] == [0.0, 0.0]
