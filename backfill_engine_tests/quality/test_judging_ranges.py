"""Properties of verdicts over ranges: judging at once is judging one by one."""

from dataclasses import dataclass
from typing import Any

from hypothesis import event, given
from hypothesis import strategies as st

from backfill_engine.quality.judging import judge_partitions
from backfill_engine.rules.column_rules import Nulls, Values
from backfill_engine.rules.count_rules import Reconciled, Rejects, RowCount
from backfill_engine.rules.drift import Drift
from backfill_engine.rules.measured import (
    BINS,
    NULLS,
    NULLS_OF_MANY,
    Figure,
    PartitionMeasures,
    PartitionProfile,
)
from backfill_engine.rules.verdicts import Acceptance, Check, Verdict
from backfill_engine.tables.declarations import Column, Table, required

DRIFTS = (Drift("d", (0.0,)), Drift("e", (0.0,), only_warns="it swings"))
VALUES = Values("v", 0, 1)
TABLE = Table(
    "raw",
    "readings",
    "day",
    (
        required("day", "DATE", "Day"),
        required("id", "INT", "Key"),
        *(Column(name, "INT", "A figure") for name in "denv"),
    ),
    natural_key=("day", "id"),
    rules=(
        RowCount(at_most=1900, ratio=(0.5, 2.0)),
        Reconciled(),
        Rejects(at_most=0.05),
        Nulls("n", at_most=0.9, spike=0.3),
        VALUES,
        *DRIFTS,
    ),
)
KEYS = tuple(f"2013-01-{week + day:02}" for week in (1, 8, 15, 22) for day in range(3))
"""Of three weekdays."""


@dataclass(frozen=True)
class Case:
    """What a run may meet."""

    measures: dict[str, PartitionMeasures]
    source_records: dict[str, int]
    published: dict[str, PartitionProfile]
    acceptances: tuple[Acceptance, ...]


@st.composite
def build_measures(draw: st.DrawFn) -> PartitionMeasures:
    rows = draw(st.just(0) | st.integers(200, 2000))
    seldom = st.sampled_from((0, 0, 0, 0, 0, 40))
    figures: dict[Figure, Any] = {
        (NULLS, "n"): draw(st.integers(0, rows)),
        (NULLS_OF_MANY, "v"): draw(st.integers(0, rows // 3)),
    }
    figures[VALUES.figure] = draw(seldom) if rows else 0
    for drift in DRIFTS:
        nulls = draw(st.integers(0, rows))
        below = draw(st.integers(0, rows - nulls))
        figures[BINS, drift.histogram] = (below, rows - nulls - below, nulls)
    return PartitionMeasures(
        rows=rows,
        rejects=draw(seldom) if rows else 0,
        key_duplicates=draw(seldom) if rows else 0,
        figures=figures,
    )


@st.composite
def build_case(draw: st.DrawFn) -> Case:
    measures = draw(st.dictionaries(st.sampled_from(KEYS), build_measures(), min_size=1))
    measures = {key: measures[key] for key in sorted(measures)}
    source_records = {
        key: measured.rows + measured.rejects + draw(st.sampled_from((0, 0, 0, 1)))
        for key, measured in measures.items()
        if draw(st.booleans())
    }
    profiles = build_measures().map(PartitionMeasures.profile)
    acceptances = st.builds(
        Acceptance,
        st.sampled_from((Check.COMPLETE, Check.VALID, Check.STABLE)),
        st.just("a reason"),
        st.none() | st.lists(st.sampled_from(KEYS)).map(tuple),
    )
    return Case(
        measures,
        source_records,
        draw(st.dictionaries(st.sampled_from(KEYS), profiles)),
        tuple(draw(st.lists(acceptances, max_size=3))),
    )


def judge(
    case: Case,
    measures: dict[str, PartitionMeasures],
    published: dict[str, PartitionProfile] | None = None,
) -> dict[str, Verdict]:
    return judge_partitions(
        TABLE,
        measures,
        source_records=case.source_records,
        published=case.published if published is None else published,
        acceptances=case.acceptances,
    )


@given(build_case())
def test_one_range_is_the_same_as_its_partitions_one_by_one(case):
    published = dict(case.published)
    one_by_one = {}
    for key, measured in case.measures.items():
        one_by_one |= judge(case, {key: measured}, published)
        if not one_by_one[key].withheld:
            # As the next run reads it from the commit.
            published[key] = PartitionProfile.from_json(measured.profile().to_json())
    at_once = judge(case, case.measures)
    assert at_once == one_by_one
    event(f"withheld: {sum(verdict.withheld for verdict in at_once.values())}")


@given(build_case())
def test_a_withheld_partition_is_for_the_others_as_if_it_had_not_run(case):
    verdicts = judge(case, case.measures)
    good = {key: case.measures[key] for key in verdicts if not verdicts[key].withheld}
    assert judge(case, good) == {key: verdicts[key] for key in good}


@given(build_case())
def test_an_acceptance_publishes_exactly_what_it_covers(case):
    for key, verdict in judge(case, case.measures).items():
        failed = {check for check in verdict.findings if verdict.failed(check)}
        covering = [
            acceptance
            for acceptance in case.acceptances
            if any(acceptance.covers(check, key) for check in failed)
        ]
        assert list(verdict.accepted) == covering
        assert verdict.withheld == bool(failed - {acceptance.check for acceptance in covering})
        event(f"accepted and published: {bool(covering) and not verdict.withheld}")


@given(build_case())
def test_the_order_of_what_is_published_does_not_matter(case):
    backwards = dict(reversed(case.published.items()))
    assert judge(case, case.measures, backwards) == judge(case, case.measures)
