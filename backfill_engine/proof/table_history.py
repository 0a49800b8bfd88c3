"""The commits of a table, as its log tells them."""

from dataclasses import dataclass
from itertools import islice

from backfill_engine.grains.grain import is_in_range
from backfill_engine.lake.commit_files import read_migration
from backfill_engine.lake.commits import Commit
from backfill_engine.lake.origins import UNKNOWN, Origin
from backfill_engine.lake.table_log import TableLog


@dataclass(frozen=True)
class Change:
    """One commit.

    Attributes:
        version: the Delta version that it made.
        committed_at: UTC, ISO 8601.
        operation: as Delta names it.
        write_mode: how the rows came about; it and the following are None and 0 where the commit
            isn't a publish of this project.
        run_id: the run; also of a migration, and so is `origin`.
        backfill_id: the backfill that it is part of or continues; None if none.
        first: first partition key, of the range asked for if there is one.
        last: last one.
        partitions: how many were replaced.
        rows: rows in them.
        accepted: failed checks that a person let pass.
        origin: who asked for it, and why.
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
    origin: Origin = UNKNOWN


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
    changes = (_describe(log, commit, first, last) for commit in log.iterate_commits())
    return list(islice((change for change in changes if change is not None), limit))


def _describe(log: TableLog, commit: Commit, first: str | None, last: str | None) -> Change | None:
    committed_at = commit.committed_at.isoformat(timespec="milliseconds")
    record = commit.record
    if record is None:
        migration = read_migration(log.uri, commit.version) if commit.is_migration else None
        run_id, features = (migration.run_id, migration.features) if migration else (None, {})
        origin = Origin.read(features)
        return Change(commit.version, committed_at, commit.operation, run_id=run_id, origin=origin)
    keys = sorted(key for key in record.rows if is_in_range(key, first, last))
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
        origin=Origin.read(record.features),
    )
