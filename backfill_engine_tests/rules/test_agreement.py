"""Rows that contradict themselves, by their share."""

import pytest

from backfill_engine.rules.column_rules import Agreement
from backfill_engine.rules.measured import PartitionMeasures
from backfill_engine.rules.verdicts import Check, Finding
from backfill_engine_tests.rules.judged_days import (
    FAILED,
    PASSED,
    WARNED,
    build_table,
    find,
    judge,
)


@pytest.mark.parametrize(
    ("rows", "blocking", "outcome"),
    [(5, False, PASSED), (6, False, WARNED), (6, True, FAILED)],
)
def test_the_share_of_rows_that_contradict_themselves(rows, blocking, outcome):
    rule = Agreement("v", "v = id - n", at_most=0.05, only_warns="" if blocking else "it swings")
    measures = PartitionMeasures(rows=100, figures={rule.figure: rows})
    verdict = judge(build_table(rule), measures)
    bound = "at most 0.05 of the rows against: v = id - n"
    bound += "" if blocking else "; only warns: it swings"
    expected = Finding("agrees(v)", rows / 100, bound, outcome)
    assert find(verdict, Check.VALID, "agrees(v)") == expected
    assert verdict.withheld == (outcome is FAILED)


def test_its_bound_says_in_words_what_its_sql_means():
    rule = Agreement("v", "v = id - n", meaning="the rest")
    verdict = judge(build_table(rule), PartitionMeasures(rows=100, figures={rule.figure: 5}))
    finding = find(verdict, Check.VALID, "agrees(v)")
    assert finding.bound == "at most 0.01 of the rows against: the rest"


def test_a_partition_without_rows_contradicts_nothing():
    verdict = judge(build_table(Agreement("v", "v = id")), PartitionMeasures())
    assert "agrees(v)" not in [finding.rule for finding in verdict.findings[Check.VALID]]
