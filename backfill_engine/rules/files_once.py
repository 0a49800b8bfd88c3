"""Judges whether rows of a landed file would be there twice."""

from backfill_engine.rules.finding_names import FindingName
from backfill_engine.rules.rule import Aggregates, Findings, RowConditions, Rule, Subject
from backfill_engine.rules.verdicts import Check, Finding, Outcome

FILES_COME_ONCE = FindingName(
    "files_come_once",
    Check.COMPLETE,
    meaning="of an append: landed files that are to be read and of which rows are there already",
    bound="0",
    cure="overwrite the partition: that takes all of its files, each once",
)


SOURCE_FILE = "source_file"
"""Column of a table that keeps which landed file a row is from."""


class FilesOnce(Rule, check=Check.COMPLETE):
    """Demands that no computed row is of a file of which published rows stay: `files_come_once`."""

    def build_aggregates(self, rows: RowConditions) -> Aggregates:
        """Counts the files of which rows stay and others come."""
        staying, coming = (
            f"collect_set(CASE WHEN {rows.to_publish} AND {kind} THEN {SOURCE_FILE} END)"
            for kind in (f"NOT {rows.computed}", rows.computed)
        )
        return {self.figure: f"size(array_intersect({staying}, {coming}))"}

    def judge(self, subject: Subject) -> Findings:
        """Judges the number of such files."""
        twice = subject.measured.figures.get(self.figure, 0)
        bound = "0 files of which rows are there already"
        yield Finding(FILES_COME_ONCE, twice, bound, Outcome.of(failed=twice > 0))
