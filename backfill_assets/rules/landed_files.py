"""Reports what lies in the landing zone and isn't read, or is there twice."""

from backfill_assets.rules.finding_names import FindingName
from backfill_assets.rules.landed import list_some
from backfill_assets.rules.rule import Findings, Rule, Subject
from backfill_assets.rules.verdicts import Check, Finding, Outcome


class LandedFiles(Rule, check=Check.COMPLETE):
    """Warns of names that aren't read, `files_are_known`; fails with copies, `files_differ`."""

    def judge(self, subject: Subject) -> Findings:
        """Names the files; finds nothing where there are none to name."""
        if subject.landed is None:
            return
        landed = subject.landed
        for rule, names, what, outcome in (
            (FindingName.FILES_ARE_KNOWN, landed.not_read, "not read", Outcome.WARNED),
            (FindingName.FILES_DIFFER, landed.repeated, "landed twice", Outcome.FAILED),
        ):
            if names:
                yield Finding(rule, len(names), f"{what}: {list_some(names)}", outcome)
