"""Fields that disappeared, and fields that are new."""

import pytest

from backfill_engine.quality.judging import judge_partitions
from backfill_engine.rules.measured import PartitionMeasures
from backfill_engine.rules.verdicts import Check, Finding
from backfill_engine_tests.rules.judged_days import FAILED, PASSED, WARNED, build_table, judge


@pytest.mark.parametrize(
    ("seen", "value", "bound", "outcome"),
    [
        ({"a", "b"}, 0, "no field disappeared", PASSED),
        ({"a", "b", "evolved"}, 0, "no field disappeared", PASSED),
        ({"a"}, 1, "disappeared: b", FAILED),
        ({"a", "b", "y", "x"}, 0, "no field disappeared; not declared: x, y", WARNED),
        ({"x"}, 2, "disappeared: a, b; not declared: x", FAILED),
    ],
)
def test_fields_of_the_source_are_declared(seen, value, bound, outcome):
    verdict = judge(
        build_table(),
        PartitionMeasures(rows=1, fields_seen=frozenset(seen)),
        source_fields=("a", "b"),
        evolved_fields=("evolved",),
    )
    expected = Finding("fields_are_declared", value, bound, outcome)
    assert verdict.findings[Check.VALID] == (expected,)


@pytest.mark.parametrize(
    ("measures", "judged"),
    [
        (PartitionMeasures(rows=1), []),
        (PartitionMeasures(rejects=1, fields_seen=frozenset({"x"})), ["rejects"]),
    ],
)
def test_fields_are_not_judged_where_no_row_was_parsed(measures, judged):
    found = judge(build_table(), measures, source_fields=("a",)).findings[Check.VALID]
    assert [finding.rule for finding in found] == judged


@pytest.mark.parametrize(("new", "outcome"), [(2, None), (3, FAILED)])
def test_a_table_takes_on_so_many_fields_and_no_more(new, outcome):
    fields = {"id", *(f"new_{n}" for n in range(new))}
    verdict = judge(
        build_table(max_new_fields=3),
        PartitionMeasures(rows=1, fields_seen=frozenset(fields)),
        source_fields=("id",),
        evolved_fields=("evolved",),
    )
    found = [
        finding for finding in verdict.findings[Check.VALID] if finding.rule == "new_fields_are_few"
    ]
    assert [(finding.value, finding.outcome) for finding in found] == (
        [(4, outcome)] if outcome else []
    )
    assert verdict.withheld == (outcome is FAILED)


def test_fields_that_an_earlier_partition_of_the_range_brought_are_counted():
    days = {
        "2013-01-01": frozenset({"id", "x", "y"}),
        "2013-01-02": frozenset({"id", "y", "z"}),
        "2013-01-03": frozenset({"id", "z", "not-a-column"}),
    }
    measures = {key: PartitionMeasures(rows=1, fields_seen=seen) for key, seen in days.items()}
    table = build_table(max_new_fields=2)
    verdicts = judge_partitions(
        table, measures, source_records={}, published={}, source_fields=("id",)
    )
    assert [key for key, verdict in verdicts.items() if verdict.withheld] == [
        "2013-01-02",
        "2013-01-03",
    ]


def test_of_very_many_unknown_fields_the_first_are_named():
    seen = frozenset({"id", *(f"new_{n:03}" for n in range(40))})
    measures = PartitionMeasures(rows=1, fields_seen=seen)
    (finding,) = judge(build_table(), measures, source_fields=("id",)).findings[Check.VALID]
    assert finding.bound.endswith("new_008, new_009 and 30 more")
