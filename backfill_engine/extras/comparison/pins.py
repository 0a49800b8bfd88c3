"""Tables next to each other: at which versions they belong together."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from backfill_engine.lake.table_log import TableLog


@dataclass(frozen=True)
class Pin:
    """A table at a version.

    Attributes:
        table: `layer/name`.
        uri: where it is.
        version: to be read with `versionAsOf`.
        apart: by partition key, why the partition doesn't belong to the others: `computed from
            other contents of` the first upstream partition that has others at these versions, or
            `changed by another writer`; of partitions for which that is not known, nothing.
    """

    table: str
    uri: str
    version: int
    apart: Mapping[str, str] = field(default_factory=dict)


def pin_tables(logs: Sequence[TableLog]) -> list[Pin]:
    """Pins tables at the versions of their logs, and finds where these do not belong together.

    A table that finds its rows of another by a column may have been computed from all of them
    though the other changed since, in rows that are not for it; it counts as apart all the same.

    Args:
        logs: of the tables, each of which must exist.
    """
    now = {log.table.key: log.checksums for log in logs}
    return [Pin(log.table.key, log.uri, log.version, _find_apart(log, now)) for log in logs]


def _find_apart(log: TableLog, now: Mapping[str, Mapping[str, str]]) -> dict[str, str]:
    foreign = log.foreign_changes
    found = {key: foreign[key].describe_foreign() for key in sorted(foreign)}
    for key, publish in sorted(log.publishes.items()):
        if key in found:
            continue
        consumed = publish.consumed.upstream
        for table in sorted(consumed.keys() & now.keys()):
            other = (
                upstream
                for upstream, checksum in consumed[table].items()
                if checksum != now[table].get(upstream, "")
            )
            if (first := next(other, None)) is not None:
                found[key] = f"computed from other contents of {table} {first}"
                break
    return found
