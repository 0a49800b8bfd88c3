"""Judges whether a column has more than one value."""

from collections.abc import Collection, Mapping

from backfill_engine.rules.finding_names import FindingName
from backfill_engine.rules.rule import Aggregates, Findings, RowConditions, Rule, Subject
from backfill_engine.rules.sql import quote_name
from backfill_engine.rules.verdicts import Check, Finding, Outcome

VARIES = FindingName(
    "varies",
    Check.VALID,
    meaning="whether the column has more than one value; 0 if all are the same",
    bound="1, in partitions of `at_least` values",
    cure="look for a default that took the place of values",
)


class Variation(Rule, check=Check.VALID):
    """Demands values that aren't all the same, of columns that never are: `varies(column)`.

    Attributes:
        column: its name.
        at_least: rows of a partition that is judged; fewer may well be alike.
        blocking: whether a failure withholds.
    """

    column: str
    at_least: int = 20
    blocking: bool = False

    @property
    def columns_needed(self) -> Mapping[str, Collection[str]]:
        """Names the column."""
        return {self.column: ()}

    def build_aggregates(self, rows: RowConditions) -> Aggregates:
        """Compares the least hash of the rows to publish with the greatest; 1 if they differ.

        Over texts themselves Spark would sort all rows, and take five times as long for all rules.
        """
        name = quote_name(self.column)
        value = f"CASE WHEN {rows.to_publish} AND {name} IS NOT NULL THEN xxhash64({name}) END"
        return {self.figure: f"CASE WHEN min({value}) = max({value}) THEN 0 ELSE 1 END"}

    def judge(self, subject: Subject) -> Findings:
        """Judges whether there are two values; a column of nulls is for `Nulls` to judge."""
        if subject.measured.rows >= self.at_least:
            varies = subject.measured.figures.get(self.figure, 1)
            outcome = Outcome.of(failed=not varies, blocking=self.blocking)
            bound = "1: not all values are the same"
            yield Finding(VARIES.of(self.column), varies, bound, outcome)
