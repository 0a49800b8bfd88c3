"""Judges how much of what is published would vanish."""

from collections.abc import Mapping

from backfill_engine.rules.finding_names import FindingName
from backfill_engine.rules.rule import Findings, Rule, Subject
from backfill_engine.rules.verdicts import Check, Finding, Outcome

SHRINK = FindingName(
    "shrink",
    Check.COMPLETE,
    meaning="share of the published rows that would vanish",
    bound="at most `Shrink.at_most`, 0.5",
    cure="look for what the source no longer has; accept it if it was taken back",
)

SHRINK_BYTES = FindingName(
    "shrink_bytes",
    Check.COMPLETE,
    meaning="share of the bytes of the files that the published rows came from that would vanish",
    bound="at most `Shrink.at_most`, 0.5",
    cure="look for files that were cut off or lost; accept it if they were taken back",
)


class Shrink(Rule, check=Check.COMPLETE, kw_only=True):
    """Bounds what a re-run may take away: `shrink` of the rows, `shrink_bytes` of the files.

    Files are compared only where the partition landed in files of the same suffixes both times: one
    that is no longer compressed, or now is, says nothing. An emptied partition is exempt.

    Attributes:
        at_most: share of the published rows, and of the bytes that they were computed from.
        blocking: whether a failure withholds.
    """

    at_most: float = 0.5
    blocking: bool = True

    def judge(self, subject: Subject) -> Findings:
        """Judges only where rows are published already."""
        previous = subject.previous
        if previous is None or not previous.rows or subject.emptied:
            return
        yield self._judge(SHRINK, subject.measured.rows, previous.rows, "rows")
        before, now = previous.landed_bytes, subject.measured.kept_bytes
        if sum(before.values()) and before.keys() == now.keys():
            yield self._judge(SHRINK_BYTES, _sum(now), _sum(before), "bytes of files")

    def _judge(self, rule: str, now: int, before: int, what: str) -> Finding:
        share = max(0.0, 1 - now / before)
        return Finding(
            rule,
            share,
            f"at most {self.at_most} of {before:,} {what} may vanish: {now:,} are left",
            Outcome.of(failed=share > self.at_most, blocking=self.blocking),
        )


def _sum(sizes: Mapping[str, int]) -> int:
    return sum(sizes.values())
