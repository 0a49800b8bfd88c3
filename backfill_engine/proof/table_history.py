"""The commits of a table, as its log tells them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice

from backfill_engine.lake.commits import Commit
from backfill_engine.lake.table_log import TableLog


@dataclass(frozen=True)
class Change:
    """One commit.

    Attributes:
        version: the Delta version that it made.
        committed_at: UTC, ISO 8601.
        operation: as Delta names it.
        write_mode: how the rows came about; the following are None and 0 where the commit isn't a
            publish of this project.
        run_id: the run.
        backfill_id: the backfill that it is part of or continues; None if none.
        first: first partition key, of the range asked for if there is one.
        last: last one.
        partitions: how many were replaced.
        rows: rows in them.
        accepted: failed checks that a person let pass.
    """

    version: int
    committed_at: str
    operation: str
    write_mode: str | None = None
    run_id: str | None = None
    backfill_id: str | None = None
    first: str | None = None
    last: str | None = None
    partitions: int = 0
    rows: int = 0
    accepted: int = 0


def list_changes(
    log: TableLog, *, first: str | None = None, last: str | None = None, limit: int | None = None
) -> list[Change]:
    """Lists the commits that replaced a partition from `first` to `last`, newest first.

    Without a range, and of other programs, all commits.

    Args:
        log: of the table.
        first: first partition key; None for all from the first on.
        last: last one; None for all to the last.
        limit: most of them; None for all that the log still has.
    """
    changes = (_describe(commit, first, last) for commit in log.iterate_commits())
    return list(islice((change for change in changes if change is not None), limit))


def _describe(commit: Commit, first: str | None, last: str | None) -> Change | None:
    committed_at = commit.committed_at.isoformat(timespec="milliseconds")
    record = commit.record
    if record is None:
        return Change(commit.version, committed_at, commit.operation)
    keys = sorted(
        key
        for key in record.rows
        if (first is None or key >= first) and (last is None or key <= last)
    )
    if not keys:
        return None
    return Change(
        version=commit.version,
        committed_at=committed_at,
        operation=commit.operation,
        write_mode=record.write_mode,
        run_id=record.run_id,
        backfill_id=record.backfill_id or None,
        first=keys[0],
        last=keys[-1],
        partitions=len(keys),
        rows=sum(record.rows[key] for key in keys),
        accepted=sum(acceptance["partition"] in keys for acceptance in record.audit.accepted),
    )


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
