"""Shares of nulls, absolute and against the baseline."""

import pytest

from backfill_engine.rules.column_rules import Nulls
from backfill_engine.rules.measured import NULLS, PartitionMeasures
from backfill_engine.rules.verdicts import Check, Finding
from backfill_engine_tests.rules.judged_days import FAILED, PASSED, WARNED, build_table, judge


# The neighbours' median share of nulls is 1 %.
@pytest.mark.parametrize(
    ("rule", "nulls", "bound", "outcome"),
    [
        (Nulls("n", 0.02), 20, "at most 0.02", PASSED),
        (Nulls("n", 0.02), 21, "at most 0.02", FAILED),
        (Nulls("n", spike=0.05), 60, "at most 0.06, 0.05 above the median of 4", PASSED),
        (Nulls("n", spike=0.05), 61, "at most 0.06, 0.05 above the median of 4", FAILED),
        (Nulls("n", 0.02, spike=0.05), 21, "at most 0.02", FAILED),
        (Nulls("n", 0.5, spike=0.05), 61, "at most 0.06, 0.05 above the median of 4", FAILED),
        (Nulls("n", 0.02, only_warns="a"), 21, "at most 0.02; only warns: a", WARNED),
    ],
)
def test_share_of_nulls_absolute_and_against_the_baseline(rule, nulls, bound, outcome):
    verdict = judge(build_table(rule), PartitionMeasures(rows=1000, figures={(NULLS, "n"): nulls}))
    expected = Finding("nulls(n)", nulls / 1000, bound, outcome)
    assert verdict.findings[Check.VALID] == (expected,)
