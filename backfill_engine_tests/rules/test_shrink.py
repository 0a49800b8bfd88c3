"""What a re-run may take away of what is published."""

import pytest

from backfill_engine.rules.count_rules import Shrink
from backfill_engine.rules.measured import PartitionMeasures, PartitionProfile
from backfill_engine.rules.rule import Rule
from backfill_engine.rules.verdicts import Check, Finding
from backfill_engine_tests.rules.judged_days import (
    DAY,
    FAILED,
    PASSED,
    WARNED,
    build_table,
    find,
    judge,
)

GZIP, TEXT = ".json.gz", ".json"


def judge_shrink(
    measures: PartitionMeasures, before: PartitionProfile, *rules: Rule, **others
) -> list[Finding]:
    verdict = judge(build_table(*rules), measures, published={DAY: before}, **others)
    return [
        finding for finding in verdict.findings[Check.COMPLETE] if finding.rule.startswith("shrink")
    ]


@pytest.mark.parametrize(
    ("rules", "rows", "share", "outcome"),
    [
        ((), 900, 0.0, PASSED),
        ((), 2000, 0.0, PASSED),
        ((), 450, 0.5, PASSED),
        ((), 449, 1 - 449 / 900, FAILED),
        ((Shrink(at_most=0.1),), 800, 1 - 800 / 900, FAILED),
        ((Shrink(at_most=1.0),), 1, 1 - 1 / 900, PASSED),
        ((Shrink(only_warns="it swings"),), 40, 1 - 40 / 900, WARNED),
    ],
)
def test_rows_that_would_vanish(rules, rows, share, outcome):
    (finding,) = judge_shrink(PartitionMeasures(rows=rows), PartitionProfile(900), *rules)
    bound = (
        f"at most {rules[0].at_most if rules else 0.5} of 900 rows may vanish: {rows:,} are left"
    )
    bound += "; only warns: it swings" if outcome is WARNED else ""
    assert finding == Finding("shrink", share, bound, outcome)


@pytest.mark.parametrize("before", [None, PartitionProfile(0)], ids=["nothing", "no rows"])
def test_what_held_nothing_can_not_shrink(before):
    published = {} if before is None else {DAY: before}
    verdict = judge(build_table(), PartitionMeasures(rows=1), published=published)
    assert "shrink" not in str(verdict.findings)


def test_an_emptied_partition_is_another_rules_affair():
    found = judge_shrink(PartitionMeasures(), PartitionProfile(900), source_records={DAY: 0})
    assert found == []


@pytest.mark.parametrize(
    ("before", "now", "outcome"),
    [
        ({GZIP: 1000}, {GZIP: 499}, FAILED),
        ({GZIP: 1000}, {GZIP: 500}, PASSED),
        ({GZIP: 600, TEXT: 600}, {GZIP: 601, TEXT: 0}, PASSED),
        ({GZIP: 1000}, {TEXT: 10}, None),
        ({GZIP: 1000, TEXT: 10}, {GZIP: 10}, None),
        ({}, {GZIP: 10}, None),
        ({GZIP: 1000}, {}, None),
    ],
)
def test_bytes_are_compared_only_like_with_like(before, now, outcome):
    measures = PartitionMeasures(rows=900, landed_bytes=now)
    found = judge_shrink(measures, PartitionProfile(900, landed_bytes=before))
    assert [finding.outcome for finding in found] == [PASSED, *([outcome] if outcome else [])]


def test_where_published_rows_stay_the_files_say_nothing():
    measures = PartitionMeasures(rows=900, kept=10, landed_bytes={GZIP: 1})
    assert measures.profile().landed_bytes == {}
    found = judge_shrink(measures, PartitionProfile(900, landed_bytes={GZIP: 1000}))
    assert [finding.rule for finding in found] == ["shrink"]


def test_profiles_keep_bytes_and_older_ones_have_none():
    profile = PartitionProfile(5, {"n": 1}, {"d": (1, 4)}, {GZIP: 77})
    assert PartitionProfile.from_json(profile.to_json()) == profile
    assert "b" not in PartitionProfile(5).to_json()
    assert PartitionProfile.from_json({"r": 5, "n": {}, "h": {}}) == PartitionProfile(5)


def test_a_rule_of_the_tables_own_takes_the_place_of_the_one_of_every_table():
    own = Shrink(at_most=0.9)
    assert [rule for rule in build_table(own).all_rules if isinstance(rule, Shrink)] == [own]
    assert [rule for rule in build_table().all_rules if isinstance(rule, Shrink)] == [Shrink()]
    assert (
        find(
            judge(
                build_table(own), PartitionMeasures(rows=1), published={DAY: PartitionProfile(9)}
            ),
            Check.COMPLETE,
            "shrink",
        ).outcome
        is PASSED
    )
