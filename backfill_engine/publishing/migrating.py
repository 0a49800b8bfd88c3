"""Migrates columns of a table: compares what its partitions hold before and after, by delta-rs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import SparkSession

from backfill_engine.contents.partition_contents import UNREADABLE, PartitionReader, ReadBack
from backfill_engine.engines.sessions import find_engine
from backfill_engine.errors import TableError
from backfill_engine.lake.commits import MigrationRecord
from backfill_engine.lake.locks import hold_lock
from backfill_engine.lake.migrations import (
    drop_statistics,
    restore_version,
    rewrite_columns,
    settle_migration,
)
from backfill_engine.lake.origins import UNKNOWN, Origin
from backfill_engine.lake.partitions import build_partitions
from backfill_engine.lake.stored_declarations import ColumnChange, find_changes, find_uncompared
from backfill_engine.lake.table_log import TableLog
from backfill_engine.rules.measured import list_some


@dataclass(frozen=True)
class Migrated:
    """What became of a table's columns.

    Attributes:
        changes: of columns; none where the table was stored as declared.
        log: of the table, with the commit that made them.
        finished: the version of an earlier migration that was stopped before it was compared, and
            is compared now; None if there was none.
        statistics: the columns that are chosen for statistics anew; empty for none.
    """

    changes: Sequence[ColumnChange]
    log: TableLog
    finished: int | None = None
    statistics: str = ""


def migrate_columns(
    spark: SparkSession,
    log: TableLog,
    *,
    run_id: str,
    reader: PartitionReader,
    overrides: Mapping[str, str],
    origin: Origin = UNKNOWN,
) -> Migrated:
    """Gives columns of a table the names and types that are declared, and changes no row.

    An earlier migration that was stopped between its commit and the comparison is compared first.

    Args:
        spark: the session.
        log: of the table, which must exist.
        run_id: the run.
        reader: reads the partitions before and after.
        overrides: of protected partitions, why they are rewritten all the same, by key.
        origin: who asked for it, and why.

    Raises:
        EngineError: if the engine can't rewrite a schema.
        TableError: if a column can't become what is declared, a partition can't be read, or what
            was written isn't what was there; the table then holds what it held.
    """
    with hold_lock(log.warehouse, log.table.place) as lock:
        log, finished, statistics = log.reread(), None, ""
        if uncompared := find_uncompared(log):
            finished, _ = uncompared
            statistics = _compare(spark, log, *uncompared, reader=reader)
            log = log.reread()
        changes = find_changes(log)
        if not changes:
            return Migrated(changes, log, finished, statistics)
        find_engine(spark).require("migrate")
        log = drop_statistics(spark, log, changes)
        known = log.with_columns_of(log.version)
        before = reader.read_back(known, log.list_held_partitions())
        if broken := [key for key, found in before.items() if found == UNREADABLE]:
            raise TableError(
                f"{log.table.key}: {broken[0]} can't be read at version {log.version}: restore its "
                "files from a copy, or run the partition again; nothing was changed"
            )
        record = MigrationRecord(
            migrated=tuple(map(str, changes)),
            run_id=run_id,
            asset_key=log.table.key,
            based_on=log.version,
            rows={key: found.rows for key, found in before.items()},
            checksums={key: found.checksum for key, found in before.items()},
            overrides=overrides,
            features=origin.describe(),
        )
        lock.check()
        rewritten = rewrite_columns(spark, log, changes, record)
        statistics = _compare(spark, rewritten, rewritten.version, record, reader=reader)
        return Migrated(changes, rewritten, finished, statistics)


def _compare(
    spark: SparkSession,
    log: TableLog,
    version: int,
    record: MigrationRecord,
    *,
    reader: PartitionReader,
) -> str:
    """Compares what a migration wrote with what was there; takes it back where that differs.

    What others changed since it is theirs.

    Returns:
        The columns that are chosen for statistics anew.
    """
    table, migrated = log.table, log.as_of(version)
    held = {*record.rows, *(partition.key for partition in log.list_held_partitions())}
    commits = log.list_commits_after(version)
    left = sorted(held - {key for commit in commits for key in commit.find_changed(held)})
    known = log.with_columns_of(record.based_on)
    found = reader.read_back(known, build_partitions(table, left))
    differing = [
        key
        for key in left
        if key not in record.rows or found[key] != ReadBack(record.rows[key], record.checksums[key])
    ]
    is_newest, fault = len(left) == len(held), ""
    if version != record.based_on + 1:
        differing, fault = left, "another program wrote meanwhile"
    elif differing or (
        is_newest and migrated.count_folder_rows() != log.as_of(record.based_on).count_folder_rows()
    ):
        fault = "delta-rs reads other rows after it than before"
    if fault and is_newest:
        restore_version(spark, migrated, record)
        raise TableError(f"{table.key}: {fault}, so the migration was taken back: run it again")
    if fault and differing:
        raise TableError(
            f"{table.key}: {fault}, by the migration of version {version}; others have written "
            f"since, so it stays: run {list_some(differing)} again"
        )
    return settle_migration(spark, log, version)
