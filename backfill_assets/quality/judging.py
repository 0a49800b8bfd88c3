"""Judges measured partitions by their table's rules. Pure: no Spark, no Delta, no Dagster."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from backfill_assets.quality.measures import PartitionMeasures
from backfill_assets.quality.profiles import PartitionProfile
from backfill_assets.tables.declarations import Table


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
        bound: what it was held against, in words and figures, such as `at least 1` or `no baseline`.
        outcome: a failed rule that doesn't block is `warned`.
    """

    rule: str
    value: float | None
    bound: str
    outcome: Outcome


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


def judge_partitions(
    table: Table,
    measures: Mapping[str, PartitionMeasures],
    *,
    source_records: Mapping[str, int],
    published: Mapping[str, PartitionProfile],
    peer_groups: Mapping[str, Hashable],
    evolved_fields: Sequence[str] = (),
    acceptances: Sequence[Acceptance] = (),
) -> dict[str, Verdict]:
    """Judges the partitions in the order of `measures` (ascending keys), each against its baseline.

    The baseline of a partition is what would be published if the partitions were run one by one: all of
    `published` but itself, each partition of `measures` that came earlier and was not withheld in place
    of its old version. So one range and the same partitions one by one give the same verdicts.

    Args:
        table: whose rules apply.
        measures: by partition key, ascending.
        source_records: records of the layer above by key; keys may be absent where nothing reconciles.
        published: profiles of what is published, by key.
        peer_groups: by key (of both `measures` and `published`), what makes partitions comparable for row
            counts: the weekday; one constant where there is none.
        evolved_fields: columns that the table has beyond its declaration.
        acceptances: of this run.
    """
    raise NotImplementedError
