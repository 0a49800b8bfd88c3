"""The versions of a served table: how people name them, and when which was served."""

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass

from backfill_engine.errors import UnknownTableError
from backfill_engine.lake.served_versions import REHEARSAL, SERVED, find_served, read_served
from backfill_engine.lake.table_log import TableLog
from backfill_engine.tables.declarations import Table

RETIRED = "retired"
"""Feature of a commit that emptied a version that nobody reads any more: by whom and why."""


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
        if record is None or read_served(record) == served:
            continue
        entry = record.features.get(SERVED, {})
        before, served = served, read_served(record)
        switches.append(
            Switch(
                commit.version,
                commit.committed_at,
                served,
                entry.get("before", before),
                entry.get("by", ""),
                entry.get("why", ""),
                record.run_id,
                record.features.get(REHEARSAL, ""),
            )
        )
    return switches[::-1]


def find_retired(log: TableLog) -> str:
    """Finds why a version is kept up no more; empty if it is.

    Whoever publishes it again takes it up again.
    """
    records = (commit.record for commit in log.known_commits)
    return next((record.features.get(RETIRED, "") for record in records if record is not None), "")


def name_version(table: Table, key: str) -> str:
    """Names a version as people do: `v2` of features/carrier_delays_v2; by its place if unnumbered.

    Args:
        table: the served one.
        key: of the version.
    """
    _, _, number = key.rpartition("_v")
    if number.isdigit():
        return f"v{number}"
    keys = [version.key for version in table.versions]
    return f"v{keys.index(key) + 1}" if key in keys else key


def find_version(table: Table, name: str) -> Table:
    """Finds a version of a served table by its name (`v2`), or by its table's name or key.

    Raises:
        UnknownTableError: if there is none; names those that there are.
    """
    for version in table.versions:
        if name in (version.key, version.name, name_version(table, version.key)):
            return version
    if not table.versions:
        raise UnknownTableError(
            f"{table.key} serves no versions: declare them with it, as `versions`"
        )
    known = ", ".join(
        f"{name_version(table, version.key)} ({version.key})" for version in table.versions
    )
    raise UnknownTableError(f"{table.key} has no version {name}: there are {known}")


@dataclass(frozen=True)
class DescribedVersion:
    """A version of a served table.

    Attributes:
        name: as people say it, `v2`.
        table: `layer/name`.
        is_served: whether consumers read it now.
        partitions: that it has published.
        retired: why it is kept up no more; empty if it is.
    """

    name: str
    table: str
    is_served: bool
    partitions: int
    retired: str = ""


@dataclass(frozen=True)
class DescribedTable:
    """A served table.

    Attributes:
        table: `layer/name`.
        versions: as declared.
        switches: newest first.
    """

    table: str
    versions: tuple[DescribedVersion, ...]
    switches: tuple[Switch, ...]


def describe_versions(log: TableLog, versions: Sequence[TableLog]) -> DescribedTable:
    """Describes the versions of a served table, and when which was served.

    Args:
        log: of the served table.
        versions: of its versions.
    """
    served = find_served(log)
    return DescribedTable(
        log.table.key,
        tuple(
            DescribedVersion(
                name_version(log.table, version_log.table.key),
                version_log.table.key,
                version_log.table.key == served,
                sum(publish.rows > 0 for publish in version_log.publishes.values()),
                find_retired(version_log),
            )
            for version_log in versions
        ),
        tuple(list_switches(log)),
    )
