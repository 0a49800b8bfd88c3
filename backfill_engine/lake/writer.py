"""The only code that writes the layers: creates tables, and replaces partitions in one commit.

Spark creates a table, or reads its log, while this process has something else to do. The first
table of a session takes two seconds to create, as long as it takes to build a plan. A commit goes
over the whole log before it writes, and so does the first read after it: a third to two thirds of a
second on a table of any size, most of it planning. Spark keeps what it has read of a version, so
whoever comes next finds it there.
"""

import atexit
import uuid
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from threading import Thread
from typing import Any
from weakref import WeakSet

from pyspark.sql import DataFrame, SparkSession
from tenacity import Retrying, retry_if_exception, stop_after_attempt, wait_random_exponential

from backfill_engine.engines.sessions import find_engine
from backfill_engine.errors import TableError
from backfill_engine.lake.commit_files import list_folder
from backfill_engine.lake.commits import (
    Commit,
    CommitRecord,
    find_changed_partitions,
    find_commit,
)
from backfill_engine.lake.locks import Lock, hold_lock
from backfill_engine.lake.partitions import (
    Partition,
    Slice,
    build_folder_predicate,
    build_table_predicate,
)
from backfill_engine.lake.reader import SPARK_ERRORS
from backfill_engine.lake.stored_declarations import build_new_table, check_grain
from backfill_engine.lake.table_log import TableLog
from backfill_engine.lake.warehouse import Warehouse
from backfill_engine.tables.declarations import Column, Table, build_ddl

_CONFLICT_ATTEMPTS = 8
# Delta's conflict errors, by error class (Spark Connect) or exception name (Spark in the process).
_CONFLICT_MARKS = (
    "DELTA_CONCURRENT_",
    "DELTA_METADATA_CHANGED",
    "DELTA_PROTOCOL_CHANGED",
    "ConcurrentAppendException",
    "ConcurrentDeleteDeleteException",
    "ConcurrentDeleteReadException",
    "ConcurrentTransactionException",
    "ConcurrentWriteException",
    "MetadataChangedException",
    "ProtocolChangedException",
    "Failed to commit transaction",  # of Sail, which has no classes
)


class PartitionsChangedError(Exception):
    """Another run changed partitions that were about to be replaced, or were replaced meanwhile.

    Attributes:
        keys: those partitions; they must be computed again from the inputs as they are now.
    """

    def __init__(self, keys: set[str]) -> None:
        super().__init__(f"changed by another run: {', '.join(sorted(keys))}")
        self.keys = keys


def create_table(spark: SparkSession, log: TableLog) -> None:
    """Creates the table, empty, unless it exists; so first writes of two runs don't race.

    Raises:
        TableError: if it exists with partitions of another grain, or has lost its log.
    """
    warehouse, table, log = log.warehouse, log.table, log.reread()
    if log.exists:
        check_grain(log)
        return
    new = build_new_table(table, warehouse.uri(table), retention_days=warehouse.retention_days)
    with hold_lock(warehouse, table.place) as lock:
        if not warehouse.exists(table):
            _refuse_lost_log(log)
        retry_conflicts(lock)(find_engine(spark).create_table, spark, new)


def _refuse_lost_log(log: TableLog) -> None:
    """Refuses a place that has data and no log: Delta makes no table there, and says nothing."""
    if files := list_folder(log.uri):
        raise TableError(
            f"{log.table.key}: {log.uri} has no Delta log, but {files[0]}: restore _delta_log from "
            "a copy, or move the folder away to publish all anew; nothing was written"
        )


@dataclass(frozen=True)
class HeldTable:
    """A table whose lock a run holds.

    Attributes:
        lock: to be checked before each commit.
        pinned: the log as it was when the run pinned its inputs.
        newest: the log as it is now.
    """

    lock: Lock
    pinned: TableLog
    newest: TableLog


@contextmanager
def hold_partitions(
    log: TableLog, keys: Collection[str], *, run_id: str, newest: TableLog | None = None
) -> Iterator[HeldTable]:
    """Holds the table's lock for a run that judged partitions, unless another has changed some.

    What the run writes of them meanwhile, beside the table too, is then newer than all others'.

    Args:
        log: of the table, as it was when the run pinned its inputs.
        keys: the partitions.
        run_id: the run.
        newest: a later reading of the same log, if there is one.

    Yields:
        The table; whatever the run writes of these partitions belongs inside.

    Raises:
        PartitionsChangedError: if another run has changed some of them since `log`: its inputs may
            be newer. Nothing was written then.
        TableError: if another table is there now, or an older state of it, or its columns were
            migrated meanwhile.
    """
    with hold_lock(log.warehouse, log.table.place) as lock:
        newest = (newest or log).reread()
        if not newest.exists:
            _refuse_lost_log(newest)
        if log.exists and (newest.table_id != log.table_id or newest.version < log.version):
            raise TableError(
                f"{log.table.key}: the table at {log.uri} was replaced or set back while the run "
                "was at work: run these partitions again; nothing of them was written"
            )
        since = newest.list_commits_after(log.version)
        if any(commit.is_migration for commit in since):
            raise TableError(
                f"{log.table.key}: columns of {log.uri} were migrated while the run was at work: "
                "run these partitions again; nothing of them was written"
            )
        _refuse_changed(since, keys, run_id)
        yield HeldTable(lock, log, newest)


def overwrite_partitions(
    frame: DataFrame,
    log: TableLog,
    partitions: Sequence[Partition],
    record: CommitRecord,
    *,
    transaction: str | None = None,
) -> int:
    """Holds the table, and replaces exactly `partitions` by the rows of `frame`.

    Args:
        frame: as in `overwrite_held`.
        log: of the table, as it was when the inputs of `frame` were pinned.
        partitions: likewise.
        record: likewise.
        transaction: likewise.

    Returns:
        The version that the commit made.

    Raises:
        ValueError, PartitionsChangedError, TableError: as `hold_partitions` and `overwrite_held`.
    """
    with hold_partitions(log, record.rows, run_id=record.run_id) as held:
        version, _ = overwrite_held(frame, held, partitions, record, transaction=transaction)
        return version


def overwrite_held(
    frame: DataFrame,
    held: HeldTable,
    partitions: Sequence[Partition],
    record: CommitRecord,
    *,
    transaction: str | None = None,
    writes: bool = True,
) -> tuple[int, TableLog]:
    """Replaces exactly `partitions` of a held table by the rows of `frame`, in one Delta commit.

    A partition without rows in `frame` becomes empty. Rows outside the partitions are refused.

    Args:
        frame: the columns that the table has in storage, in order; only rows of `partitions`.
        held: the table.
        partitions: what to replace, ascending; at least one.
        record: what the commit carries; of exactly these partitions, as `build_record` makes it.
        transaction: application id of Delta's transaction identifier, by which Delta commits at
            most once; None for none.
        writes: whether the rows are written; else the commit has only the record of rows that are
            there.

    Returns:
        The version that the commit made, and the log that has it.

    Raises:
        ValueError: if there are no partitions, or `record` isn't about them.
        PartitionsChangedError: if another run has changed some of them after all, as the storage
            has no locks: its inputs may be newer than ours, and this commit was made.
        TableError: if the transaction was committed before, or the commit can't be found in the log
            afterwards.
    """
    keys, log = [partition.key for partition in partitions], held.pinned
    if set(record.rows) != set(keys) or set(record.checksums) != set(keys):
        raise ValueError(f"{log.table.key}: the record must be of exactly the partitions {keys}")
    retry_conflicts(held.lock)(
        find_engine(frame.sparkSession).overwrite,
        *(frame, log.uri, record.predicate if writes else None),
        user_metadata=record.to_json(),
        transaction=transaction,
    )
    newest = held.newest.reread()
    commits = newest.list_commits_after(log.version)
    commit = find_commit(commits, record.commit_id)
    if commit is None and transaction is not None and newest.has_transaction(transaction):
        # Delta has skipped the write without a word: this very append was committed before.
        _refuse_changed(commits, keys, record.run_id)
        raise TableError(
            f"{log.table.key}: this batch was appended to {keys[0]} … {keys[-1]} by a commit that "
            "the log no longer describes; nothing was written"
        )
    if commit is None:
        raise TableError(
            f"{log.table.key}: Spark reported a commit that the log at {log.uri} lacks: "
            "the storage is not safe for concurrent commits"
        )
    earlier = [other for other in commits if other.version < commit.version]
    _refuse_changed(earlier, keys, record.run_id)
    return commit.version, newest


def build_record(table: Table, partitions: Sequence[Partition], **content: Any) -> CommitRecord:
    """Builds the record of a commit that replaces `partitions`, ascending.

    The rest is as in CommitRecord.

    Raises:
        ValueError: if there are no partitions.
    """
    predicate = build_table_predicate(table, (partition.slice for partition in partitions))
    return CommitRecord(
        commit_id=str(uuid.uuid4()),
        asset_key=table.key,
        predicate=predicate,
        **content,
    )


def _refuse_changed(commits: Sequence[Commit], keys: Collection[str], run_id: str) -> None:
    changed = find_changed_partitions(commits, keys, run_id=run_id)
    if changed:
        raise PartitionsChangedError(changed)


def add_columns(spark: SparkSession, held: HeldTable, columns: Sequence[Column]) -> None:
    """Adds nullable columns to a held table, in a commit of their own; old partitions read null.

    Those that another run has added meanwhile, as the storage has no locks, are left as they are.
    """
    if not columns:
        return
    log = held.newest
    for attempt in retry_conflicts(held.lock):
        with attempt:
            fields = log.reread().open_snapshot().schema().fields
            stored = {field.name.lower() for field in fields}
            missing = [column for column in columns if column.name.lower() not in stored]
            if missing:
                find_engine(spark).add_columns(spark, log.uri, build_ddl(missing))


def optimize_partitions(
    spark: SparkSession, warehouse: Warehouse, table: Table, slices: Sequence[Slice]
) -> None:
    """Rewrites the small files of partitions as few large ones: a commit that changes no data."""
    predicate = build_folder_predicate(table, slices)
    with hold_lock(warehouse, table.place) as lock:
        retry_conflicts(lock)(
            find_engine(spark).run_statement,
            *(spark, warehouse.uri(table), f"OPTIMIZE {{table}} WHERE {predicate}"),
        )


def vacuum_table(spark: SparkSession, uri: str) -> None:
    """Removes files that no version within the table's own retention needs.

    Without the lock: it commits no data, and files of a run at work are younger than any retention.
    """
    find_engine(spark).vacuum(spark, uri)


def retry_conflicts(lock: Lock) -> Retrying:
    """Returns what calls a commit again, while Delta says that another one came in between.

    Before each the lock is checked: the other one may be of a process that took it over.
    """
    return Retrying(
        before=lambda _: lock.check(),
        retry=retry_if_exception(_is_conflict),
        stop=stop_after_attempt(_CONFLICT_ATTEMPTS),
        wait=wait_random_exponential(multiplier=0.5, max=10),
        reraise=True,
    )


def _is_conflict(error: BaseException) -> bool:
    text = f"{type(error).__name__} {error}"
    return isinstance(error, SPARK_ERRORS) and any(mark in text for mark in _CONFLICT_MARKS)


_MOST_SECONDS = 5.0
_begun: WeakSet[Thread] = WeakSet()


def prepare_ahead(spark: SparkSession, log: TableLog) -> Thread:
    """Begins to create a table, if there is none, and to read its newest version; doesn't wait.

    Nothing depends on it: whatever goes wrong here goes wrong again where it matters. Who needs the
    table calls `create_table`, which waits for this one.

    Args:
        spark: the session.
        log: of the table.

    Returns:
        What ends when it has been read; it keeps no process alive.
    """

    def prepare() -> None:
        with suppress(Exception):
            if not log.exists:
                create_table(spark, log)
            find_engine(spark).read_ahead(spark, log.uri)

    thread = Thread(target=prepare, name=f"preparing {log.table.key}", daemon=True)
    _begun.add(thread)
    thread.start()
    return thread


@atexit.register
def _end() -> None:
    """Lets it end with the process: a Java that is ended in the middle of it says so on stderr."""
    for thread in list(_begun):
        thread.join(_MOST_SECONDS)
