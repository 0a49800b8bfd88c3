"""Says what a rule is: the aggregates that it needs of a partition, and what it makes of them.

And how names, numbers and texts are written in these, as Spark SQL.
"""

import inspect
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping
from dataclasses import MISSING, dataclass, fields
from typing import ClassVar, TypeAlias, dataclass_transform

from backfill_engine.rules.measured import (
    Baseline,
    Figure,
    Landed,
    PartitionMeasures,
    PartitionProfile,
)
from backfill_engine.rules.verdicts import Check, Finding, Outcome

Aggregates: TypeAlias = Mapping[Figure, str]
"""SQL aggregates over a table's columns, by what they measure."""

Findings: TypeAlias = Iterator[Finding]
"""What a rule finds in one partition, in the order in which it is shown."""


@dataclass(frozen=True)
class RowConditions:
    """Tells kinds of rows apart by SQL conditions that are never null and can be joined by AND.

    Attributes:
        to_publish: neither rejected nor left out by a filter.
        computed: by the run, so not kept from what was published before; rejected ones included.
    """

    to_publish: str
    computed: str

    def count(self, condition: str) -> str:
        """Writes the SQL that counts the rows to publish for which a condition is true."""
        return f"count_if({self.to_publish} AND ({condition}))"

    def sum(self, column: str, condition: str) -> str:
        """Writes the SQL that sums up a column of these rows; 0 if there are none."""
        value = f"CASE WHEN {self.to_publish} AND ({condition}) THEN {quote_name(column)} END"
        return f"coalesce(sum({value}), 0)"


@dataclass(frozen=True)
class Subject:
    """Holds one partition, and all that rules look at.

    Attributes:
        key: its partition key.
        measured: what is to be published.
        previous: what is published; None if nothing is.
        baseline: the other partitions.
        peers: what those of them have in common that its rows are compared with, in words.
        source_records: records of the layer above; None if unknown.
        source_fields: fields that these should have; empty where none are parsed.
        evolved_fields: columns that the table has beyond its declaration.
        new_fields: columns that it would get if the partition were published.
        landed: what is known of its files; None where it is computed from tables.
        provisional: what of its input is not there yet, or not final, in words; empty if all is.
    """

    key: str
    measured: PartitionMeasures
    previous: PartitionProfile | None
    baseline: Baseline
    peers: str
    source_records: int | None
    source_fields: Collection[str]
    evolved_fields: Collection[str]
    new_fields: Collection[str] = ()
    landed: Landed | None = None
    provisional: str = ""

    @property
    def emptied(self) -> bool:
        """Tells whether its source has no records, so that there are no rows."""
        return self.source_records == 0 and self.measured.rows == 0 and self.measured.rejects == 0

    def without_baseline(self, rule: str, partitions: int, *, blocking: bool) -> Finding:
        """Judges by a rule that has too few partitions to compare with: it passes at first only.

        Args:
            rule: its name.
            partitions: how many there are.
            blocking: whether a failure of the rule withholds.
        """
        bound, is_lost = f"no baseline ({partitions} partitions)", self.baseline.is_lost
        if is_lost:
            bound += ", as the log and the index of publishes have lost the others"
        return Finding(rule, None, bound, Outcome.of(failed=is_lost, blocking=blocking))


@dataclass_transform(frozen_default=True)
@dataclass(frozen=True)
class Rule(ABC):
    """Demands something of the partitions of a table.

    A subclass becomes a frozen dataclass of its bounds, and registers under the check that its
    findings belong to: `class Nulls(Rule, check=Check.VALID)`.

    Attributes:
        check: one that comes before the publish, so any but `READABLE`.
    """

    check: ClassVar[Check]

    def __init_subclass__(cls, *, check: Check, kw_only: bool = False) -> None:
        dataclass(frozen=True, kw_only=kw_only)(cls)
        cls.check = check

    def describe(self) -> str:
        """Writes it with all its bounds, what it does, and why it only warns, if it does."""
        given: list[str] = []
        reasons = ""
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name.endswith("only_warns"):
                reasons += add_reason("", value)
            elif field.default is MISSING:
                given.append(repr(value))
            elif value is not None:
                given.append(f"{field.name}={value!r}")
        does = " ".join((inspect.getdoc(self) or "").partition("\n\n")[0].split()).rstrip(".")
        return f"`{type(self).__name__}({', '.join(given)})`: {does}{reasons}"

    @property
    def columns_needed(self) -> Mapping[str, Collection[str]]:
        """Names the columns that it is about, each with the kinds of types that will do.

        No kinds are any; no columns by default. A table that lacks one is refused when declared.
        """
        return {}

    @property
    def figure(self) -> Figure:
        """Names the figure that only this rule, with just these bounds, needs."""
        return "rule", repr(self)

    def build_aggregates(self, rows: RowConditions) -> Aggregates:
        """Writes the SQL aggregates over the table's columns that it needs of each partition.

        They are computed with those of other rules, in one pass; rows, rejects and the like are in
        `PartitionMeasures` anyway. Rules may ask for the same figure if they mean the same by it.
        Figures of the kinds in `measured` are kept, to compare later partitions with.

        Args:
            rows: tells apart the rows to aggregate.

        Returns:
            Aggregates by figure; none by default.
        """
        return {}

    @abstractmethod
    def judge(self, subject: Subject) -> Findings:
        """Judges one partition; it finds nothing where it doesn't apply.

        Args:
            subject: the partition; one without rows has no `measured.figures`.
        """


def add_reason(bound: str, only_warns: str) -> str:
    """Adds to a bound why passing it only warns, if it does."""
    return f"{bound}; only warns: {only_warns}" if only_warns else bound


INTEGERS = frozenset({"TINYINT", "SMALLINT", "INT", "BIGINT"})
NUMBERS = INTEGERS | {"FLOAT", "DOUBLE", "DECIMAL"}


def quote_name(column: str) -> str:
    """Quotes the column's name, which may have any characters."""
    return "`" + column.replace("`", "``") + "`"


def write_number(number: float) -> str:
    """Writes an integer as it is and a float as a DOUBLE, for plain digits would be a DECIMAL."""
    return f"double('{number}')" if isinstance(number, float) else str(number)


def write_text(text: str) -> str:
    """Writes a text between quotes."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
