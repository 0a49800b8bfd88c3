"""What became of partitions whose source has no records."""

import pytest

from backfill_engine.rules.column_rules import Nulls, Values
from backfill_engine.rules.count_rules import Reconciled, Rejects, RowCount
from backfill_engine.rules.drift import Drift
from backfill_engine.rules.measured import Landed, PartitionMeasures, PartitionProfile
from backfill_engine.rules.verdicts import Check, Finding
from backfill_engine_tests.rules.judged_days import (
    COMPARING,
    DAY,
    FAILED,
    PASSED,
    WARNED,
    build_table,
    find,
    judge,
)


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


@pytest.mark.parametrize(
    ("empty", "landed", "bound", "outcome"),
    [
        ("evidenced", None, "its source has no records", WARNED),
        ("evidenced", Landed(evidence="it is so"), "its source has no records: it is so", PASSED),
        ("publish", Landed(evidence="it is so"), "its source has no records: it is so", PASSED),
        ("evidenced", Landed(lack="gone", cure="land it"), ": gone: land it", FAILED),
        ("evidenced", Landed(lack="gone", cure="x", not_read=("a", "b")), ": gone (a, b)", FAILED),
        ("publish", Landed(lack="gone", cure="land it"), ": gone: land it", WARNED),
        ("withhold", Landed(evidence="it is so"), ": it is so", FAILED),
    ],
)
def test_emptiness_takes_evidence(empty, landed, bound, outcome):
    verdict = judge(
        build_table(empty=empty),
        PartitionMeasures(),
        source_records={DAY: 0},
        landed={} if landed is None else {DAY: landed},
    )
    finding = find(verdict, Check.COMPLETE, "row_count")
    assert finding.outcome is outcome
    assert bound in finding.bound
    assert verdict.withheld == (outcome is FAILED)


@pytest.mark.parametrize(("rows", "outcome"), [(0, PASSED), (10, WARNED)])
def test_what_is_meant_to_be_empty_warns_only_where_rows_vanish(rows, outcome):
    verdict = judge(
        build_table(),
        PartitionMeasures(),
        source_records={DAY: 0},
        landed={DAY: Landed(evidence="it is so")},
        published={DAY: PartitionProfile(rows)},
    )
    assert find(verdict, Check.COMPLETE, "row_count").outcome is outcome


def test_evidence_is_what_tables_ask_for_unless_they_say_otherwise():
    assert build_table().empty == "evidenced"


def test_what_is_not_read_or_there_twice_is_named_and_of_very_many_the_first():
    names = tuple(f"{n:03}.jsonl" for n in range(1200))
    landed = Landed(not_read=names, repeated=("b holds the same as a",))
    verdict = judge(build_table(), PartitionMeasures(rows=1), landed={DAY: landed})
    named = find(verdict, Check.COMPLETE, "files_are_known")
    assert (named.value, named.outcome) == (1200, WARNED)
    assert named.bound.startswith("not read: 000.jsonl, 001.jsonl, ")
    assert named.bound.endswith("009.jsonl and 1,190 more")
    differ = Finding("files_differ", 1, "landed twice: b holds the same as a", FAILED)
    assert find(verdict, Check.COMPLETE, "files_differ") == differ
    assert verdict.withheld
