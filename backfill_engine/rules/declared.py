"""Rules that every table has: they follow from its declaration, and none of them is named in it."""

from typing import Literal

from backfill_engine.rules.count_rules import REJECTS, ROW_COUNT, Reconciled
from backfill_engine.rules.finding_names import FindingName
from backfill_engine.rules.measured import list_some
from backfill_engine.rules.rule import (
    Aggregates,
    Findings,
    RowConditions,
    Rule,
    Subject,
    quote_name,
)
from backfill_engine.rules.verdicts import Check, Finding, Outcome

FIELDS_ARE_DECLARED = FindingName(
    "fields_are_declared",
    Check.VALID,
    meaning="declared fields that no record has; names those that aren't declared",
    bound="0; a field that isn't declared is a warning in the run that adds a column for it",
    cure="ask the source what became of them; declare the new ones",
)

NEW_FIELDS_ARE_FEW = FindingName(
    "new_fields_are_few",
    Check.VALID,
    meaning="columns that the table would have beyond its declaration",
    bound="at most `max_new_fields`, 50",
    cure="declare the fields, or raise the bound",
)


class DeclaredFields(Rule, check=Check.VALID):
    """Demands that no declared field has disappeared: `fields_are_declared`.

    It is about records that were parsed. A field that isn't declared is only a warning: the table
    grows a column for it, up to a bound: `new_fields_are_few`.

    Attributes:
        max_new: most columns that the table may have beyond its declaration.
    """

    max_new: int = 50

    def judge(self, subject: Subject) -> Findings:
        """Judges the fields of all good records together."""
        seen, declared = subject.measured.fields_seen, frozenset(subject.source_fields)
        if seen is None or not declared or subject.measured.rows == 0:
            return
        missing = sorted(declared - seen)
        unknown = sorted(seen - declared - frozenset(subject.evolved_fields))
        bound = "no field disappeared"
        if missing:
            bound = f"disappeared: {', '.join(missing)}"
        if unknown:
            bound += f"; not declared: {list_some(unknown)}"
        outcome = Outcome.of(failed=bool(missing or unknown), blocking=bool(missing))
        yield Finding(FIELDS_ARE_DECLARED, len(missing), bound, outcome)
        evolved = len(subject.evolved_fields) + len(subject.new_fields)
        if subject.new_fields and evolved > self.max_new:
            bound = (
                f"at most {self.max_new} columns beyond the declaration: declare the fields, or "
                "raise max_new_fields of the table"
            )
            yield Finding(NEW_FIELDS_ARE_FEW, evolved, bound, Outcome.FAILED)


class Emptied(Rule, check=Check.COMPLETE, kw_only=True):
    """Reports an emptied partition, in place of the rules that it is exempt from: `row_count`.

    Attributes:
        empty: whether it is published empty, or withheld; `evidenced` publishes it where something
            says that it is meant. Of a partition that is computed from tables, that is the publish
            of these; of one that landed, what `Landed.evidence` has.
    """

    empty: Literal["publish", "evidenced", "withhold"]

    def judge(self, subject: Subject) -> Findings:
        """Judges only partitions without any record; one that never had any is as it should be."""
        if not subject.emptied:
            return
        landed, bound = subject.landed, "its source has no records"
        if landed is not None:
            bound += f": {landed.why_empty}"
        evidenced = landed is None or bool(landed.evidence)
        blocking = self.empty == "withhold" or (self.empty == "evidenced" and not evidenced)
        had_rows = subject.previous is not None and subject.previous.rows > 0
        meant = landed is not None and evidenced and not had_rows
        outcome = Outcome.of(failed=blocking or not meant, blocking=blocking)
        yield Finding(ROW_COUNT, 0, bound, outcome)


FILES_ARE_KNOWN = FindingName(
    "files_are_known",
    Check.COMPLETE,
    meaning="names in the landing folder that aren't read, and rows that say no partition",
    bound="0, a warning",
    cure="give files a suffix that is read, and rows their partition, or take them away",
)

FILES_DIFFER = FindingName(
    "files_differ",
    Check.COMPLETE,
    meaning="files that hold the same content as another, packed or not",
    cure="take the copies away and run the partition again; if each is right, accept it",
)


class LandedFiles(Rule, check=Check.COMPLETE):
    """Warns of names that aren't read, `files_are_known`; fails with copies, `files_differ`."""

    def judge(self, subject: Subject) -> Findings:
        """Names the files; finds nothing where there are none to name."""
        if subject.landed is None:
            return
        landed = subject.landed
        for rule, names, what, outcome in (
            (FILES_ARE_KNOWN, landed.not_read, "not read", Outcome.WARNED),
            (FILES_DIFFER, landed.repeated, "landed twice", Outcome.FAILED),
        ):
            if names:
                yield Finding(rule, len(names), f"{what}: {list_some(names)}", outcome)


class LandedRecords(Reconciled, check=Check.COMPLETE):
    """Demands that every record of a source is a row, a duplicate dropped, or rejected."""

    def judge(self, subject: Subject) -> Findings:
        """Judges only what is computed from a source that counts its records."""
        if subject.landed is not None and subject.source_records is not None:
            yield from super().judge(subject)


class SomeAccepted(Rule, check=Check.VALID):
    """Demands that not all records were rejected, so that nothing would be published: `rejects`."""

    def judge(self, subject: Subject) -> Findings:
        """Judges only partitions without rows, and no records that are due to be rejected."""
        measured = subject.measured
        rejects = measured.rejects - measured.rejects_before_first
        if rejects and not measured.rows and not measured.computed:
            bound = f"fewer than all of the {rejects:,} records"
            yield Finding(REJECTS, 1.0, bound, Outcome.FAILED)


REQUIRED_COLUMNS = FindingName(
    "required_columns",
    Check.VALID,
    meaning="rows without a value in a required column",
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


TEXTS_FIT = FindingName(
    "texts_fit",
    Check.VALID,
    meaning="rows with a text of more characters than VARCHAR(n) has, or others than CHAR(n)",
    bound="0",
    cure="mend the source, cut or pad the text in the compute function, or declare STRING",
)


class TextLengths(Rule, check=Check.VALID):
    """Demands texts that fit, without which Delta refuses or changes them: `texts_fit`.

    Attributes:
        lengths: by column, the least and the most characters.
    """

    lengths: tuple[tuple[str, int, int], ...]

    def build_aggregates(self, rows: RowConditions) -> Aggregates:
        """Counts the rows to publish in which any text doesn't fit."""
        if not self.lengths:
            return {}
        wrong = " OR ".join(
            f"length({quote_name(column)}) NOT BETWEEN {least} AND {most}"
            for column, least, most in self.lengths
        )
        return {self.figure: rows.count(wrong)}

    def judge(self, subject: Subject) -> Findings:
        """Judges only partitions in which a text doesn't fit."""
        if wrong := subject.measured.figures.get(self.figure, 0):
            columns = ", ".join(column for column, _, _ in self.lengths)
            bound = f"0 rows whose text doesn't fit in one of {columns}"
            yield Finding(TEXTS_FIT, wrong, bound, Outcome.FAILED)


KEYS_ARE_UNIQUE = FindingName(
    "keys_are_unique",
    Check.VALID,
    meaning="rows per 1,000 that repeat another's natural key",
    cure="look for what landed twice; if both rows are right, the natural key lacks a column",
)


DROPPED_AS_IDENTICAL = FindingName(
    "dropped_as_identical",
    Check.VALID,
    meaning="records dropped, per 1,000 of the source, as the next of their key says the same",
    bound="none",
    cure="if they are many, ask the source why it sends records again",
)

DROPPED_AS_OLDER = FindingName(
    "dropped_as_older",
    Check.VALID,
    meaning="records dropped, per 1,000 of the source, as the next of their key says otherwise",
    bound="none",
    cure="nothing: the source corrected them",
)


class UniqueKeys(Rule, check=Check.VALID):
    """Demands that no two rows have the same natural key: `keys_are_unique`.

    Of a transform that keeps one record of each key it counts, too, what that dropped.

    Attributes:
        columns: of the natural key; empty where rows may repeat.
    """

    columns: tuple[str, ...]

    def judge(self, subject: Subject) -> Findings:
        """Judges the duplicates per 1,000 rows; those dropped are counted and pass."""
        if not self.columns:
            return
        measured = subject.measured
        duplicates, rows = measured.key_duplicates, measured.rows
        per_1000 = 1000 * duplicates / rows if rows else 0.0
        bound = f"0 duplicates of ({', '.join(self.columns)}) per 1,000 rows"
        yield Finding(KEYS_ARE_UNIQUE, per_1000, bound, Outcome.of(failed=duplicates > 0))
        if measured.identical_dropped is None:
            return
        records = subject.source_records or measured.computed + measured.duplicates_dropped
        older = measured.duplicates_dropped - measured.identical_dropped
        for name, dropped in (
            (DROPPED_AS_IDENTICAL, measured.identical_dropped),
            (DROPPED_AS_OLDER, older),
        ):
            bound = f"none: {dropped:,} of {records:,} records"
            yield Finding(name, 1000 * dropped / records if records else 0.0, bound, Outcome.PASSED)
