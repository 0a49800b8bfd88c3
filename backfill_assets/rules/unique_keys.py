"""Judges whether a natural key tells rows apart."""

from backfill_assets.rules.finding_names import FindingName
from backfill_assets.rules.rule import Findings, Rule, Subject
from backfill_assets.rules.verdicts import Check, Finding, Outcome


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
        yield Finding(
            FindingName.KEYS_ARE_UNIQUE, per_1000, bound, Outcome.of(failed=duplicates > 0)
        )
