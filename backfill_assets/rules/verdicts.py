"""What judging a partition comes to: findings by check, and whether it is withheld. Pure data."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum


class Check(StrEnum):
    """The questions that a partition's checks answer."""

    COMPLETE = "partition_is_complete"
    VALID = "partition_is_valid"
    STABLE = "partition_is_stable"
    READABLE = "partition_is_readable"


class Outcome(StrEnum):
    """How a rule ended."""

    PASSED = "passed"
    WARNED = "warned"
    FAILED = "failed"


@dataclass(frozen=True)
class Finding:
    """One rule applied to one partition.

    Attributes:
        rule: its name with its column, such as `row_count` or `nulls(tailnum)`.
        value: what was measured; None where there was nothing to compare with.
        bound: what it was held against, in words and figures, such as `at least 1`.
        outcome: a failed rule that doesn't block is `warned`.
    """

    rule: str
    value: float | None
    bound: str
    outcome: Outcome


def find_outcome(findings: Sequence[Finding]) -> Outcome:
    """The worst of several."""
    outcomes = {finding.outcome for finding in findings}
    for outcome in (Outcome.FAILED, Outcome.WARNED):
        if outcome in outcomes:
            return outcome
    return Outcome.PASSED


@dataclass(frozen=True)
class Acceptance:
    """A person's word that a failed check may be published all the same.

    Attributes:
        check: the check.
        reason: why; goes into the commit and the events.
        partitions: the keys it is about; None for all of the run.
    """

    check: str
    reason: str
    partitions: tuple[str, ...] | None = None

    def covers(self, check: str, partition: str) -> bool:
        """Whether it is about this check of this partition."""
        return check == self.check and (self.partitions is None or partition in self.partitions)


@dataclass(frozen=True)
class Verdict:
    """All findings about one partition.

    Attributes:
        partition: its key.
        findings: by check; a check without rules has none.
        accepted: the acceptances that published it in spite of a failed check.
        emptied: its source has no records, so it is published empty (or withheld, by its table).
    """

    partition: str
    findings: Mapping[Check, tuple[Finding, ...]]
    accepted: tuple[Acceptance, ...] = ()
    emptied: bool = False

    def failed(self, check: Check) -> tuple[Finding, ...]:
        """The findings of a check that failed."""
        return tuple(one for one in self.findings[check] if one.outcome is Outcome.FAILED)

    @property
    def withheld(self) -> bool:
        """Whether a failed check, not accepted, keeps it from being published."""
        accepted = {one.check for one in self.accepted}
        return any(self.failed(check) for check in self.findings if check not in accepted)
