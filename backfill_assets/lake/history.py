"""Answers from the Delta log through delta-rs: versions, commits, row counts. No JVM, no rows."""

import datetime as dt
from collections.abc import Iterable
from dataclasses import dataclass

from backfill_assets.errors import TableError
from backfill_assets.lake.commits import CommitRecord
from backfill_assets.tables.declarations import Table
from backfill_assets.lake.warehouse import Warehouse


@dataclass(frozen=True)
class Commit:
    """One version of a table; `record` is None where the commit isn't a publish of this project."""

    version: int
    committed_at: dt.datetime
    operation: str
    record: CommitRecord | None


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


def read_commits(warehouse: Warehouse, table: Table, *, limit: int | None = None) -> list[Commit]:
    """Commits, newest first; none if the table doesn't exist."""
    if not warehouse.exists(table):
        return []
    return [
        Commit(
            version=entry["version"],
            committed_at=dt.datetime.fromtimestamp(entry["timestamp"] / 1000, tz=dt.UTC),
            operation=entry["operation"],
            record=CommitRecord.from_json(entry.get("userMetadata")),
        )
        for entry in warehouse.open(table).history(limit)
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


def count_rows(warehouse: Warehouse, table: Table) -> dict[str, int]:
    """Rows per partition value (as text), from the file statistics of the newest version."""
    if not warehouse.exists(table):
        return {}
    files = warehouse.open(table).get_add_actions(flatten=True)
    values = files.column(f"partition.{table.partition_by}").to_pylist()
    counts: dict[str, int] = {}
    for value, rows in zip(values, files.column("num_records").to_pylist(), strict=True):
        counts[str(value)] = counts.get(str(value), 0) + rows
    return counts
