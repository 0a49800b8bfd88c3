"""The only code that writes the layers: creates tables, and replaces partitions in one commit."""

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from tenacity import Retrying, retry_if_exception, stop_after_attempt, wait_random_exponential

from backfill_assets.errors import TableError
from backfill_assets.lake.commits import CommitRecord, WriteMode
from backfill_assets.lake.locks import hold_table_lock
from backfill_assets.lake.partitions import build_folder_predicate, build_table_predicate
from backfill_assets.lake.slices import Partition, Slice
from backfill_assets.lake.spark_errors import SPARK_ERRORS
from backfill_assets.lake.table_log import (
    Commit,
    find_changed_partitions,
    find_commit,
    read_commits,
)
from backfill_assets.lake.warehouse import Warehouse
from backfill_assets.tables.declarations import Column, Table, build_ddl

_GRAIN_PROPERTY = "backfill_assets.grain"
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
)


@dataclass(frozen=True)
class Provenance:
    """Who publishes, with which code, from which inputs."""

    run_id: str
    code_version: str
    input_versions: Mapping[str, int | str]


@dataclass(frozen=True)
class PublishedContent:
    """What the audit saw, per partition key.

    Attributes:
        rows: rows.
        checksums: content checksums.
        profiles: what later partitions are compared with, as JSON values.
        accepted: failed checks that a person let pass.
        row_filter: the run's filter of what was computed.
        batches: of an append, the batch by partition key.
    """

    rows: Mapping[str, int]
    checksums: Mapping[str, str]
    profiles: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    accepted: Sequence[Mapping[str, str]] = ()
    row_filter: str = ""
    batches: Mapping[str, str] = field(default_factory=dict)


class PartitionsChangedError(Exception):
    """Another run changed partitions that were about to be replaced, or were replaced meanwhile.

    Attributes:
        keys: those partitions; they must be computed again from the inputs as they are now.
    """

    def __init__(self, keys: set[str]) -> None:
        super().__init__(f"changed by another run: {', '.join(sorted(keys))}")
        self.keys = keys


def create_table(spark: SparkSession, warehouse: Warehouse, table: Table) -> None:
    """Creates the table, empty, unless it exists; so first writes of two runs don't race.

    Old versions stay readable for `warehouse.retention_days`: Delta's default of a week for data
    files and a month for the log would put undo out of reach.

    Raises:
        TableError: if it exists with partitions of another grain.
    """
    if warehouse.exists(table):
        _refuse_other_grain(warehouse, table)
        return
    days = warehouse.retention_days
    with hold_table_lock(warehouse, table):
        for attempt in retry_conflicts():
            with attempt:
                spark.sql(
                    f"CREATE TABLE IF NOT EXISTS delta.`{warehouse.uri(table)}` "
                    f"({build_ddl(table.columns)}) USING DELTA "
                    f"PARTITIONED BY (`{table.folder_column}`) TBLPROPERTIES ("
                    f"'delta.logRetentionDuration' = 'interval {days} days', "
                    f"'delta.deletedFileRetentionDuration' = 'interval {days} days', "
                    f"'delta.enableInCommitTimestamps' = 'true', "
                    f"'{_GRAIN_PROPERTY}' = '{table.grain}')"
                )


def _refuse_other_grain(warehouse: Warehouse, table: Table) -> None:
    """Partitions of another size would be replaced in part, or with their neighbours."""
    stored = warehouse.open(table).metadata().configuration.get(_GRAIN_PROPERTY)
    if stored is not None and stored != str(table.grain):
        raise TableError(
            f"{table.key} at {warehouse.uri(table)} is partitioned by {stored}, not by "
            f"{table.grain}: set it back, or use another warehouse; nothing was written"
        )


def overwrite_partitions(
    frame: DataFrame,
    *,
    warehouse: Warehouse,
    table: Table,
    partitions: Sequence[Partition],
    content: PublishedContent,
    provenance: Provenance,
    base_version: int,
    write_mode: WriteMode = WriteMode.OVERWRITE,
    transaction: str | None = None,
) -> int:
    """Replaces exactly `partitions` by the rows of `frame`, in one Delta commit.

    A partition without rows in `frame` becomes empty. Delta refuses rows outside the partitions
    (its constraint check), and the commit carries a CommitRecord.

    Args:
        frame: columns of `table`, in order; only rows of `partitions`.
        warehouse: where the table is.
        table: its declaration.
        partitions: what to replace, ascending; at least one.
        content: rows and checksum of each of `partitions`.
        provenance: goes into the commit.
        base_version: the table's version when the inputs of `frame` were pinned.
        write_mode: goes into the commit.
        transaction: application id of Delta's transaction identifier, by which Delta commits at
            most once; None for none.

    Returns:
        The version that the commit made.

    Raises:
        ValueError: if there are no partitions, or `content` isn't about them.
        PartitionsChangedError: if another run has changed some of them since `base_version`: its
            inputs may be newer than ours. Nothing was written then, but on storage without a lock,
            where a race is seen only afterwards.
        TableError: if the transaction was committed before, or the commit can't be found in the log
            afterwards.
    """
    keys = [partition.key for partition in partitions]
    if set(content.rows) != set(keys) or set(content.checksums) != set(keys):
        raise ValueError(f"{table.key}: content must describe exactly the partitions {keys}")
    predicate = build_table_predicate(table, (one.slice for one in partitions))
    record = CommitRecord(
        commit_id=str(uuid.uuid4()),
        run_id=provenance.run_id,
        asset_key=table.key,
        partition_start=keys[0],
        partition_end=keys[-1],
        code_version=provenance.code_version,
        input_versions=dict(provenance.input_versions),
        write_mode=write_mode,
        predicate=predicate,
        rows=dict(content.rows),
        checksums=dict(content.checksums),
        profiles=dict(content.profiles),
        accepted=tuple(content.accepted),
        row_filter=content.row_filter,
        batches=dict(content.batches),
    )
    writer = (
        frame.select(*table.column_names)
        .write.format("delta")
        .mode("overwrite")
        .option("replaceWhere", predicate)
        .option("userMetadata", record.to_json())
    )
    if transaction is not None:
        writer = writer.option("txnAppId", transaction).option("txnVersion", 1)
    with hold_table_lock(warehouse, table):
        _refuse_changed(read_commits(warehouse, table, after=base_version), keys, provenance)
        for attempt in retry_conflicts():
            with attempt:
                writer.save(warehouse.uri(table))
        commits = read_commits(warehouse, table, after=base_version)
    commit = find_commit(commits, record.commit_id)
    if commit is None and transaction is not None and _is_committed(warehouse, table, transaction):
        # Delta has skipped the write without a word: this very append was committed before.
        _refuse_changed(commits, keys, provenance)
        raise TableError(
            f"{table.key}: this batch was appended to {keys[0]} … {keys[-1]} by a commit that the "
            "log no longer describes; nothing was written"
        )
    if commit is None:
        raise TableError(
            f"{table.key}: Spark reported a commit that the log at {warehouse.uri(table)} lacks: "
            "the storage is not safe for concurrent commits"
        )
    earlier = [one for one in commits if one.version < commit.version]
    _refuse_changed(earlier, keys, provenance)
    return commit.version


def _is_committed(warehouse: Warehouse, table: Table, transaction: str) -> bool:
    return warehouse.open(table).transaction_version(transaction) is not None


def _refuse_changed(commits: list[Commit], keys: list[str], provenance: Provenance) -> None:
    changed = find_changed_partitions(commits, keys, run_id=provenance.run_id)
    if changed:
        raise PartitionsChangedError(changed)


def add_columns(
    spark: SparkSession, warehouse: Warehouse, table: Table, columns: Sequence[Column]
) -> None:
    """Adds nullable columns in a commit of their own; old partitions read null.

    Those that another run has added meanwhile are left as they are.
    """
    with hold_table_lock(warehouse, table):
        for attempt in retry_conflicts():
            with attempt:
                stored = {field.name.lower() for field in warehouse.open(table).schema().fields}
                missing = [one for one in columns if one.name.lower() not in stored]
                if missing:
                    spark.sql(
                        f"ALTER TABLE delta.`{warehouse.uri(table)}` "
                        f"ADD COLUMNS ({build_ddl(missing)})"
                    )


def optimize_partitions(
    spark: SparkSession, warehouse: Warehouse, table: Table, slices: Sequence[Slice]
) -> None:
    """Rewrites the small files of partitions as few large ones: a commit that changes no data."""
    predicate = build_folder_predicate(table, slices)
    with hold_table_lock(warehouse, table):
        for attempt in retry_conflicts():
            with attempt:
                spark.sql(f"OPTIMIZE delta.`{warehouse.uri(table)}` WHERE {predicate}")


def vacuum_table(spark: SparkSession, warehouse: Warehouse, table: Table) -> None:
    """Removes files that no version within the table's own retention needs.

    Without the lock: it commits no data, and files of a run at work are younger than any retention.
    """
    spark.sql(f"VACUUM delta.`{warehouse.uri(table)}`")


def retry_conflicts() -> Retrying:
    """Attempts at a commit, while Delta says that another one came in between."""
    return Retrying(
        retry=retry_if_exception(_is_conflict),
        stop=stop_after_attempt(_CONFLICT_ATTEMPTS),
        wait=wait_random_exponential(multiplier=0.5, max=10),
        reraise=True,
    )


def _is_conflict(error: BaseException) -> bool:
    text = f"{type(error).__name__} {error}"
    return isinstance(error, SPARK_ERRORS) and any(mark in text for mark in _CONFLICT_MARKS)
