"""Judges whether all records of the layer above are accounted for."""

from collections.abc import Collection, Mapping

from backfill_engine.rules.finding_names import FindingName
from backfill_engine.rules.measured import PartitionMeasures
from backfill_engine.rules.rule import Aggregates, Findings, RowConditions, Rule, Subject
from backfill_engine.rules.sql import INTEGERS, quote_name
from backfill_engine.rules.verdicts import Check, Finding, Outcome

RECONCILED = FindingName(
    "reconciled",
    Check.COMPLETE,
    meaning="records accounted for, less the records of the layer above",
    bound="0",
    cure="the transform drops or repeats rows, or the layer above changed: run both again",
)


class Reconciled(Rule, check=Check.COMPLETE, kw_only=True):
    """Demands that every record of the layer above is accounted for: `reconciled`.

    Attributes:
        total_of: the column whose sum must equal the records above; None compares
            rows + duplicates dropped + rejects.
    """

    total_of: str | None = None

    @property
    def columns_needed(self) -> Mapping[str, Collection[str]]:
        """Names the column that it sums, of integers: sums of others depend on their order."""
        return {} if self.total_of is None else {self.total_of: INTEGERS}

    def build_aggregates(self, rows: RowConditions) -> Aggregates:
        """Sums the column over all computed rows, if there is one."""
        if self.total_of is None:
            return {}
        value = f"CASE WHEN {rows.computed} THEN {quote_name(self.total_of)} END"
        return {self.figure: f"sum({value})"}

    def count_accounted(self, measured: PartitionMeasures) -> int:
        """Counts the records of the source that the partition accounts for."""
        if self.total_of is None:
            return measured.computed + measured.duplicates_dropped + measured.rejects
        return measured.figures.get(self.figure, 0)

    def judge(self, subject: Subject) -> Findings:
        """Judges the records accounted for minus the records of the source."""
        if subject.source_records is None:
            yield Finding(RECONCILED, None, "nothing to reconcile with", Outcome.PASSED)
            return
        accounted = self.count_accounted(subject.measured)
        what = f"sum of {self.total_of}" if self.total_of else "rows + duplicates dropped + rejects"
        difference = accounted - subject.source_records
        bound = f"0 = {what} ({accounted}) - records of the source ({subject.source_records})"
        yield Finding(RECONCILED, difference, bound, Outcome.of(failed=difference != 0))
