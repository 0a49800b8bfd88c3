"""Judges a partition whose source has no records any more."""

from typing import Literal

from backfill_engine.rules.row_count import ROW_COUNT
from backfill_engine.rules.rule import Findings, Rule, Subject
from backfill_engine.rules.verdicts import Check, Finding, Outcome


class Emptied(Rule, check=Check.COMPLETE, kw_only=True):
    """Reports an emptied partition, in place of the rules that it is exempt from: `row_count`.

    Attributes:
        empty: whether it is published empty, or withheld; `evidenced` publishes it where something
            says that it is meant. Of a partition that is computed from tables, that is the publish
            of these; of one that landed, what `Landed.evidence` has.
    """

    empty: Literal["publish", "evidenced", "withhold"]

    def judge(self, subject: Subject) -> Findings:
        """Judges only partitions without any record; one that never had any is as it should be."""
        if not subject.emptied:
            return
        landed, bound = subject.landed, "its source has no records"
        if landed is not None:
            bound += f": {landed.why_empty}"
        evidenced = landed is None or bool(landed.evidence)
        blocking = self.empty == "withhold" or (self.empty == "evidenced" and not evidenced)
        had_rows = subject.previous is not None and subject.previous.rows > 0
        meant = landed is not None and evidenced and not had_rows
        outcome = Outcome.of(failed=blocking or not meant, blocking=blocking)
        yield Finding(ROW_COUNT, 0, bound, outcome)
