"""Rows of the same natural key."""

import pytest

from backfill_engine.rules.measured import PartitionMeasures
from backfill_engine.rules.verdicts import Check, Finding
from backfill_engine_tests.rules.judged_days import FAILED, PASSED, build_table, judge


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
