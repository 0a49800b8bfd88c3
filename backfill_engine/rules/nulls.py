"""Judges how many values of a column are missing."""

from collections.abc import Collection, Mapping

from backfill_engine.rules.baseline import MIN_PARTITIONS
from backfill_engine.rules.finding_names import FindingName
from backfill_engine.rules.profiles import NULLS
from backfill_engine.rules.rule import Aggregates, Findings, RowConditions, Rule, Subject
from backfill_engine.rules.sql import quote_name
from backfill_engine.rules.verdicts import Check, Finding, Outcome

NULL_SHARE = FindingName(
    "nulls",
    Check.VALID,
    meaning="share of the rows without a value in the column",
    bound="at most `at_most`, and `spike` above the baseline's median",
    cure="look for a field that was renamed or dropped at the source",
)


class Nulls(Rule, check=Check.VALID):
    """Bounds the share of nulls in a column, by the lower of two bounds: `nulls(column)`.

    Attributes:
        column: its name.
        at_most: absolute bound, 0 to 1.
        spike: bound of the increase over the baseline's median share; None to not compare.
        blocking: whether a failure withholds.
    """

    column: str
    at_most: float = 1.0
    spike: float | None = None
    blocking: bool = True

    @property
    def columns_needed(self) -> Mapping[str, Collection[str]]:
        """Names the column."""
        return {self.column: ()}

    def build_aggregates(self, rows: RowConditions) -> Aggregates:
        """Counts the nulls among the rows to publish."""
        return {(NULLS, self.column): rows.count(f"{quote_name(self.column)} IS NULL")}

    def judge(self, subject: Subject) -> Findings:
        """Judges the nulls' share of the rows to publish; nothing of an emptied partition."""
        name, rows = NULL_SHARE.of(self.column), subject.measured.rows
        if subject.emptied:
            return
        if rows == 0:
            yield Finding(name, None, "no rows", Outcome.PASSED)
            return
        limit, bound = self.at_most, f"at most {self.at_most}"
        if self.spike is not None:
            median, partitions = subject.baseline.find_typical_null_share(self.column)
            is_lost = subject.baseline.is_lost
            if partitions < MIN_PARTITIONS and (limit >= 1 or is_lost):
                yield Finding.without_baseline(
                    name, partitions, is_lost=is_lost, blocking=self.blocking
                )
                return
            if partitions < MIN_PARTITIONS:
                bound += f", no baseline ({partitions} partitions)"
            elif median + self.spike < limit:
                limit = median + self.spike
                bound = f"at most {limit:.4g}, {self.spike} above the median of {partitions}"
        share = subject.measured.figures.get((NULLS, self.column), 0) / rows
        outcome = Outcome.of(failed=share > limit, blocking=self.blocking)
        yield Finding(name, share, bound, outcome)
