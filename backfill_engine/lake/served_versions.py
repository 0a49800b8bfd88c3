"""Which version a served table holds: its own commits say, and nothing else does.

So the commit that replaces all partitions by those of another version is the switch, atomic for
whoever reads the table; and a rollback of it is one, too.
"""

import datetime as dt
from dataclasses import dataclass

from backfill_engine.lake.table_log import TableLog


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
        if record is None or record.serves == served:
            continue
        switches.append(
            Switch(
                commit.version,
                commit.committed_at,
                record.serves,
                record.switch.get("before", served),
                record.switch.get("by", ""),
                record.switch.get("why", ""),
                record.run_id,
                record.rehearsal,
            )
        )
        served = record.serves
    return switches[::-1]


def find_served(log: TableLog) -> str:
    """Finds the key of the version that a served table holds; empty where it holds none yet."""
    records = (commit.record for commit in log.known_commits)
    return next((record.serves for record in records if record is not None), "")


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
    return next((record.retired for record in records if record is not None), "")
