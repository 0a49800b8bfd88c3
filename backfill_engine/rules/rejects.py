"""Judges how many records of the source can't become rows."""

from backfill_engine.rules.finding_names import FindingName
from backfill_engine.rules.rule import Findings, Rule, Subject
from backfill_engine.rules.verdicts import Check, Finding, Outcome

REJECTS = FindingName(
    "rejects",
    Check.VALID,
    meaning="share of the source's records that could not become rows",
    bound="at most `Rejects.at_most`",
    cure="read them in `quarantine`, each with its reason, and land them mended",
)


class Rejects(Rule, check=Check.VALID, kw_only=True):
    """Bounds the share of source records that could not become rows: `rejects`.

    Attributes:
        at_most: bound of the share, 0 to 1.
    """

    at_most: float = 0.01

    def judge(self, subject: Subject) -> Findings:
        """Judges the rejects' share of the computed rows and themselves, without those due."""
        rejects = subject.measured.rejects - subject.measured.rejects_before_first
        share = rejects / (subject.measured.computed + rejects) if rejects else 0.0
        bound = f"at most {self.at_most} of the records"
        yield Finding(REJECTS, share, bound, Outcome.of(failed=share > self.at_most))
