"""Records of the layer above are accounted for, or not."""

import pytest

from backfill_engine.rules.count_rules import Reconciled
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
