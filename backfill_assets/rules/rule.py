"""What a rule is: the aggregates that it needs of each partition, and what it makes of them."""

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar, TypeAlias, dataclass_transform

from backfill_assets.rules.baseline import Baseline
from backfill_assets.rules.measured import Figure, PartitionMeasures
from backfill_assets.rules.profiles import PartitionProfile
from backfill_assets.rules.verdicts import Check, Finding

Aggregates: TypeAlias = Mapping[Figure, str]
"""SQL aggregates over a table's columns, by what they measure."""

Findings: TypeAlias = Iterator[Finding]


@dataclass(frozen=True)
class RowConditions:
    """Kinds of rows, as SQL conditions that are never null and can be joined by AND.

    Attributes:
        to_publish: neither rejected nor left out by a filter.
        computed: by the run, so not kept from what was published before; rejected ones included.
    """

    to_publish: str
    computed: str

    def count(self, condition: str) -> str:
        """SQL of how many rows to publish meet a condition; where it is null, it isn't met."""
        return f"count_if({self.to_publish} AND ({condition}))"


@dataclass(frozen=True)
class Subject:
    """One partition, and all that rules look at.

    Attributes:
        key: its partition key.
        measured: what is to be published.
        previous: what is published; None if nothing is.
        baseline: the other partitions.
        peers: what those of them have in common that its rows are compared with, in words.
        source_records: records of the layer above; None if unknown.
        source_fields: fields that these should have; empty where none are parsed.
        evolved_fields: columns that the table has beyond its declaration.
    """

    key: str
    measured: PartitionMeasures
    previous: PartitionProfile | None
    baseline: Baseline
    peers: str
    source_records: int | None
    source_fields: Collection[str]
    evolved_fields: Collection[str]

    @property
    def emptied(self) -> bool:
        """Whether its source has no records, and so there are no rows."""
        return self.source_records == 0 and self.measured.rows == 0 and self.measured.rejects == 0


@dataclass_transform(frozen_default=True)
class Rule(ABC):
    """What partitions of a table must meet. Each subclass is a frozen dataclass, of its bounds.

    A subclass registers under the check that its findings belong to: `class Nulls(Rule,
    check=Check.VALID)`. Other keywords are those of `dataclass`.
    """

    check: ClassVar[Check]

    def __init_subclass__(cls, *, check: Check, kw_only: bool = False) -> None:
        dataclass(frozen=True, kw_only=kw_only)(cls)
        cls.check = check

    @property
    def figure(self) -> Figure:
        """Names a figure that only this rule, with just these bounds, needs."""
        return "rule", repr(self)

    def build_aggregates(self, rows: RowConditions) -> Aggregates:
        """What it needs of each partition, as SQL aggregates over the table's columns, by figure.

        All rules' aggregates are computed in one pass, together with the rows, rejects and so on of
        `PartitionMeasures`. Two rules may ask for the same figure, if they mean the same.

        Args:
            rows: conditions to count only the rows that the rule is about.
        """
        return {}

    @abstractmethod
    def judge(self, subject: Subject) -> Findings:
        """What it finds in one partition; nothing where it doesn't apply.

        Args:
            subject: the partition; its `measured.figures` lack those of a partition without rows.
        """
