"""Distributions against the baseline, and against the published version."""

import pytest

from backfill_engine.rules.drift import Drift
from backfill_engine.rules.measured import BINS, PartitionMeasures, PartitionProfile
from backfill_engine.rules.rule import RowConditions
from backfill_engine.rules.verdicts import Check, Finding
from backfill_engine_tests.rules.judged_days import (
    DAY,
    DRIFT,
    FAILED,
    NEIGHBOURS,
    PASSED,
    PROFILE,
    WARNED,
    build_table,
    find,
    judge,
)


@pytest.mark.parametrize(
    ("bins", "blocking", "outcome"),
    [
        ((600, 400, 0), False, PASSED),  # 0.04
        ((520, 480, 0), True, PASSED),
        ((700, 300, 0), True, WARNED),  # a PSI of 0.17
        ((900, 100, 0), True, FAILED),
        ((900, 100, 0), False, WARNED),
        ((250, 250, 500), True, PASSED),  # nulls don't count
    ],
)
def test_drift_against_the_baseline(bins, blocking, outcome):
    measures = PartitionMeasures(rows=1000, figures={(BINS, DRIFT.histogram): bins})
    verdict = judge(
        build_table(Drift("d", (0.0,), only_warns="" if blocking else "it swings")), measures
    )
    finding = find(verdict, Check.STABLE, "drift(d)")
    assert finding.outcome is outcome
    assert finding.bound.startswith("below 0.25, warning from 0.1" if blocking else "below 0.1")
    end = "" if blocking else "; only warns: it swings"
    assert finding.bound.endswith(f"against the baseline of 4{end}")


@pytest.mark.parametrize(
    ("histograms", "whose"),
    [
        ({DRIFT.histogram: (900, 100, 0)}, "its published version"),
        ({Drift("d", (1.0,)).histogram: (900, 100, 0)}, "the baseline of 4"),  # other edges then
        ({DRIFT.histogram: (9, 1, 990)}, "the baseline of 4"),  # too few values to compare with
    ],
)
def test_drift_against_the_published_version(histograms, whose):
    published = {
        **dict.fromkeys(NEIGHBOURS, PROFILE),
        DAY: PartitionProfile(1000, {}, histograms),
    }
    table = build_table(DRIFT)
    measures = PartitionMeasures(rows=1000, figures={(BINS, DRIFT.histogram): (900, 100, 0)})
    finding = find(judge(table, measures, published=published), Check.STABLE, "drift(d)")
    assert finding.bound.endswith(f"against {whose}")
    assert finding.outcome is (PASSED if whose == "its published version" else FAILED)


@pytest.mark.parametrize(("values", "skipped"), [(99, True), (100, False)])
def test_drift_of_too_few_rows_is_not_judged(values, skipped):
    bins = (values, 0, 1000 - values)
    measures = PartitionMeasures(rows=1000, figures={(BINS, DRIFT.histogram): bins})
    finding = find(judge(build_table(DRIFT), measures), Check.STABLE, "drift(d)")
    if skipped:
        assert finding == Finding("drift(d)", None, "too few rows (99 of 100)", PASSED)
    else:
        assert finding.outcome is FAILED


def test_one_that_only_warns_may_do_so_from_beyond_where_others_fail():
    measures = PartitionMeasures(rows=1000, figures={(BINS, DRIFT.histogram): (900, 100, 0)})
    rule = Drift("d", (0.0,), warn=1.0, only_warns="it swings")
    finding = find(judge(build_table(rule), measures), Check.STABLE, "drift(d)")
    bound = "below 1.0, against the baseline of 4; only warns: it swings"
    assert (finding.outcome, finding.bound) == (PASSED, bound)


def test_names_have_a_bin_each_and_one_for_all_others():
    rows = RowConditions(to_publish="ok", computed="true")
    (sql,) = Drift("c", ("A", "it's")).build_aggregates(rows).values()
    conditions = ("`c` = 'A'", "`c` = 'it\\'s'", "`c` NOT IN ('A', 'it\\'s')", "`c` IS NULL")
    counts = (f"count_if(ok AND ({condition}))" for condition in conditions)
    assert sql == f"array({', '.join(counts)})"


def test_weighted_values_are_another_histogram():
    rows, rule = RowConditions(to_publish="ok", computed="true"), Drift("d", (0,), weight="n")
    ((figure, sql),) = rule.build_aggregates(rows).items()
    assert figure != (BINS, Drift("d", (0,)).histogram)
    assert sql.startswith("array(coalesce(sum(CASE WHEN ok AND (`d` < 0) THEN `n` END), 0), ")


def test_histograms_of_older_commits_keep_their_names():
    assert Drift("distance", (250, 500)).histogram == "distance/154c9298"
