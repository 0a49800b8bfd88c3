"""Columns of which all values are the same."""

import pytest

from backfill_engine.rules.column_rules import Variation
from backfill_engine.rules.measured import PartitionMeasures
from backfill_engine.rules.verdicts import Check
from backfill_engine_tests.rules.judged_days import (
    FAILED,
    PASSED,
    WARNED,
    build_table,
    find,
    judge,
)


@pytest.mark.parametrize(
    ("varies", "blocking", "outcome"),
    [(1, False, PASSED), (0, False, WARNED), (0, True, FAILED)],
)
def test_a_column_of_one_value(varies, blocking, outcome):
    rule = Variation("v", only_warns="" if blocking else "it swings")
    verdict = judge(build_table(rule), PartitionMeasures(rows=20, figures={rule.figure: varies}))
    finding = find(verdict, Check.VALID, "varies(v)")
    assert (finding.value, finding.outcome) == (varies, outcome)
    assert verdict.withheld == (outcome is FAILED)


def test_few_rows_may_well_be_alike():
    rule = Variation("v")
    verdict = judge(build_table(rule), PartitionMeasures(rows=19, figures={rule.figure: 0}))
    assert "varies(v)" not in [finding.rule for finding in verdict.findings[Check.VALID]]
