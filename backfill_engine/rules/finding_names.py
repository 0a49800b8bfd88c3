"""Names what can be found of a partition: what each finding means, its bound, what to do.

A rule names its findings in its own module; here are those of the engine itself. The metadata of an
evaluation that did not pass and `docs/findings.md` take their words from these.
"""

from backfill_engine.rules.verdicts import Check

_KNOWN: dict[str, "FindingName"] = {}


class FindingName(str):
    """Names a finding. Those about a column name it, as `nulls(tailnum)` does: see `of`.

    Attributes:
        check: to which it belongs.
        meaning: what is measured, and of what.
        bound: what that is held against; 0 unless it says otherwise.
        cure: what a person does who reads it.
    """

    __slots__ = ("bound", "check", "cure", "meaning")

    def __new__(
        cls, name: str, check: Check, *, meaning: str, bound: str = "0", cure: str
    ) -> "FindingName":
        """Makes a text that knows the rest; what is made last has the name."""
        made = super().__new__(cls, name)
        made.check, made.meaning, made.bound, made.cure = check, meaning, bound, cure
        _KNOWN[name] = made
        return made

    def __reduce__(self) -> tuple[type[str], tuple[str]]:
        """Is copied and pickled as its text: what is told of it is only looked up by that."""
        return str, (str(self),)

    def of(self, column: str) -> str:
        """Names the finding about one column."""
        return f"{self}({column})"


LANDING_FILES_EXIST = FindingName(
    "landing_files_exist",
    Check.COMPLETE,
    meaning="whether anything has ever landed",
    bound="a file, or evidence that there is none",
    cure="land the files, or correct `BACKFILL_LANDING`, and run the partition again",
)

FILES_ARE_READABLE = FindingName(
    "files_are_readable",
    Check.COMPLETE,
    meaning="the files that can't be read or are being written, and why",
    bound="none",
    cure="mend, land again or take away what is named, and run the partition again",
)

UPSTREAM_IS_PUBLISHED = FindingName(
    "upstream_is_published",
    Check.COMPLETE,
    meaning=(
        "the partitions that it needs and that are missing, failed, withheld or changed by "
        "another writer"
    ),
    bound="none",
    cure=(
        "mend and run those first; the run's message and `status --missing` name the ranges; what "
        "another writer made of one is accepted by `backfill-assets accept`"
    ),
)

UPSTREAM_HAS_COME = FindingName(
    "upstream_has_come",
    Check.COMPLETE,
    meaning="the partitions that it needs and that never came, so that it is not due",
    bound="none",
    cure="nothing; once those have come, run it with them",
)

STEP_ENDED = FindingName(
    "step_ended",
    Check.COMPLETE,
    meaning="why the step ended before it came to the partition",
    bound="it came to it",
    cure="mend what the error names and run the ranges of `status --missing`",
)

BATCH_IS_APPENDED_ONCE = FindingName(
    "batch_is_appended_once",
    Check.COMPLETE,
    meaning="the commit that brought this batch, or was computed from the same inputs, already",
    bound=(
        "passes if that is known, and nothing was written; fails where nobody knows which batches"
        " the partition holds"
    ),
    cure="nothing where it passes; else overwrite the partition from all of its input",
)

CONTENT_IS_AS_REHEARSED = FindingName(
    "content_is_as_rehearsed",
    Check.COMPLETE,
    meaning="of a run that applies a rehearsal: rows to publish",
    bound=(
        "the rows and the checksum that were rehearsed, over the published contents that they "
        "were compared with"
    ),
    cure="input, code or the table changed since: rehearse again, and look at the difference",
)

AS_CERTIFIED = FindingName(
    "as_certified",
    Check.COMPLETE,
    meaning="what a certificate says of any check, where the Dagster home does not know the run",
    bound="the certificate's",
    cure="read the certificate: it has the findings",
)

READERS_CAN_BE_BUILT = FindingName(
    "readers_can_be_built",
    Check.VALID,
    meaning=(
        "partitions of a table that guards this one and would be withheld, if it were built over "
        "what is to be published; which, and why"
    ),
    cure="what they find tells what is wrong here; if the reader is what is wrong, accept it",
)

CONTENT_IS_AS_AUDITED = FindingName(
    "content_is_as_audited",
    Check.READABLE,
    meaning="rows that an independent reader finds",
    bound="row count and checksum of the audit",
    cure=(
        "the version before is back already: run it again, and look at the storage if that repeats"
    ),
)


def find_name(finding: str) -> FindingName | None:
    """Finds what a finding is called without its column; None of a rule that names none.

    Args:
        finding: such as `nulls(tailnum)`.
    """
    return _KNOWN.get(finding.partition("(")[0])


def forget(name: FindingName) -> None:
    """Forgets a name, of a rule that is no more."""
    _KNOWN.pop(name, None)


def list_names(check: Check) -> tuple[FindingName, ...]:
    """Lists the findings of a check, of all rules that are loaded, by name."""
    return tuple(sorted(name for name in _KNOWN.values() if name.check is check))
