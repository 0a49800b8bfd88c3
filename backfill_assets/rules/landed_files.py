"""Reports what lies in the landing zone and isn't read, or is there twice."""

from backfill_assets.rules.finding_names import FindingName
from backfill_assets.rules.landed import list_some
from backfill_assets.rules.rule import Findings, Rule, Subject
from backfill_assets.rules.verdicts import Check, Finding, Outcome


class LandedFiles(Rule, check=Check.COMPLETE):
    """Warns of names that aren't read, `files_are_known`, and of copies, `files_differ`."""

    def judge(self, subject: Subject) -> Findings:
        """Names the files; finds nothing where there are none to name."""
        if subject.landed is None:
            return
        for rule, names, what in (
            (FindingName.FILES_ARE_KNOWN, subject.landed.not_read, "not read"),
            (FindingName.FILES_DIFFER, subject.landed.repeated, "landed twice"),
        ):
            if names:
                yield Finding(rule, len(names), f"{what}: {list_some(names)}", Outcome.WARNED)
