"""Migrates columns of a table: compares what its partitions hold before and after, by delta-rs."""

from collections.abc import Mapping, Sequence

from pyspark.sql import SparkSession

from backfill_engine.contents.partition_contents import UNREADABLE, PartitionReader
from backfill_engine.errors import TableError
from backfill_engine.lake.commits import MigrationRecord
from backfill_engine.lake.locks import hold_lock
from backfill_engine.lake.migrations import (
    choose_statistics_anew,
    drop_statistics,
    restore_version,
    rewrite_columns,
)
from backfill_engine.lake.stored_declarations import ColumnChange, find_changes
from backfill_engine.lake.table_log import TableLog


def migrate_columns(
    spark: SparkSession,
    log: TableLog,
    *,
    run_id: str,
    reader: PartitionReader,
    overrides: Mapping[str, str],
) -> tuple[Sequence[ColumnChange], TableLog]:
    """Gives columns of a table the names and types that are declared, and changes no row.

    Args:
        spark: the session.
        log: of the table, which must exist.
        run_id: the run.
        reader: reads the partitions before and after.
        overrides: of protected partitions, why they are rewritten all the same, by key.

    Returns:
        What was changed, nothing where the table is stored as declared; and the log with that
        commit.

    Raises:
        TableError: if a column can't become what is declared, a partition can't be read, or what
            was written isn't what was there; the table then holds what it held.
    """
    with hold_lock(log.warehouse, log.table.place) as lock:
        log = log.reread()
        changes = find_changes(log)
        if not changes:
            return changes, log
        log = drop_statistics(spark, log, changes)
        partitions, counts = log.list_held_partitions(), log.count_folder_rows()
        before = reader.read_back(log, partitions)
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
        )
        lock.check()
        rewritten = rewrite_columns(spark, log, changes, record)
        fault = ""
        if rewritten.version != log.version + 1:
            fault = "another program wrote meanwhile"
        elif rewritten.count_folder_rows() != counts or (
            reader.read_back(rewritten, partitions) != before
        ):
            fault = "delta-rs reads other rows after it than before"
        if fault:
            restore_version(spark, rewritten, record)
            raise TableError(
                f"{log.table.key}: {fault}, so the migration was taken back: run it again"
            )
        choose_statistics_anew(spark, rewritten)
        return changes, rewritten
