"""Judges what a run has left, by the model and by what the project says of it.

The checker holds, for each partition, the contents that can be trusted: those that follow from a
landed state, by way of what the layers between were computed from. Whatever else a table holds is
somebody else's, or a fault.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from benchmarks.campaign.model import (
    FEATURES,
    NOTHING,
    RAW,
    STAGING,
    Contents,
    Fate,
    Landed,
    Partition,
    Tables,
    compute_from,
    compute_tables,
)

MATERIALIZED, FAILED, MISSING, IN_PROGRESS = "materialized", "failed", "missing", "in_progress"


@dataclass(frozen=True)
class View:
    """What the project says of the partitions.

    Attributes:
        statuses: as `status` has them.
        to_run: the partitions that `status --missing` names, or `plan --only
            missing,failed,withheld,stale`.
        dagster: the status that Dagster shows; None where that wasn't asked.
    """

    statuses: Mapping[Partition, str]
    to_run: frozenset[Partition] = frozenset()
    dagster: Mapping[Partition, str] | None = None

    def is_green(self, partition: Partition) -> bool:
        """Tells whether the partition is called published and up to date."""
        return self.statuses.get(partition) == MATERIALIZED and partition not in self.to_run


@dataclass(frozen=True)
class Violation:
    """A property that does not hold: of which partition, and what was seen."""

    rule: str
    partition: Partition | None
    seen: str

    def __str__(self) -> str:
        """Writes it in a line."""
        return f"{self.rule}: {' '.join(self.partition or ())} {self.seen}".replace("  ", " ")


@dataclass
class Checker:
    """Follows the tables from one observation to the next.

    Attributes:
        days: the partitions of each table, ascending.
        trusted: the newest contents of each partition that follow from a landed state.
        present: what the tables held when they were last looked at, or left by a disturbance.
        published: partitions that got new trusted contents since the last `begin`.
        disturbed: partitions that somebody else changed since they were last published.
        protected: partitions that no run may publish now.
    """

    days: Sequence[str]
    trusted: dict[Partition, Contents] = field(default_factory=dict)
    present: Tables = field(default_factory=dict)
    published: set[Partition] = field(default_factory=set)
    disturbed: set[Partition] = field(default_factory=set)
    protected: set[Partition] = field(default_factory=set)

    def begin(self) -> None:
        """Begins a step: what was published before is no news."""
        self.published.clear()

    def disturb(self, tables: Tables) -> None:
        """Takes what somebody else has made of the tables as what they hold."""
        for partition in self._partitions():
            if tables.get(partition, NOTHING) != self.present.get(partition, NOTHING):
                self.disturbed.add(partition)
        self.present = dict(tables)

    def find_torn(
        self, tables: Tables, landings: Iterable[Mapping[str, Landed]]
    ) -> list[Violation]:
        """Checks that each partition is whole: as before, or as follows from a landed state.

        Args:
            tables: what they hold now.
            landings: the landed states that a run could read since the last observation.
        """
        accepted = self._advance(tables, landings)
        violations: list[Violation] = []
        for partition in self._partitions():
            found, before = tables.get(partition, NOTHING), self.present.get(partition, NOTHING)
            if partition in self.protected and found != before:
                violations.append(Violation("published though protected", partition, ""))
            if partition in accepted:
                if found != before:
                    self.published.add(partition)
                    self.disturbed.discard(partition)
                if found != before or found != NOTHING:
                    self.trusted[partition] = found
            elif found != before:
                violations.append(
                    Violation("not whole", partition, _describe(found, before, self.trusted))
                )
        self.present = dict(tables)
        return violations

    def find_falsely_green(
        self, tables: Tables, landing: Mapping[str, Landed], view: View, *, has_run: bool
    ) -> list[Violation]:
        """Checks that what is called published and up to date follows from what has landed now.

        Args:
            tables: what they hold now.
            landing: what has landed now.
            view: what the project says.
            has_run: whether all landing days went through a run since they changed; then one that
                had to be withheld must not be green either.
        """
        expected = {
            (RAW, day): landed.contents
            for day, landed in landing.items()
            if not (has_run and landed.fate is Fate.WITHHELD)
        }
        expected |= compute_from(STAGING, self.trusted, self.days)
        expected |= compute_from(FEATURES, self.trusted, self.days)
        return [
            Violation("falsely green", partition, "it does not hold what follows from its input")
            for partition in filter(view.is_green, self._partitions())
            if partition not in self.protected  # what is called stale of those isn't to be run
            and tables.get(partition, NOTHING) != expected.get(partition)
        ]

    def find_spoiled(self, tables: Tables) -> list[Partition]:
        """Finds what somebody else has changed, and no run has published since."""
        return [
            partition
            for partition in self._partitions()
            if partition in self.disturbed
            and tables.get(partition, NOTHING) != self.trusted.get(partition, NOTHING)
        ]

    def find_inexact(
        self, tables: Tables, landing: Mapping[str, Landed], view: View
    ) -> list[Violation]:
        """Checks that all tables hold what follows from what has landed, and are called so."""
        violations: list[Violation] = []
        for partition, contents in compute_tables(landing).items():
            if tables.get(partition, NOTHING) != contents:
                found = tables.get(partition, NOTHING)
                violations.append(
                    Violation("not exact", partition, _describe(found, contents, self.trusted))
                )
            elif not view.is_green(partition):
                status = view.statuses.get(partition, "unknown")
                seen = f"{status}, to be run again" if partition in view.to_run else status
                violations.append(Violation("falsely not green", partition, seen))
            elif view.dagster is not None and view.dagster.get(partition) != MATERIALIZED:
                seen = f"Dagster shows {view.dagster.get(partition)}"
                violations.append(Violation("Dagster disagrees", partition, seen))
        return violations

    def find_disagreements(self, view: View) -> list[Violation]:
        """Checks, after `recover`, that Dagster shows what the tables and the last attempt were."""
        violations: list[Violation] = []
        for partition in self._partitions():
            shown = (view.dagster or {}).get(partition, MISSING)
            status = view.statuses.get(partition, MISSING)
            seen = f"Dagster shows {shown}, `status` says {status}"
            if partition in self.disturbed:
                continue  # what is shown of those is for `status` and `plan`
            if IN_PROGRESS in (shown, status):
                violations.append(Violation("nothing is at work", partition, seen))
            elif partition in self.published and shown != MATERIALIZED:
                violations.append(Violation("failed though published", partition, seen))
            elif shown == MATERIALIZED and partition not in self.trusted:
                violations.append(Violation("green without a publish", partition, seen))
            # Without any, `status` refused, for damage that nobody has mended yet.
            elif view.statuses and (shown == MATERIALIZED) != (status == MATERIALIZED):
                violations.append(Violation("Dagster disagrees", partition, seen))
        return violations

    def _partitions(self) -> list[Partition]:
        return [(table, day) for table in (RAW, STAGING, FEATURES) for day in self.days]

    def _advance(self, tables: Tables, landings: Iterable[Mapping[str, Landed]]) -> set[Partition]:
        """Finds the partitions that hold what a run could have published."""
        accepted = {
            (RAW, day)
            for landing in landings
            for day, landed in landing.items()
            if landed.fate is not Fate.WITHHELD
            and landed.contents == tables.get((RAW, day), NOTHING)
        }
        for source, table in ((RAW, STAGING), (STAGING, FEATURES)):
            after = dict(self.trusted)
            after |= {
                partition: tables.get(partition, NOTHING)
                for partition in accepted
                if partition[0] == source
            }
            for inputs in (self.trusted, after):
                accepted |= {
                    partition
                    for partition, contents in compute_from(table, inputs, self.days).items()
                    if contents == tables.get(partition, NOTHING)
                }
        return accepted


def _describe(found: Contents, expected: Contents, trusted: Tables) -> str:
    """Says how many rows there are, are too many and are lacking, and whose they are, if known."""
    rows, wanted = dict(found), dict(expected)
    more = sum(max(0, times - wanted.get(row, 0)) for row, times in rows.items())
    less = sum(max(0, times - rows.get(row, 0)) for row, times in wanted.items())
    whose = [
        " ".join(partition)
        for partition, contents in trusted.items()
        if found and contents == found
    ]
    seen = f"{sum(rows.values())} rows, {more} of them wrong, {less} lacking"
    return f"{seen}; it holds what {whose[0]} was published with" if whose else seen
