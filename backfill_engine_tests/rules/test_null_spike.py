"""Columns that are null far more often than they use to be, in tables that declare none of it."""

import pytest

from backfill_engine.errors import DeclarationError
from backfill_engine.rules.column_rules import Nulls, NullSpike
from backfill_engine.rules.measured import (
    NOT_MEASURED,
    NULLS,
    NULLS_OF_MANY,
    PartitionMeasures,
    PartitionProfile,
)
from backfill_engine.rules.rule import RowConditions
from backfill_engine.rules.verdicts import Check, Finding
from backfill_engine_tests.rules.judged_days import (
    DAY,
    FAILED,
    NEIGHBOURS,
    WARNED,
    build_table,
    judge,
)

PUBLISHED = dict.fromkeys(NEIGHBOURS, PartitionProfile(100, {"d": 10, "n": 10, "v": 10}))
BOUND = "at most 0.35, 0.25 above the median of 4"


def measure(rows: int = 100, **nulls: int) -> PartitionMeasures:
    figures = {(NULLS_OF_MANY, column): count for column, count in nulls.items()}
    return PartitionMeasures(rows=rows, figures=figures)


def list_found(*rules, measures: PartitionMeasures, **others) -> list[Finding]:
    verdict = judge(build_table(*rules), measures, **{"published": PUBLISHED, **others})
    found = verdict.findings[Check.VALID]
    return [finding for finding in found if finding.rule.startswith("null_spike")]


def test_each_column_is_held_against_its_own_share_and_only_a_rise_is_found():
    found = list_found(measures=measure(d=35, n=36, v=0))
    assert found == [Finding("null_spike(n)", 0.36, BOUND, FAILED)]


@pytest.mark.parametrize(
    "published",
    [
        dict.fromkeys(NEIGHBOURS, PartitionProfile(100)),
        dict(list(PUBLISHED.items())[:3]),
        {DAY: PUBLISHED[NEIGHBOURS[0]]},
    ],
    ids=["not measured then", "three", "itself"],
)
def test_without_a_baseline_of_the_column_nothing_is_found(published):
    assert list_found(measures=measure(d=100, n=100, v=100), published=published) == []


def test_few_rows_are_neither_judged_nor_kept():
    few = measure(rows=49, d=NOT_MEASURED, n=49, v=0)
    assert list_found(measures=few) == []
    assert few.profile().nulls == {"n": 49, "v": 0}


def test_lost_profiles_are_no_reason_to_pass():
    (found,) = list_found(measures=measure(), published={}, is_history_lost=True)
    assert (found.rule, found.outcome) == ("null_spike(d)", FAILED)
    assert "have lost the others" in found.bound


def test_a_column_with_bounds_of_its_own_is_left_to_them():
    (rule,) = (
        rule
        for rule in build_table(Nulls("n", 0.25), NullSpike(columns=("v",), rise=1)).all_rules
        if isinstance(rule, NullSpike) and rule.rise < 1
    )
    assert rule == NullSpike(columns=("d",))
    own = NullSpike(columns=("v",), rise=0.5, only_warns="it swings")
    found = list_found(Nulls("n", 1.0, spike=1.0), own, measures=measure(d=50, n=100, v=61))
    assert [(finding.rule, finding.outcome) for finding in found] == [
        ("null_spike(d)", FAILED),
        ("null_spike(v)", WARNED),
    ]
    assert found[1].bound == "at most 0.6, 0.5 above the median of 4; only warns: it swings"


def test_one_that_names_no_columns_says_the_bounds_of_the_others():
    rules = build_table(NullSpike(rise=0.5), Nulls("n", spike=0.1)).all_rules
    assert [rule for rule in rules if isinstance(rule, NullSpike)] == [
        NullSpike(columns=("d", "v"), rise=0.5)
    ]
    assert list_found(NullSpike(rise=1), measures=measure(d=100, n=100, v=100)) == []


def test_a_wide_bound_of_all_nulls_leaves_a_spike_to_be_found():
    found = list_found(Nulls("n", 0.9), measures=measure(n=89))
    assert [finding.rule for finding in found] == ["null_spike(n)"]


def test_a_column_that_was_not_counted_before_is_no_loss_of_history():
    others = dict.fromkeys(NEIGHBOURS, PartitionProfile(100, {"v": 0}))
    measures = measure(d=100, n=100, v=0)
    assert list_found(measures=measures, published=others, is_history_lost=True) == []


@pytest.mark.parametrize(
    ("spikes", "about"),
    [
        ([NullSpike(columns=("v", "d")), NullSpike(columns=("v",), at_least=100)], "v"),
        ([NullSpike(rise=0.5), NullSpike(at_least=100)], "the columns left"),
    ],
)
def test_two_about_one_column_are_refused(spikes: list[NullSpike], about: str):
    with pytest.raises(DeclarationError, match=f"two rules `NullSpike` are about {about}: keep"):
        build_table(*spikes)


def test_a_column_that_is_not_compared_is_not_counted():
    conditions = RowConditions(to_publish="true", computed="true")
    assert NullSpike(columns=("v",), rise=1).build_aggregates(conditions) == {}
    assert [*NullSpike(columns=("v",)).build_aggregates(conditions)] == [(NULLS_OF_MANY, "v")]


def test_profiles_keep_what_either_rule_counted():
    measured = PartitionMeasures(rows=60, figures={(NULLS, "n"): 3, (NULLS_OF_MANY, "v"): 0})
    assert measured.profile().nulls == {"v": 0, "n": 3}
