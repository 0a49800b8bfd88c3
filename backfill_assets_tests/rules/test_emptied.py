"""What became of partitions whose source has no records."""

import pytest

from backfill_assets.rules.drift import Drift
from backfill_assets.rules.measured import PartitionMeasures
from backfill_assets.rules.nulls import Nulls
from backfill_assets.rules.reconciled import Reconciled
from backfill_assets.rules.rejects import Rejects
from backfill_assets.rules.row_count import RowCount
from backfill_assets.rules.values import Values
from backfill_assets.rules.verdicts import Check, Finding, Outcome
from backfill_assets_tests.rules.judged_days import COMPARING, DAY, build_table, find, judge

PASSED, WARNED, FAILED = Outcome.PASSED, Outcome.WARNED, Outcome.FAILED


@pytest.mark.parametrize(("empty", "outcome"), [("publish", WARNED), ("withhold", FAILED)])
def test_an_emptied_partition_is_exempt_from_rules_about_its_rows(empty, outcome):
    rules = (*COMPARING, Reconciled(), Rejects(), Nulls("n", 0.0), Values("v", 0, 1))
    table = build_table(*rules, natural_key=("day", "id"), empty=empty)
    verdict = judge(table, PartitionMeasures(), source_records={DAY: 0})
    assert verdict.emptied
    assert verdict.withheld == (outcome is FAILED)
    assert find(verdict, Check.COMPLETE, "row_count") == Finding(
        "row_count", 0, "its source has no records", outcome
    )
    rest = [
        (finding.rule, finding.outcome)
        for found in verdict.findings.values()
        for finding in found
        if finding.rule != "row_count"
    ]
    assert rest == [
        (rule, PASSED) for rule in ("reconciled", "keys_are_unique", "rejects", "values(v)")
    ]


@pytest.mark.parametrize("source_records", [{}, {DAY: 5}])
def test_a_partition_that_merely_lost_its_rows_is_not_exempt(source_records):
    verdict = judge(build_table(*COMPARING), PartitionMeasures(), source_records=source_records)
    assert not verdict.emptied
    assert [finding.rule for finding in verdict.failed(Check.COMPLETE)] == [
        "row_count",
        "row_count_ratio",
    ]


@pytest.mark.parametrize("source_records", [3, 0], ids=["counted", "in a broken file, uncounted"])
def test_a_partition_of_rejects_only_is_not_emptied(source_records):
    measures = PartitionMeasures(rejects=3)
    table = build_table(RowCount(), Rejects(), Nulls("n", 0.0), Drift("d", (0.0,)))
    verdict = judge(table, measures, source_records={DAY: source_records})
    assert not verdict.emptied
    assert find(verdict, Check.COMPLETE, "row_count").outcome is FAILED
    assert find(verdict, Check.VALID, "rejects").value == 1
    assert find(verdict, Check.VALID, "nulls(n)") == Finding("nulls(n)", None, "no rows", PASSED)
    assert find(verdict, Check.STABLE, "drift(d)").outcome is PASSED
