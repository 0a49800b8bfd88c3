"""How many rows there are, in absolute bounds and beside their peers."""

import pytest

from backfill_engine.grains.buckets import Buckets
from backfill_engine.grains.timestamps import HOURS
from backfill_engine.quality.judging import judge_partitions
from backfill_engine.rules.count_rules import RowCount
from backfill_engine.rules.measured import Landed, PartitionMeasures, PartitionProfile
from backfill_engine.rules.verdicts import Check, Finding
from backfill_engine_tests.rules.judged_days import (
    DAY,
    FAILED,
    NEIGHBOURS,
    PASSED,
    PROFILE,
    WARNED,
    build_table,
    build_table_by,
    find,
    judge,
)


@pytest.mark.parametrize(
    ("rule", "rows", "outcome", "bound"),
    [
        (RowCount(), 1, PASSED, "at least 1"),
        (RowCount(), 0, FAILED, "at least 1"),
        (RowCount(at_least=0), 0, PASSED, "at least 0"),
        (RowCount(at_most=5), 5, PASSED, "at least 1, at most 5"),
        (RowCount(at_most=5), 6, FAILED, "at least 1, at most 5"),
        (RowCount(at_least=0, at_most=0), 1, FAILED, "at least 0, at most 0"),
        (RowCount(at_most=5, ratio_only_warns="it swings"), 6, FAILED, "at least 1, at most 5"),
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
    bound = "500 to 2,000 rows: 0.5 to 2.0 times 1,000, the median of 1 of the same weekday"
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
            "500 to 2,000 rows: 0.5 to 2.0 times 1,000, the median of 2 of the same hour of the "
            "day",
        ),
        (
            Buckets(step=10, space=100),
            "0000050",
            ("0000000", "0000010", "0000020", "0000030"),
            "500 to 2,000 rows: 0.5 to 2.0 times 1,000, the median of 4 of all buckets",
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
    rule = RowCount(ratio=(0.5, 2.0), ratio_only_warns="it swings")
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
    bound = (
        "13 to 51 rows: 0.5 to 2.0 times 25.5, the median of all 4, as none is of the same weekday"
    )
    assert find(verdict, Check.COMPLETE, "row_count_ratio") == Finding(
        "row_count_ratio", 2.0, bound, PASSED
    )


@pytest.mark.parametrize(("rows", "outcome"), [(44, FAILED), (45, WARNED), (599, WARNED)])
def test_far_below_the_median_withholds_where_the_ratio_only_warns(rows, outcome):
    rule = RowCount(ratio=(0.6, 1.75), ratio_only_warns="it swings", withhold_below=0.045)
    verdict = judge(build_table(rule), PartitionMeasures(rows=rows))
    assert find(verdict, Check.COMPLETE, "row_count_ratio").outcome is outcome


@pytest.mark.parametrize(
    ("rows", "landed", "only_warns", "outcome"),
    [
        (10, True, "", PASSED),
        (10, False, "it swings", PASSED),
        (10, False, "", FAILED),  # few for another reason than what is to land
        (9000, True, "", WARNED),
        (9000, False, "it swings", WARNED),
    ],
)
def test_few_rows_are_no_warning_while_more_is_to_land(rows, landed, only_warns, outcome):
    rule, why = RowCount(ratio=(0.5, 2.0), ratio_only_warns=only_warns), "landed up to 240000 of it"
    verdict = judge(
        build_table(rule),
        PartitionMeasures(rows=rows),
        landed={DAY: Landed(unfinished=why)} if landed else {},
        provisional={DAY: why},
    )
    finding = find(verdict, Check.COMPLETE, "row_count_ratio")
    assert finding.outcome is outcome
    assert finding.bound.endswith(f"; few, as {why}") == (outcome is PASSED)
