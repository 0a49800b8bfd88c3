"""Judges whether the source's records have the fields that are declared."""

from backfill_assets.rules.finding_names import FindingName
from backfill_assets.rules.landed import list_some
from backfill_assets.rules.rule import Findings, Rule, Subject
from backfill_assets.rules.verdicts import Check, Finding, Outcome


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
        yield Finding(FindingName.FIELDS_ARE_DECLARED, len(missing), bound, outcome)
        evolved = len(subject.evolved_fields) + len(subject.new_fields)
        if subject.new_fields and evolved > self.max_new:
            bound = (
                f"at most {self.max_new} columns beyond the declaration: declare the fields, or "
                "raise max_new_fields of the table"
            )
            yield Finding(FindingName.NEW_FIELDS_ARE_FEW, evolved, bound, Outcome.FAILED)
