"""Judges whether the source's records have the fields that are declared."""

from backfill_engine.rules.finding_names import FindingName
from backfill_engine.rules.landed import list_some
from backfill_engine.rules.rule import Findings, Rule, Subject
from backfill_engine.rules.verdicts import Check, Finding, Outcome

FIELDS_ARE_DECLARED = FindingName(
    "fields_are_declared",
    Check.VALID,
    meaning="declared fields that no record has; names those that aren't declared",
    bound="0; a field that isn't declared is a warning",
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
