"""Judges whether a natural key tells rows apart."""

from backfill_engine.rules.finding_names import FindingName
from backfill_engine.rules.rule import Findings, Rule, Subject
from backfill_engine.rules.verdicts import Check, Finding, Outcome

KEYS_ARE_UNIQUE = FindingName(
    "keys_are_unique",
    Check.VALID,
    meaning="rows per 1,000 that repeat another's natural key",
    bound="0",
    cure="look for what landed twice; if both rows are right, the natural key lacks a column",
)


class UniqueKeys(Rule, check=Check.VALID):
    """Demands that no two rows have the same natural key: `keys_are_unique`.

    Attributes:
        columns: of the natural key; empty where rows may repeat.
    """

    columns: tuple[str, ...]

    def judge(self, subject: Subject) -> Findings:
        """Judges the duplicates per 1,000 rows, which are counted whatever the rules."""
        if not self.columns:
            return
        duplicates, rows = subject.measured.key_duplicates, subject.measured.rows
        per_1000 = 1000 * duplicates / rows if rows else 0.0
        bound = f"0 duplicates of ({', '.join(self.columns)}) per 1,000 rows"
        yield Finding(KEYS_ARE_UNIQUE, per_1000, bound, Outcome.of(failed=duplicates > 0))
