"""A run that applies a rehearsal publishes what the rehearsal has shown, or withholds it."""

import pytest

from backfill_engine.contents.partition_contents import ReadBack
from backfill_engine.extras.rehearsal.applying import Shown, judge_as_rehearsed
from backfill_engine.rules.verdicts import Check, Finding, Outcome, Verdict

SHOWN = Shown(rows=2, checksum="new", over="old")
GOOD = Verdict(
    "2013-01-11", {Check.COMPLETE: (Finding("row_count", 2, "at least 1", Outcome.PASSED),)}
)


@pytest.mark.parametrize("published", ["old", "new"])
def test_what_is_as_shown_is_published_over_what_it_was_compared_with_or_itself(
    published: str,
) -> None:
    verdict = judge_as_rehearsed(GOOD, ReadBack(2, "new"), SHOWN, published=published)
    assert not verdict.withheld
    assert [finding.rule for finding in verdict.findings[Check.COMPLETE]] == [
        "row_count",
        "content_is_as_rehearsed",
    ]


@pytest.mark.parametrize("found", [ReadBack(2, "other"), ReadBack(3, "new")])
def test_other_rows_are_withheld(found: ReadBack) -> None:
    verdict = judge_as_rehearsed(GOOD, found, SHOWN, published="old")
    assert verdict.withheld
    (failed,) = verdict.failed(Check.COMPLETE)
    assert failed.bound.startswith("2 rows with checksum new were rehearsed, found")


@pytest.mark.parametrize("published", ["", "newer"])
def test_over_other_contents_the_rehearsed_ones_are_withheld(published: str) -> None:
    verdict = judge_as_rehearsed(GOOD, ReadBack(2, "new"), SHOWN, published=published)
    (failed,) = verdict.failed(Check.COMPLETE)
    assert "somebody published the partition since" in failed.bound
