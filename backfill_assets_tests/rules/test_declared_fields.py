"""Fields that disappeared, and fields that are new."""

import pytest

from backfill_assets.rules.measured import PartitionMeasures
from backfill_assets.rules.verdicts import Check, Finding, Outcome
from backfill_assets_tests.rules.judged_days import build_table, judge

PASSED, WARNED, FAILED = Outcome.PASSED, Outcome.WARNED, Outcome.FAILED


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
    "measures",
    [PartitionMeasures(rows=1), PartitionMeasures(rejects=1, fields_seen=frozenset({"x"}))],
)
def test_fields_are_not_judged_where_no_row_was_parsed(measures):
    assert judge(build_table(), measures, source_fields=("a",)).findings[Check.VALID] == ()
