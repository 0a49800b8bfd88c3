"""Records of the layer above are accounted for, or not."""

import pytest

from backfill_engine.rules.count_rules import Reconciled
from backfill_engine.rules.measured import Landed, PartitionMeasures
from backfill_engine.rules.verdicts import Check, Finding
from backfill_engine_tests.rules.judged_days import (
    DAY,
    FAILED,
    PASSED,
    build_table,
    find,
    judge,
)

LANDED = Landed(lack="nothing landed", cure="land it")


@pytest.mark.parametrize(
    ("total_of", "difference", "outcome"),
    [(None, 0, PASSED), (None, -1, FAILED), (None, 1, FAILED), ("n", 0, PASSED), ("n", 2, FAILED)],
)
def test_records_of_the_layer_above_are_accounted_for(total_of, difference, outcome):
    rule = Reconciled(total_of=total_of)
    measures = PartitionMeasures(
        rows=90, duplicates_dropped=7, rejects=3, figures={rule.figure: 500}
    )
    accounted = 500 if total_of else 100
    verdict = judge(
        build_table(rule),
        measures,
        source_records={DAY: accounted - difference},
    )
    finding = find(verdict, Check.COMPLETE, "reconciled")
    assert (finding.value, finding.outcome) == (difference, outcome)
    assert f"({accounted})" in finding.bound


def test_without_records_above_there_is_nothing_to_reconcile_with():
    verdict = judge(build_table(Reconciled()), PartitionMeasures(rows=1))
    assert verdict.findings[Check.COMPLETE] == (
        Finding("reconciled", None, "nothing to reconcile with", PASSED),
    )


@pytest.mark.parametrize(("accounted", "outcome"), [(9, FAILED), (10, PASSED)])
def test_records_of_a_source_are_accounted_for_without_a_rule(accounted, outcome):
    arguments = {"source_records": {DAY: 10}, "landed": {DAY: LANDED}}
    measures = PartitionMeasures(rows=accounted - 1, rejects=1)
    finding = find(judge(build_table(), measures, **arguments), Check.COMPLETE, "reconciled")
    assert (finding.value, finding.outcome) == (accounted - 10, outcome)
    own = Reconciled(total_of="n")
    counted = PartitionMeasures(rows=1, figures={own.figure: accounted})
    verdict = judge(build_table(own), counted, **arguments)
    finding = find(verdict, Check.COMPLETE, "reconciled")
    assert (finding.value, finding.outcome) == (accounted - 10, outcome), "a rule of its own wins"


@pytest.mark.parametrize(
    "arguments",
    [{"source_records": {DAY: 10}}, {"landed": {DAY: LANDED}}],
    ids=["tables are read", "nobody counts"],
)
def test_without_a_source_that_counts_there_is_no_such_rule(arguments):
    assert not judge(build_table(), PartitionMeasures(rows=1), **arguments).findings[Check.COMPLETE]
