"""Bytes that runs leave beside data: in Dagster's SQLite files, and in the logs of tables."""

import operator
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from dataclasses import astuple, dataclass
from pathlib import Path

from backfill_engine.tables.declarations import Table

_EVENTS = "SELECT count(*), coalesce(sum(length(CAST(event AS BLOB))), 0) FROM event_logs"


@dataclass(frozen=True)
class Metadata:
    """What is there at a time, or came between two.

    Attributes:
        sqlite_bytes: of all SQLite files of a Dagster home, their journals included.
        events: stored by its runs.
        event_bytes: of these events as JSON, each counted once; SQLite keeps some of them twice.
        log_bytes: of the Delta logs of some tables, without what is kept beside them.
    """

    sqlite_bytes: int
    events: int
    event_bytes: int
    log_bytes: int

    def add(self, other: "Metadata") -> "Metadata":
        """Both together."""
        return Metadata(*map(operator.add, astuple(self), astuple(other)))

    def subtract(self, earlier: "Metadata") -> "Metadata":
        """What came since."""
        return Metadata(*map(operator.sub, astuple(self), astuple(earlier)))


def measure_metadata(home: Path, warehouse: Path, tables: Sequence[Table]) -> Metadata:
    """Looks at a Dagster home that no process works in, and at the logs of tables.

    Args:
        home: a `DAGSTER_HOME` with SQLite storage; it need not be there.
        warehouse: a local one.
        tables: whose logs; they need not be there.
    """
    runs = [path for path in home.glob("history/runs/*.db") if path.stem != "index"]
    events = [_count_events(path) for path in runs]
    logs = (warehouse / table.key / "_delta_log" for table in tables)
    return Metadata(
        sqlite_bytes=sum(path.stat().st_size for path in home.rglob("*.db*")),
        events=sum(count for count, _ in events),
        event_bytes=sum(size for _, size in events),
        log_bytes=sum(path.stat().st_size for log in logs for path in log.rglob("*")),
    )


def _count_events(path: Path) -> tuple[int, int]:
    with closing(sqlite3.connect(path)) as connection:
        count, size = connection.execute(_EVENTS).fetchone()
    return count, size
