"""Which partitions are protected: no run publishes them unless a person says why.

Some are declared with their table. Others are set at run time: rows of a small Delta table,
`<warehouse>/protections`, which only grows. It lies beside the tables, as several Dagster homes may
share them. Of its rows the newest that covers a partition says whether that is protected; what is
declared is protected whatever they say.
"""

import datetime as dt
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from operator import attrgetter

import pyarrow as pa
from deltalake import write_deltalake
from deltalake.exceptions import DeltaError

from backfill_engine.errors import TableError
from backfill_engine.grains.grain import is_in_range
from backfill_engine.lake.delta_logs import shorten_cause
from backfill_engine.lake.locks import hold_lock
from backfill_engine.lake.side_tables import enter_table, read_entered
from backfill_engine.lake.warehouse import Warehouse
from backfill_engine.tables.declarations import Table
from backfill_engine.uris import join_uri

PROTECTIONS = "protections"
"""Their folder below the warehouse."""

_SCHEMA = pa.schema(
    [
        pa.field("table", pa.string(), nullable=False),
        pa.field("first", pa.string()),
        pa.field("last", pa.string()),
        pa.field("protected", pa.bool_(), nullable=False),
        pa.field("reason", pa.string(), nullable=False),
        pa.field("by", pa.string(), nullable=False),
        pa.field("at", pa.timestamp("us", tz="UTC"), nullable=False),
    ]
)
_TICK = dt.timedelta(microseconds=1)


@dataclass(frozen=True, kw_only=True)
class Protection:
    """What somebody decided of a range of partitions.

    Attributes:
        table: `layer/name`.
        first: key of the first partition; None for all up to `last`.
        last: key of the last one, included; None for all from `first` on.
        protected: whether they are protected from then on, or no longer.
        reason: why.
        by: who decided it; empty where it is declared with the table.
        at: when, UTC; None likewise.
    """

    table: str
    first: str | None = None
    last: str | None = None
    protected: bool = True
    reason: str
    by: str = ""
    at: dt.datetime | None = None

    def covers(self, key: str) -> bool:
        """Tells whether it is about a partition."""
        return is_in_range(key, self.first, self.last)

    def overlaps(self, other: "Protection") -> bool:
        """Tells whether any partition can be in both."""
        starts_in_time = self.first is None or is_in_range(self.first, None, other.last)
        ends_in_time = other.first is None or is_in_range(other.first, None, self.last)
        return self.table == other.table and starts_in_time and ends_in_time

    def format_range(self) -> str:
        """Writes the range for people."""
        if self.first is None and self.last is None:
            return "all partitions"
        if self.first is not None and self.first == self.last:
            return self.first
        return f"{self.first or ''}...{self.last or ''}"

    def describe(self) -> str:
        """Says why, by whom and since when, in a line."""
        if self.at is None:
            return f"{self.reason} (declared with the table)"
        return f"{self.reason} (by {self.by}, {self.at:%Y-%m-%d %H:%M} UTC)"


@dataclass(frozen=True)
class Protections:
    """All that was decided at run time.

    Attributes:
        decisions: newest first.
    """

    decisions: Sequence[Protection] = ()

    def list_of(self, table: Table) -> list[Protection]:
        """Lists what counts for a table: what is declared, then decisions, newest first."""
        return [
            *list_declared(table),
            *(decision for decision in self.decisions if decision.table == table.key),
        ]

    def find(self, table: Table, keys: Iterable[str]) -> dict[str, Protection]:
        """Finds which partitions of a table are protected, and by what; in the order of `keys`."""
        protections = self.list_of(table)
        if not protections:
            return {}
        found: dict[str, Protection] = {}
        for key in dict.fromkeys(keys):
            newest = next((decided for decided in protections if decided.covers(key)), None)
            if newest is not None and newest.protected:
                found[key] = newest
        return found


def list_declared(table: Table) -> list[Protection]:
    """Lists what is declared with a table."""
    return [
        Protection(
            table=table.key, first=declared.first, last=declared.last, reason=declared.reason
        )
        for declared in table.protected
    ]


def read_protections(warehouse: Warehouse) -> Protections:
    """Reads what was decided at run time: milliseconds, no JVM; nothing where nobody ever did.

    Raises:
        SettingsError: if nothing can ever be at the warehouse's root.
        TableError: if it can't be read or is gone: then nobody knows what may be written.
    """
    decisions = read_entered(warehouse, PROTECTIONS, Protection, cure="protect again what must be")
    return Protections(tuple(sorted(decisions, key=attrgetter("at"), reverse=True)))


def add_protection(warehouse: Warehouse, decision: Protection, *, now: dt.datetime) -> Protection:
    """Adds a decision, which wins over all that were made before.

    Args:
        warehouse: where the tables are.
        decision: of one table; `at` is set here.
        now: UTC. Of a clock that is behind that of whoever decided before, that time counts.

    Returns:
        The decision as it was stored.

    Raises:
        SettingsError: if nothing can be written there.
        TableError: if that fails.
        TableLockedError: if another process keeps on writing them.
    """
    warehouse.check_writable()
    uri = join_uri(warehouse.root, PROTECTIONS)
    with hold_lock(warehouse, PROTECTIONS) as lock:
        earlier = read_protections(warehouse).decisions
        stored = replace(
            decision, at=max([now, *(decided.at + _TICK for decided in earlier if decided.at)])
        )
        lock.check()
        try:
            write_deltalake(uri, pa.Table.from_pylist([asdict(stored)], _SCHEMA), mode="append")
        except (OSError, DeltaError) as error:
            raise TableError(
                f"the protections at {uri} can't be written ({shorten_cause(error)}): make its "
                "storage take writes, then repeat it"
            ) from error
        enter_table(warehouse, PROTECTIONS)
    return stored
