"""Judges whether the values of a column are possible."""

from collections.abc import Collection, Mapping

from backfill_engine.rules.finding_names import FindingName
from backfill_engine.rules.rule import Aggregates, Findings, RowConditions, Rule, Subject
from backfill_engine.rules.sql import NUMBERS, quote_name, write_number
from backfill_engine.rules.verdicts import Check, Finding, Outcome, format_figure

VALUES = FindingName(
    "values",
    Check.VALID,
    meaning="values of the column that can't be",
    bound="0 outside `low` to `high`",
    cure="look for another unit, sign or type, or a faulty instrument",
)


class Values(Rule, check=Check.VALID):
    """Demands that values lie in `low … high`, both included, or are null: `values(column)`.

    Attributes:
        column: a numeric column.
        low: the lowest value that is possible.
        high: the highest.
        blocking: whether a failure withholds.
    """

    column: str
    low: float
    high: float
    blocking: bool = True

    @property
    def columns_needed(self) -> Mapping[str, Collection[str]]:
        """Names the column, which must be numeric."""
        return {self.column: NUMBERS}

    def build_aggregates(self, rows: RowConditions) -> Aggregates:
        """Counts the values out of range among the rows to publish."""
        low, high = write_number(self.low), write_number(self.high)
        outside = f"{quote_name(self.column)} NOT BETWEEN {low} AND {high}"
        return {self.figure: rows.count(outside)}

    def judge(self, subject: Subject) -> Findings:
        """Judges how many are out of range."""
        outside = subject.measured.figures.get(self.figure, 0)
        bound = f"0 values outside {format_figure(self.low)} to {format_figure(self.high)}"
        outcome = Outcome.of(failed=outside > 0, blocking=self.blocking)
        yield Finding(VALUES.of(self.column), outside, bound, outcome)
