"""Judges a partition whose source has no records any more."""

from backfill_assets.rules.rule import Findings, Rule, Subject
from backfill_assets.rules.verdicts import Check, Finding, Outcome


class Emptied(Rule, check=Check.COMPLETE, kw_only=True):
    """Reports an emptied partition, in place of the rules that it is exempt from: `row_count`.

    Attributes:
        blocking: whether it is withheld; else it is published empty.
    """

    blocking: bool

    def judge(self, subject: Subject) -> Findings:
        """Judges only partitions without any record."""
        if subject.emptied:
            outcome = Outcome.of(failed=True, blocking=self.blocking)
            yield Finding("row_count", 0, "its source has no records", outcome)
