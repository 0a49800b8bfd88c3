"""Values out of range."""

import pytest

from backfill_engine.rules.column_rules import Values
from backfill_engine.rules.measured import PartitionMeasures
from backfill_engine.rules.verdicts import Check, Finding
from backfill_engine_tests.rules.judged_days import FAILED, PASSED, WARNED, build_table, judge


@pytest.mark.parametrize(
    ("outside", "blocking", "outcome"), [(0, True, PASSED), (3, True, FAILED), (3, False, WARNED)]
)
def test_values_in_range(outside, blocking, outcome):
    rule = Values("v", 1, 12_500, only_warns="" if blocking else "it swings")
    verdict = judge(build_table(rule), PartitionMeasures(rows=9, figures={rule.figure: outside}))
    bound = "0 values outside 1 to 12,500" + ("" if blocking else "; only warns: it swings")
    expected = Finding("values(v)", outside, bound, outcome)
    assert verdict.findings[Check.VALID] == (expected,)


def test_two_ranges_of_a_column_are_told_apart():
    possible, likely = Values("v", 0, 100), Values("v", 0, 10, only_warns="it swings")
    measures = PartitionMeasures(rows=9, figures={possible.figure: 0, likely.figure: 3})
    verdict = judge(build_table(possible, likely), measures)
    assert [(finding.value, finding.outcome) for finding in verdict.findings[Check.VALID]] == [
        (0, PASSED),
        (3, WARNED),
    ]
