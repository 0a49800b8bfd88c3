"""Judges whether a column agrees with others of its row."""

from collections.abc import Collection, Mapping

import sqlglot
from sqlglot import exp

from backfill_engine.rules.finding_names import FindingName
from backfill_engine.rules.rule import Aggregates, Findings, RowConditions, Rule, Subject
from backfill_engine.rules.verdicts import Check, Finding, Outcome

AGREES = FindingName(
    "agrees",
    Check.VALID,
    meaning="share of the rows in which the column contradicts others of the row",
    bound="at most `at_most`",
    cure="compare them in some rows: another unit, sign or time zone, shifted or lost values",
)


class Agreement(Rule, check=Check.VALID):
    """Bounds the share of rows whose column contradicts the others: `agrees(column)`.

    It tells a fault from nature where a distribution can't: delays swing from day to day, but each
    is the difference of two times.

    Attributes:
        column: the column in question, for the name.
        condition: SQL over columns of the row; a row agrees unless it is false.
        at_most: bound of the share of rows that don't, 0 to 1.
        blocking: whether a failure withholds.
    """

    column: str
    condition: str
    at_most: float = 0.01
    blocking: bool = False

    @property
    def columns_needed(self) -> Mapping[str, Collection[str]]:
        """Names the column, and those of the condition."""
        read = sqlglot.parse_one(self.condition, read="spark")
        return {self.column: (), **{column.name: () for column in read.find_all(exp.Column)}}

    def build_aggregates(self, rows: RowConditions) -> Aggregates:
        """Counts the rows to publish for which the condition is false."""
        return {self.figure: rows.count(f"NOT ({self.condition})")}

    def judge(self, subject: Subject) -> Findings:
        """Judges their share; nothing of a partition without rows."""
        if rows := subject.measured.rows:
            share = subject.measured.figures.get(self.figure, 0) / rows
            bound = f"at most {self.at_most} of the rows against: {self.condition}"
            outcome = Outcome.of(failed=share > self.at_most, blocking=self.blocking)
            yield Finding(AGREES.of(self.column), share, bound, outcome)
