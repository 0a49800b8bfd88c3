"""Lists all that can be found of a partition: what each finding means, its bound, what to do.

The check's description, the metadata of an evaluation that did not pass and the table in
`docs/audit.md` take their words from here.
"""

from enum import StrEnum

from backfill_assets.rules.checks import Check


class FindingName(StrEnum):
    """Names the findings, in the order of their checks.

    Those about a column name it, as `nulls(tailnum)` does: see `of`.

    Attributes:
        check: to which it belongs.
        meaning: what is measured, and of what.
        bound: what that is held against.
        cure: what a person does who reads it.
    """

    check: Check
    meaning: str
    bound: str
    cure: str

    def __new__(cls, name: str, check: Check, meaning: str, bound: str, cure: str) -> "FindingName":
        """Makes a member that equals its name, and knows the rest."""
        member = str.__new__(cls, name)
        member._value_ = name
        member.check, member.meaning, member.bound, member.cure = check, meaning, bound, cure
        return member

    def of(self, column: str) -> str:
        """Names the finding about one column."""
        return f"{self}({column})"

    ROW_COUNT = (
        *("row_count", Check.COMPLETE),
        "rows to publish; 0 if the source has no records",
        "`at_least` and `at_most`; none only with evidence that this is meant, a warning if there "
        "were any",
        "look for the missing or doubled files and run the layer above again; if none is right, "
        "give evidence (an empty folder or `_EMPTY`) or accept it",
    )
    ROW_COUNT_RATIO = (
        *("row_count_ratio", Check.COMPLETE),
        "rows to publish, as a multiple of the median of the peers",
        "`ratio`; from four published partitions on",
        "few: look for what has not landed; many: for what landed twice; accept a holiday",
    )
    RECONCILED = (
        *("reconciled", Check.COMPLETE),
        "records accounted for, less the records of the layer above",
        "0",
        "the transform drops or repeats rows, or the layer above changed: run both again",
    )
    SHRINK = (
        *("shrink", Check.COMPLETE),
        "share of the published rows that would vanish",
        "at most `Shrink.at_most`, 0.5",
        "look for what the source no longer has; accept it if it was taken back",
    )
    SHRINK_BYTES = (
        *("shrink_bytes", Check.COMPLETE),
        "share of the bytes of the files that the published rows came from that would vanish",
        "at most `Shrink.at_most`, 0.5",
        "look for files that were cut off or lost; accept it if they were taken back",
    )
    FILES_ARE_KNOWN = (
        *("files_are_known", Check.COMPLETE),
        "names in the landing folder that aren't read",
        "0, a warning",
        "give files a suffix that is read, or take them away",
    )
    FILES_DIFFER = (
        *("files_differ", Check.COMPLETE),
        "files that hold the same content as another, packed or not",
        "0",
        "take the copies away and run the partition again; if each is right, accept it",
    )
    LANDING_FILES_EXIST = (
        *("landing_files_exist", Check.COMPLETE),
        "whether anything has ever landed",
        "a file, or evidence that there is none",
        "land the files, or correct `BACKFILL_LANDING`, and run the partition again",
    )
    FILES_ARE_READABLE = (
        *("files_are_readable", Check.COMPLETE),
        "the files that can't be read or are being written, and why",
        "none",
        "mend, land again or take away what is named, and run the partition again",
    )
    UPSTREAM_IS_PUBLISHED = (
        *("upstream_is_published", Check.COMPLETE),
        "the partitions that it needs and that are missing, failed, withheld or changed by another "
        "writer",
        "none",
        "mend and run those first; the run's message and `missing` name the ranges; what another "
        "writer made of one is accepted by `backfill-assets accept`",
    )
    UPSTREAM_HAS_COME = (
        *("upstream_has_come", Check.COMPLETE),
        "the partitions that it needs and that never came, so that it is not due",
        "none",
        "nothing; once those have come, run it with them",
    )
    STEP_ENDED = (
        *("step_ended", Check.COMPLETE),
        "why the step ended before it came to the partition",
        "it came to it",
        "mend what the error names and run `missing`'s ranges",
    )
    BATCH_IS_APPENDED_ONCE = (
        *("batch_is_appended_once", Check.COMPLETE),
        "the commit that brought this batch, or was computed from the same inputs, already",
        "passes if that is known, and nothing was written; fails where nobody knows which batches "
        "the partition holds",
        "nothing where it passes; else overwrite the partition from all of its input",
    )
    FILES_COME_ONCE = (
        *("files_come_once", Check.COMPLETE),
        "of an append: landed files that are to be read and of which rows are there already",
        "0",
        "overwrite the partition: that takes all of its files, each once",
    )
    CONTENT_IS_AS_REHEARSED = (
        *("content_is_as_rehearsed", Check.COMPLETE),
        "of a run that applies a rehearsal: rows to publish",
        "the rows and the checksum that were rehearsed, over the published contents that they were "
        "compared with",
        "input, code or the table changed since: rehearse again, and look at the difference",
    )
    AS_CERTIFIED = (
        *("as_certified", Check.COMPLETE),
        "what a certificate says of any check, where the Dagster home does not know the run",
        "the certificate's",
        "read the certificate: it has the findings",
    )
    REJECTS = (
        *("rejects", Check.VALID),
        "share of the source's records that could not become rows",
        "at most `Rejects.at_most`",
        "read them in `quarantine`, each with its reason, and land them mended",
    )
    REQUIRED_COLUMNS = (
        *("required_columns", Check.VALID),
        "rows without a value in a required column",
        "0",
        "mend the source, or declare the column as one that may be null",
    )
    KEYS_ARE_UNIQUE = (
        *("keys_are_unique", Check.VALID),
        "rows per 1,000 that repeat another's natural key",
        "0",
        "look for what landed twice; if both rows are right, the natural key lacks a column",
    )
    FIELDS_ARE_DECLARED = (
        *("fields_are_declared", Check.VALID),
        "declared fields that no record has; names those that aren't declared",
        "0; a field that isn't declared is a warning",
        "ask the source what became of them; declare the new ones",
    )
    NEW_FIELDS_ARE_FEW = (
        *("new_fields_are_few", Check.VALID),
        "columns that the table would have beyond its declaration",
        "at most `max_new_fields`, 50",
        "declare the fields, or raise the bound",
    )
    NULLS = (
        *("nulls", Check.VALID),
        "share of the rows without a value in the column",
        "at most `at_most`, and `spike` above the baseline's median",
        "look for a field that was renamed or dropped at the source",
    )
    VALUES = (
        *("values", Check.VALID),
        "values of the column that can't be",
        "0 outside `low` to `high`",
        "look for another unit, sign or type, or a faulty instrument",
    )
    VARIES = (
        *("varies", Check.VALID),
        "whether the column has more than one value; 0 if all are the same",
        "1, in partitions of `at_least` values",
        "look for a default that took the place of values",
    )
    AGREES = (
        *("agrees", Check.VALID),
        "share of the rows in which the column contradicts others of the row",
        "at most `at_most`",
        "compare them in some rows: another unit, sign or time zone, shifted or lost values",
    )
    READERS_CAN_BE_BUILT = (
        *("readers_can_be_built", Check.VALID),
        "partitions of a table that guards this one and would be withheld, if it were built over "
        "what is to be published; which, and why",
        "0",
        "what they find tells what is wrong here; if the reader is what is wrong, accept it",
    )
    DRIFT = (
        *("drift", Check.STABLE),
        "PSI of the column's values over fixed bins or names, against the partition's published "
        "version, else the baseline",
        "below `warn`; from `fail` on withheld, if it blocks",
        "look which bins changed: another unit, lost or new names; accept a real change",
    )
    CONTENT_IS_AS_AUDITED = (
        *("content_is_as_audited", Check.READABLE),
        "rows that an independent reader finds",
        "row count and checksum of the audit",
        "the version before is back already: run it again, and look at the storage if that repeats",
    )


def find_name(finding: str) -> FindingName | None:
    """Finds what a finding is called without its column; None of a rule that isn't the package's.

    Args:
        finding: such as `nulls(tailnum)`.
    """
    wanted = finding.partition("(")[0]
    return next((name for name in FindingName if name == wanted), None)


def list_names(check: Check) -> tuple[FindingName, ...]:
    """Lists the findings of a check."""
    return tuple(name for name in FindingName if name.check is check)
