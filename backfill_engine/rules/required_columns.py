"""Judges whether required columns have values everywhere."""

from backfill_engine.rules.finding_names import FindingName
from backfill_engine.rules.rule import Aggregates, Findings, RowConditions, Rule, Subject
from backfill_engine.rules.sql import quote_name
from backfill_engine.rules.verdicts import Check, Finding, Outcome

REQUIRED_COLUMNS = FindingName(
    "required_columns",
    Check.VALID,
    meaning="rows without a value in a required column",
    bound="0",
    cure="mend the source, or declare the column as one that may be null",
)


class RequiredColumns(Rule, check=Check.VALID):
    """Demands required values, without which Delta refuses a commit: `required_columns`.

    Attributes:
        columns: the required ones, at least one.
    """

    columns: tuple[str, ...]

    def build_aggregates(self, rows: RowConditions) -> Aggregates:
        """Counts the rows to publish in which any of the columns is null."""
        lacking = " OR ".join(f"{quote_name(column)} IS NULL" for column in self.columns)
        return {self.figure: rows.count(lacking)}

    def judge(self, subject: Subject) -> Findings:
        """Judges only partitions in which a column is null somewhere."""
        if lacking := subject.measured.figures.get(self.figure, 0):
            bound = f"0 rows without one of {', '.join(self.columns)}"
            yield Finding(REQUIRED_COLUMNS, lacking, bound, Outcome.FAILED)
