"""Reports what lies in the landing zone and isn't read, or is there twice."""

from backfill_engine.rules.finding_names import FindingName
from backfill_engine.rules.landed import list_some
from backfill_engine.rules.rule import Findings, Rule, Subject
from backfill_engine.rules.verdicts import Check, Finding, Outcome

FILES_ARE_KNOWN = FindingName(
    "files_are_known",
    Check.COMPLETE,
    meaning="names in the landing folder that aren't read",
    bound="0, a warning",
    cure="give files a suffix that is read, or take them away",
)

FILES_DIFFER = FindingName(
    "files_differ",
    Check.COMPLETE,
    meaning="files that hold the same content as another, packed or not",
    bound="0",
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
