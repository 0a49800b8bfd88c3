"""Judges how much of what is published would vanish."""

from collections.abc import Mapping

from backfill_assets.rules.finding_names import FindingName
from backfill_assets.rules.rule import Findings, Rule, Subject
from backfill_assets.rules.verdicts import Check, Finding, Outcome


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
        yield self._judge(FindingName.SHRINK, subject.measured.rows, previous.rows, "rows")
        before, now = previous.landed_bytes, subject.measured.kept_bytes
        if sum(before.values()) and before.keys() == now.keys():
            yield self._judge(FindingName.SHRINK_BYTES, _sum(now), _sum(before), "bytes of files")

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
