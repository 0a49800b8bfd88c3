"""Each rule passing and failing."""

import pytest

from backfill_assets.quality.judging import (
    Check,
    Finding,
    Outcome,
    judge_partitions,
)
from backfill_assets.quality.measures import PartitionMeasures
from backfill_assets.rules.profiles import PartitionProfile
from backfill_assets.tables.grains import HOURS, Buckets
from backfill_assets.tables.rules import Drift, Nulls, Reconciled, Rejects, RowCount, Values
from backfill_assets_tests.quality.judged_days import (
    DAY,
    DRIFT,
    NEIGHBOURS,
    PROFILE,
    build_table,
    build_table_by,
    find,
    judge,
)

PASSED, WARNED, FAILED = Outcome.PASSED, Outcome.WARNED, Outcome.FAILED


@pytest.mark.parametrize(
    ("rule", "rows", "outcome", "bound"),
    [
        (RowCount(), 1, PASSED, "at least 1"),
        (RowCount(), 0, FAILED, "at least 1"),
        (RowCount(at_least=0), 0, PASSED, "at least 0"),
        (RowCount(at_most=5), 5, PASSED, "at least 1, at most 5"),
        (RowCount(at_most=5), 6, FAILED, "at least 1, at most 5"),
        (RowCount(at_least=0, at_most=0), 1, FAILED, "at least 0, at most 0"),
        (RowCount(at_most=5, ratio_blocks=False), 6, FAILED, "at least 1, at most 5"),
    ],
)
def test_row_count_in_absolute_bounds(rule, rows, outcome, bound):
    verdict = judge(build_table(rule), PartitionMeasures(rows=rows))
    assert verdict.findings[Check.COMPLETE] == (Finding("row_count", rows, bound, outcome),)
    assert verdict.withheld == (outcome is FAILED)


@pytest.mark.parametrize(
    ("rows", "outcome"), [(499, FAILED), (500, PASSED), (2000, PASSED), (2001, FAILED)]
)
def test_row_count_as_a_ratio_to_the_median_of_the_same_weekday(rows, outcome):
    others = dict.fromkeys(NEIGHBOURS[1:], PartitionProfile(77))
    published = {**others, "2013-01-01": PROFILE}
    rule = RowCount(ratio=(0.5, 2.0))
    verdict = judge(build_table(rule), PartitionMeasures(rows=rows), published=published)
    bound = "0.5 to 2.0 times 1,000, the median of 1 of the same weekday"
    expected = Finding("row_count_ratio", rows / 1000, bound, outcome)
    assert find(verdict, Check.COMPLETE, "row_count_ratio") == expected
    assert verdict.withheld == (outcome is FAILED)


@pytest.mark.parametrize(
    ("grain", "key", "published", "bound"),
    [
        (
            HOURS,
            "2013-01-09-05:00",
            ("2013-01-01-05:00", "2013-01-02-05:00", "2013-01-02-06:00", "2013-01-02-07:00"),
            "0.5 to 2.0 times 1,000, the median of 2 of the same hour of the day",
        ),
        (
            Buckets(step=10, space=100),
            "0000050",
            ("0000000", "0000010", "0000020", "0000030"),
            "0.5 to 2.0 times 1,000, the median of 4 of all buckets",
        ),
    ],
    ids=["hours", "buckets"],
)
def test_the_bound_names_the_peers_of_the_grain(grain, key, published, bound):
    verdicts = judge_partitions(
        build_table_by(grain, RowCount(ratio=(0.5, 2.0))),
        {key: PartitionMeasures(rows=1000)},
        source_records={},
        published=dict.fromkeys(published, PROFILE),
    )
    assert find(verdicts[key], Check.COMPLETE, "row_count_ratio").bound == bound


def test_a_ratio_can_be_a_mere_warning():
    rule = RowCount(ratio=(0.5, 2.0), ratio_blocks=False)
    verdict = judge(build_table(rule), PartitionMeasures(rows=100))
    assert find(verdict, Check.COMPLETE, "row_count_ratio").outcome is WARNED
    assert not verdict.withheld


def test_without_peers_the_ratio_is_to_the_median_of_all_and_says_so():
    rows = dict(zip((*NEIGHBOURS[1:], "2013-01-05"), (10, 20, 31, 40), strict=True))
    verdict = judge(
        build_table(RowCount(ratio=(0.5, 2.0))),
        PartitionMeasures(rows=51),
        published={key: PartitionProfile(count) for key, count in rows.items()},
    )
    bound = "0.5 to 2.0 times 25.5, the median of all 4, as none is of the same weekday"
    assert find(verdict, Check.COMPLETE, "row_count_ratio") == Finding(
        "row_count_ratio", 2.0, bound, PASSED
    )


@pytest.mark.parametrize(
    ("total_of", "difference", "outcome"),
    [(None, 0, PASSED), (None, -1, FAILED), (None, 1, FAILED), ("n", 0, PASSED), ("n", 2, FAILED)],
)
def test_records_of_the_layer_above_are_accounted_for(total_of, difference, outcome):
    measures = PartitionMeasures(rows=90, duplicates_dropped=7, rejects=3, totals={"n": 500})
    accounted = 500 if total_of else 100
    verdict = judge(
        build_table(Reconciled(total_of=total_of)),
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


@pytest.mark.parametrize(("rejects", "outcome"), [(0, PASSED), (1, PASSED), (2, FAILED)])
def test_share_of_rejects(rejects, outcome):
    measures = PartitionMeasures(rows=100 - rejects, rejects=rejects)
    verdict = judge(build_table(Rejects(at_most=0.01)), measures)
    assert verdict.findings[Check.VALID] == (
        Finding("rejects", rejects / 100, "at most 0.01 of the records", outcome),
    )


def test_rejects_that_are_due_are_no_fault():
    measures = PartitionMeasures(rows=99, rejects=11, rejects_due=10)
    verdict = judge(build_table(Rejects(at_most=0.01)), measures)
    assert find(verdict, Check.VALID, "rejects") == Finding(
        "rejects", 0.01, "at most 0.01 of the records", PASSED
    )


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


def test_a_null_in_a_required_column_withholds():
    good, bad = (
        judge(build_table(), PartitionMeasures(rows=5, required_nulls=count)) for count in (0, 2)
    )
    assert good.findings[Check.VALID] == ()
    finding = find(bad, Check.VALID, "required_columns")
    assert finding == Finding("required_columns", 2, "0 rows without one of day, id", FAILED)


@pytest.mark.parametrize(("duplicates", "outcome"), [(0, PASSED), (1, FAILED)])
def test_natural_keys_are_unique(duplicates, outcome):
    table = build_table(natural_key=("day", "id"))
    verdict = judge(table, PartitionMeasures(rows=500, key_duplicates=duplicates))
    assert verdict.findings[Check.VALID] == (
        Finding(
            "keys_are_unique",
            2.0 * duplicates,
            "0 duplicates of (day, id) per 1,000 rows",
            outcome,
        ),
    )


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


# The neighbours' median share of nulls is 1 %.
@pytest.mark.parametrize(
    ("rule", "nulls", "bound", "outcome"),
    [
        (Nulls("n", 0.02), 20, "at most 0.02", PASSED),
        (Nulls("n", 0.02), 21, "at most 0.02", FAILED),
        (Nulls("n", spike=0.05), 60, "at most 0.06, 0.05 above the median of 4", PASSED),
        (Nulls("n", spike=0.05), 61, "at most 0.06, 0.05 above the median of 4", FAILED),
        (Nulls("n", 0.02, spike=0.05), 21, "at most 0.02", FAILED),
        (Nulls("n", 0.5, spike=0.05), 61, "at most 0.06, 0.05 above the median of 4", FAILED),
        (Nulls("n", 0.02, blocking=False), 21, "at most 0.02", WARNED),
    ],
)
def test_share_of_nulls_absolute_and_against_the_baseline(rule, nulls, bound, outcome):
    verdict = judge(build_table(rule), PartitionMeasures(rows=1000, nulls={"n": nulls}))
    expected = Finding("nulls(n)", nulls / 1000, bound, outcome)
    assert verdict.findings[Check.VALID] == (expected,)


@pytest.mark.parametrize(
    ("outside", "blocking", "outcome"), [(0, True, PASSED), (3, True, FAILED), (3, False, WARNED)]
)
def test_values_in_range(outside, blocking, outcome):
    rule = Values("v", 1, 12_500, blocking=blocking)
    verdict = judge(build_table(rule), PartitionMeasures(rows=9, out_of_range={"v": outside}))
    expected = Finding("values(v)", outside, "0 values outside 1 to 12,500", outcome)
    assert verdict.findings[Check.VALID] == (expected,)


@pytest.mark.parametrize(
    ("bins", "blocking", "outcome"),
    [
        ((520, 480, 0), True, PASSED),
        ((700, 300, 0), True, WARNED),  # a PSI of 0.17
        ((900, 100, 0), True, FAILED),
        ((900, 100, 0), False, WARNED),
        ((250, 250, 500), True, PASSED),  # nulls don't count
    ],
)
def test_drift_against_the_baseline(bins, blocking, outcome):
    measures = PartitionMeasures(rows=1000, histograms={DRIFT.histogram: bins})
    verdict = judge(build_table(Drift("d", (0.0,), blocking=blocking)), measures)
    finding = find(verdict, Check.STABLE, "drift(d)")
    assert finding.outcome is outcome
    assert finding.bound.startswith("below 0.25, warning from 0.1" if blocking else "below 0.1")
    assert finding.bound.endswith("against the baseline of 4")


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
    measures = PartitionMeasures(rows=1000, histograms={DRIFT.histogram: (900, 100, 0)})
    finding = find(judge(table, measures, published=published), Check.STABLE, "drift(d)")
    assert finding.bound.endswith(f"against {whose}")
    assert finding.outcome is (PASSED if whose == "its published version" else FAILED)


@pytest.mark.parametrize(("values", "skipped"), [(99, True), (100, False)])
def test_drift_of_too_few_rows_is_not_judged(values, skipped):
    bins = (values, 0, 1000 - values)
    measures = PartitionMeasures(rows=1000, histograms={DRIFT.histogram: bins})
    finding = find(judge(build_table(DRIFT), measures), Check.STABLE, "drift(d)")
    if skipped:
        assert finding == Finding("drift(d)", None, "too few rows (99 of 100)", PASSED)
    else:
        assert finding.outcome is FAILED
