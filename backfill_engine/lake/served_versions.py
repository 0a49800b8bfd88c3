"""Which version a served table holds: its own commits say, and nothing else does.

So the commit that replaces all partitions by those of another version is the switch, atomic for
whoever reads the table; and a rollback of it is one, too.
"""

from backfill_engine.lake.commits import CommitRecord
from backfill_engine.lake.table_log import TableLog

SERVED = "served"
"""Feature of a commit: the `version` that all partitions of a served table hold from then on; of a
commit that changed it also the one `before`, `by` whom and `why`."""

REHEARSAL = "rehearsal"
"""Feature of a commit: the rehearsal that its run applied."""


def find_served(log: TableLog) -> str:
    """Finds the key of the version that a served table holds; empty where it holds none yet."""
    records = (commit.record for commit in log.known_commits)
    return next((read_served(record) for record in records if record is not None), "")


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


def read_served(record: CommitRecord) -> str:
    """Reads the key of the version that a commit says its table holds; empty if it says none."""
    return record.features.get(SERVED, {}).get("version", "")
