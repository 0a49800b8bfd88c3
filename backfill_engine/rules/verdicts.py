"""Holds what judging a partition comes to: findings by check, and whether it is withheld."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property


class Outcome(StrEnum):
    """Says how a rule ended; its members go from good to bad."""

    PASSED = "passed"
    WARNED = "warned"
    FAILED = "failed"

    @classmethod
    def of(cls, *, failed: bool, blocking: bool = True) -> "Outcome":
        """Finds the outcome of a rule: one that failed and doesn't block is `WARNED`."""
        if not failed:
            return cls.PASSED
        return cls.FAILED if blocking else cls.WARNED


@dataclass(frozen=True)
class Finding:
    """Says what one rule found in one partition.

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

    def __post_init__(self) -> None:
        # A plain text: Dagster stores no enum that it doesn't know.
        object.__setattr__(self, "rule", str(self.rule))


def format_figure(figure: float) -> str:
    """Writes a number for a bound, such as `12,500` or `25.5`."""
    return f"{figure:,.1f}".removesuffix(".0")


def find_outcome(findings: Sequence[Finding]) -> Outcome:
    """Finds the worst outcome of several; `PASSED` where there are none."""
    outcomes = (finding.outcome for finding in findings)
    return max(outcomes, key=list(Outcome).index, default=Outcome.PASSED)


@dataclass(frozen=True)
class Acceptance:
    """It is a person's word that a failed check may be published all the same.

    Attributes:
        check: the check.
        reason: why; goes into the commit and the events.
        partitions: the keys it is about; None for all of the run.
    """

    check: str
    reason: str
    partitions: tuple[str, ...] | None = None

    def covers(self, check: str, partition: str) -> bool:
        """Tells whether it is about this check of this partition."""
        return check == self.check and (self.partitions is None or partition in self.partitions)


class Check(StrEnum):
    """Names the checks of a partition; each answers a question."""

    COMPLETE = "partition_is_complete"
    VALID = "partition_is_valid"
    STABLE = "partition_is_stable"
    READABLE = "partition_is_readable"


@dataclass(frozen=True)
class Verdict:
    """Holds all findings about one partition.

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

    @property
    def passed(self) -> bool:
        """Tells whether every rule passed, with no warning."""
        return all(find_outcome(found) is Outcome.PASSED for found in self.findings.values())

    def failed(self, check: Check) -> tuple[Finding, ...]:
        """Selects the findings of a check that failed."""
        return tuple(
            finding for finding in self.findings[check] if finding.outcome is Outcome.FAILED
        )

    @property
    def warned(self) -> tuple[Finding, ...]:
        """Selects the findings of all checks that warned."""
        return tuple(
            finding
            for findings in self.findings.values()
            for finding in findings
            if finding.outcome is Outcome.WARNED
        )

    @cached_property
    def withheld(self) -> bool:
        """Tells whether a failed check that isn't accepted keeps it from being published."""
        accepted = {acceptance.check for acceptance in self.accepted}
        return any(self.failed(check) for check in self.findings if check not in accepted)

    def add(self, check: Check, finding: Finding) -> "Verdict":
        """Adds what else was found; what was accepted stays so."""
        of_check = (*self.findings.get(check, ()), finding)
        return replace(self, findings={**self.findings, check: of_check})

    def accept(self, acceptances: Sequence[Acceptance]) -> "Verdict":
        """Lets pass what failed and a person accepts."""
        if not acceptances:
            return self
        failed = [check for check in self.findings if self.failed(check)]
        accepted = tuple(
            acceptance
            for acceptance in acceptances
            if any(acceptance.covers(check, self.partition) for check in failed)
        )
        return replace(self, accepted=accepted)
