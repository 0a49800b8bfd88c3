"""How many records may be rejected."""

import pytest

from backfill_engine.rules.count_rules import Rejects
from backfill_engine.rules.measured import PartitionMeasures
from backfill_engine.rules.verdicts import Check, Finding
from backfill_engine_tests.rules.judged_days import (
    DAY,
    FAILED,
    PASSED,
    build_table,
    find,
    judge,
)


@pytest.mark.parametrize(("rejects", "outcome"), [(0, PASSED), (1, PASSED), (2, FAILED)])
def test_share_of_rejects(rejects, outcome):
    measures = PartitionMeasures(rows=100 - rejects, rejects=rejects)
    verdict = judge(build_table(Rejects(at_most=0.01)), measures)
    assert verdict.findings[Check.VALID] == (
        Finding("rejects", rejects / 100, "at most 0.01 of the records", outcome),
    )


def test_rejects_that_are_due_are_no_fault():
    measures = PartitionMeasures(rows=99, rejects=11, rejects_before_first=10)
    verdict = judge(build_table(Rejects(at_most=0.01)), measures)
    assert find(verdict, Check.VALID, "rejects") == Finding(
        "rejects", 0.01, "at most 0.01 of the records", PASSED
    )


@pytest.mark.parametrize(
    ("measures", "rules", "withheld"),
    [
        (PartitionMeasures(rejects=3), (), True),
        (PartitionMeasures(rejects=3), (Rejects(at_most=1.0),), False),
        (PartitionMeasures(rejects=3, rejects_before_first=3), (), False),
        (PartitionMeasures(rejects=3, rows=1), (), False),
        (PartitionMeasures(rejects=3, rows=1, kept=1), (), False),
        (PartitionMeasures(rejects=3, filtered_out=1), (), False),
    ],
)
def test_a_first_partition_whose_records_were_all_rejected_is_withheld_without_any_rule(
    measures, rules, withheld
):
    verdict = judge(build_table(*rules), measures, source_records={DAY: 4}, published={})
    assert verdict.withheld == withheld
