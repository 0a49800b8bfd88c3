"""Which version a served table holds: its own commits say, and nothing else does.

So the commit that replaces all partitions by those of another version is the switch, atomic for
whoever reads the table; and a rollback of it is one, too.
"""

import datetime as dt
from dataclasses import dataclass

from backfill_engine.lake.commits import CommitRecord
from backfill_engine.lake.table_log import TableLog

SERVED = "served"
"""Feature of a commit: the `version` that all partitions of a served table hold from then on; of a
commit that changed it also the one `before`, `by` whom and `why`."""

RETIRED = "retired"
"""Feature of a commit that emptied a version that nobody reads any more: by whom and why."""

REHEARSAL = "rehearsal"
"""Feature of a commit: the rehearsal that its run applied."""


@dataclass(frozen=True)
class Switch:
    """A commit that changed which version a served table holds.

    Attributes:
        version: of the Delta table, that the commit made.
        at: when, UTC.
        serves: key of the table whose rows it holds from then on.
        before: key of the one before; empty if it was the first.
        by: who switched; empty where that isn't known.
        why: likewise.
        run_id: the Dagster run.
        rehearsal: that showed what it would change; empty if none did.
    """

    version: int
    at: dt.datetime
    serves: str
    before: str
    by: str
    why: str
    run_id: str
    rehearsal: str


def list_switches(log: TableLog) -> list[Switch]:
    """Lists the switches of a served table, newest first, as far back as its log goes."""
    served, switches = "", list[Switch]()
    for commit in reversed(log.commits):
        record = commit.record
        if record is None or _read_served(record) == served:
            continue
        told = record.features.get(SERVED, {})
        before, served = served, _read_served(record)
        switches.append(
            Switch(
                commit.version,
                commit.committed_at,
                served,
                told.get("before", before),
                told.get("by", ""),
                told.get("why", ""),
                record.run_id,
                record.features.get(REHEARSAL, ""),
            )
        )
    return switches[::-1]


def find_served(log: TableLog) -> str:
    """Finds the key of the version that a served table holds; empty where it holds none yet."""
    records = (commit.record for commit in log.known_commits)
    return next((_read_served(record) for record in records if record is not None), "")


def describe_served(log: TableLog) -> dict[str, dict[str, str]]:
    """Describes the version that a served table holds, as a commit that keeps it says it."""
    served = find_served(log)
    return {SERVED: {"version": served}} if served else {}


def find_unread(log: TableLog) -> frozenset[str]:
    """Finds the keys of the versions that a served table could read and doesn't.

    Before anything was published it reads the first; a table without versions has none.
    """
    versions = [version.key for version in log.table.versions]
    if not versions:
        return frozenset()
    return frozenset(versions) - {find_served(log) or versions[0]}


def find_retired(log: TableLog) -> str:
    """Finds why a version is kept up no more; empty if it is.

    Whoever publishes it again takes it up again.
    """
    records = (commit.record for commit in log.known_commits)
    return next((record.features.get(RETIRED, "") for record in records if record is not None), "")


def _read_served(record: CommitRecord) -> str:
    return record.features.get(SERVED, {}).get("version", "")
