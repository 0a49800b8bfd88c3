"""What a baseline, an emptied source, an acceptance and a range do to verdicts."""

import dataclasses
import subprocess
import sys

import pytest

from backfill_engine.rules.column_rules import Nulls
from backfill_engine.rules.measured import BINS, NULLS, PartitionMeasures, PartitionProfile
from backfill_engine.rules.verdicts import Check, Finding
from backfill_engine_tests.rules.judged_days import (
    COMPARING,
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

STRANGE = PartitionMeasures(
    rows=10_000, figures={(NULLS, "n"): 9_000, (BINS, DRIFT.histogram): (10_000, 0, 0)}
)


@pytest.mark.parametrize("count", [0, 3, 4])
def test_fewer_than_four_partitions_are_no_baseline(count):
    published = dict.fromkeys(NEIGHBOURS[:count], PROFILE)
    # Neither an empty partition nor an old version of the judged one is one more to compare with.
    published |= {"2013-01-05": PartitionProfile(0), DAY: PartitionProfile(10_000, {}, {})}
    verdict = judge(build_table(*COMPARING), STRANGE, published=published)
    for check, rule in (
        (Check.COMPLETE, "row_count_ratio"),
        (Check.VALID, "nulls(n)"),
        (Check.STABLE, "drift(d)"),
    ):
        finding = find(verdict, check, rule)
        if count < 4:
            assert finding == Finding(rule, None, f"no baseline ({count} partitions)", PASSED)
        else:
            assert finding.outcome is FAILED


def test_that_others_were_lost_is_no_reason_to_pass():
    published = dict.fromkeys(NEIGHBOURS[:3], PROFILE)
    warning = Nulls("v", spike=0.05, only_warns="it swings")
    verdict = judge(
        build_table(*COMPARING, warning), STRANGE, published=published, is_history_lost=True
    )
    found = {
        finding.rule: finding.outcome
        for findings in verdict.findings.values()
        for finding in findings
        if "have lost the others" in finding.bound
    }
    assert found == {
        **dict.fromkeys(("row_count_ratio", "nulls(n)", "null_spike(d)", "drift(d)"), FAILED),
        "nulls(v)": WARNED,
    }


def test_absolute_bounds_need_no_baseline():
    verdict = judge(build_table(Nulls("n", 0.5, spike=0.05)), STRANGE, published={})
    bound = "at most 0.5, no baseline (0 partitions)"
    assert verdict.findings[Check.VALID] == (Finding("nulls(n)", 0.9, bound, FAILED),)


def test_verdicts_have_all_checks_that_come_before_the_publish():
    verdict = judge(build_table(), PartitionMeasures(rows=1))
    assert dict(verdict.findings) == {Check.COMPLETE: (), Check.VALID: (), Check.STABLE: ()}
    assert dataclasses.replace(verdict, partition="x").accepted == ()


def test_judging_needs_no_spark():
    code = "import sys, backfill_engine.quality.judging; sys.exit('pyspark' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
