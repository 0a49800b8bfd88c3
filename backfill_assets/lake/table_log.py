"""Answers from the Delta log through delta-rs: versions, commits, row counts. No JVM, no rows."""

import datetime as dt
from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from pyarrow import fs

from backfill_assets.errors import HistoryError, TableError
from backfill_assets.lake.commits import CommitRecord
from backfill_assets.lake.filesystems import open_filesystem
from backfill_assets.lake.partitions import find_folder, find_partitions_in_folder
from backfill_assets.lake.slices import Partition
from backfill_assets.lake.warehouse import Warehouse
from backfill_assets.tables.declarations import Table

_UNCHANGING_OPERATIONS = frozenset(
    {
        "CREATE TABLE",
        "ADD COLUMNS",
        "SET TBLPROPERTIES",
        "UPGRADE PROTOCOL",
        "OPTIMIZE",
        "VACUUM START",
        "VACUUM END",
    }
)


@dataclass(frozen=True)
class Commit:
    """One version of a table; `record` is None where the commit isn't a publish of this project."""

    version: int
    committed_at: dt.datetime
    operation: str
    record: CommitRecord | None

    @property
    def changes_data(self) -> bool:
        """Whether it may have: all but maintenance and changes of the schema."""
        return self.record is not None or self.operation not in _UNCHANGING_OPERATIONS

    def may_change(self, keys: Collection[str]) -> bool:
        """Whether it may have changed one of the partitions; of other programs' nobody knows."""
        if self.record is None:
            return self.changes_data
        return any(key in self.record.rows for key in keys)


def read_version(warehouse: Warehouse, table: Table) -> int:
    """The newest version.

    Raises:
        TableError: if the table doesn't exist.
    """
    if not warehouse.exists(table):
        raise TableError(
            f"table {table.key} does not exist at {warehouse.uri(table)}: "
            f"materialize the asset {table.key} first"
        )
    return warehouse.open(table).version()


def read_commits(warehouse: Warehouse, table: Table, *, after: int = -1) -> list[Commit]:
    """Commits of the versions above `after`, newest first; none if the table doesn't exist."""
    if not warehouse.exists(table):
        return []
    log = warehouse.open(table)
    if log.version() <= after:
        return []
    return [
        Commit(
            version=entry["version"],
            committed_at=dt.datetime.fromtimestamp(entry["timestamp"] / 1000, tz=dt.UTC),
            operation=entry["operation"],
            record=CommitRecord.from_json(entry.get("userMetadata")),
        )
        for entry in log.history(log.version() - after)
    ]


def find_commit(commits: Iterable[Commit], commit_id: str) -> Commit | None:
    """The commit that carries this id."""
    matching = (one for one in commits if one.record and one.record.commit_id == commit_id)
    return next(matching, None)


def find_latest_publishes(commits: Iterable[Commit]) -> dict[str, Commit]:
    """Per partition key, the newest commit that replaced it. Takes commits newest first."""
    latest: dict[str, Commit] = {}
    for commit in commits:
        for key in commit.record.rows if commit.record else ():
            latest.setdefault(key, commit)
    return latest


def find_version_before(
    table: Table, commits: Iterable[Commit], keys: Collection[str], run: str
) -> tuple[str, int]:
    """The version before a run's first commit to some partitions.

    Args:
        table: for the message.
        commits: of the table.
        keys: the partitions.
        run: its id, or the beginning of it.

    Returns:
        The run's whole id, and the version.

    Raises:
        HistoryError: if no such run, or more than one, published any of them.
    """
    versions: dict[str, list[int]] = {}
    for one in commits:
        if one.record is not None and one.record.run_id.startswith(run) and one.may_change(keys):
            versions.setdefault(one.record.run_id, []).append(one.version)
    if not versions:
        raise HistoryError(
            f"{table.key}: no run {run} has published any of these partitions; "
            f"`backfill-assets history {table.key}` lists those that have"
        )
    if len(versions) > 1:
        raise HistoryError(f"{run} is the beginning of {' and '.join(sorted(versions))}: say more")
    ((run_id, found),) = versions.items()
    return run_id, min(found) - 1


def find_changed_partitions(
    commits: Iterable[Commit], keys: Iterable[str], *, run_id: str
) -> set[str]:
    """Which of `keys` a commit of another run may have changed.

    A commit without a record (by hand, or of another program) may have changed any of them, unless
    its operation never changes data.
    """
    wanted = set(keys)
    changed: set[str] = set()
    for commit in commits:
        if commit.record is not None:
            if commit.record.run_id != run_id:
                changed |= wanted & set(commit.record.rows)
        elif commit.changes_data:
            changed |= wanted
    return changed


def count_rows(warehouse: Warehouse, table: Table, *, version: int | None = None) -> dict[str, int]:
    """Rows per partition key of a version, else the newest.

    From file statistics; where partitions are finer than folders, from what the commits counted.
    """
    if table.folder_by is None:
        counts = count_folder_rows(warehouse, table, version=version)
        return {
            find_partitions_in_folder(table, folder)[0].key: rows for folder, rows in counts.items()
        }
    commits = read_commits(warehouse, table)
    then = (one for one in commits if version is None or one.version <= version)
    return {
        key: commit.record.rows[key]
        for key, commit in find_latest_publishes(then).items()
        if commit.record
    }


def count_folder_rows(
    warehouse: Warehouse, table: Table, *, version: int | None = None
) -> dict[str, int]:
    """Rows per folder (its value as text) of a version, else the newest; from file statistics."""
    return _sum_files(warehouse, table, "num_records", version=version)


def count_folder_files(warehouse: Warehouse, table: Table) -> dict[str, int]:
    """Data files per folder (its value as text) of the newest version."""
    if not warehouse.exists(table):
        return {}
    return dict(Counter(folder for folder, _ in list_files(warehouse, table, "path")))


def sum_folder_bytes(warehouse: Warehouse, table: Table, *, version: int) -> dict[str, int]:
    """Bytes of data files per folder (its value as text) at a version."""
    return _sum_files(warehouse, table, "size_bytes", version=version)


def list_files(
    warehouse: Warehouse, table: Table, column: str, *, version: int | None = None
) -> list[tuple[str, Any]]:
    """Folder (its value as text) and one figure of each data file of a version, else the newest.

    Args:
        warehouse: where the table is.
        table: which must exist.
        column: of delta-rs's `get_add_actions`: `path`, `num_records`, `size_bytes`.
        version: of the table.
    """
    files = warehouse.open(table, version=version).get_add_actions(flatten=True)
    values = files.column(f"partition.{table.folder_column}").to_pylist()
    return list(zip(map(str, values), files.column(column).to_pylist(), strict=True))


def find_missing_files(
    warehouse: Warehouse, table: Table, partitions: Iterable[Partition], *, version: int
) -> list[str]:
    """Data files of the partitions' folders at a version that are no longer there, by path."""
    folders = {find_folder(table, one) for one in partitions}
    paths = [
        unquote(path)
        for folder, path in list_files(warehouse, table, "path", version=version)
        if folder in folders
    ]
    filesystem, base = open_filesystem(warehouse.uri(table))
    found = filesystem.get_file_info([f"{base}/{path}" for path in paths])
    return [
        path for path, info in zip(paths, found, strict=True) if info.type == fs.FileType.NotFound
    ]


def _sum_files(
    warehouse: Warehouse, table: Table, column: str, *, version: int | None
) -> dict[str, int]:
    if not warehouse.exists(table):
        return {}
    sums: dict[str, int] = {}
    for value, figure in list_files(warehouse, table, column, version=version):
        sums[value] = sums.get(value, 0) + figure
    return sums
