"""The only code that writes tables: creates them, and replaces partitions in one atomic commit."""

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from tenacity import Retrying, retry_if_exception, stop_after_attempt, wait_random_exponential

from backfill_assets.errors import TableError
from backfill_assets.lake.commits import CommitRecord
from backfill_assets.lake.history import find_commit, read_commits
from backfill_assets.lake.locks import hold_table_lock
from backfill_assets.lake.slices import Partition, build_predicate
from backfill_assets.tables.declarations import Table, build_ddl
from backfill_assets.lake.warehouse import Warehouse

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
    """What the audit saw, per partition key."""

    rows: Mapping[str, int]
    checksums: Mapping[str, str]


def create_table(spark: SparkSession, warehouse: Warehouse, table: Table) -> None:
    """Creates the table, empty, unless it exists; so first writes of two runs don't race.

    Old versions stay readable for `warehouse.retention_days`: Delta's default of a week for data
    files and a month for the log would put undo out of reach.
    """
    if warehouse.exists(table):
        return
    days = warehouse.retention_days
    with hold_table_lock(warehouse, table):
        for attempt in _retry_conflicts():
            with attempt:
                spark.sql(
                    f"CREATE TABLE IF NOT EXISTS delta.`{warehouse.uri(table)}` "
                    f"({build_ddl(table.columns)}) USING DELTA "
                    f"PARTITIONED BY (`{table.partition_by}`) TBLPROPERTIES ("
                    f"'delta.logRetentionDuration' = 'interval {days} days', "
                    f"'delta.deletedFileRetentionDuration' = 'interval {days} days', "
                    f"'delta.enableInCommitTimestamps' = 'true')"
                )


def overwrite_partitions(
    frame: DataFrame,
    *,
    warehouse: Warehouse,
    table: Table,
    partitions: Sequence[Partition],
    content: PublishedContent,
    provenance: Provenance,
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

    Returns:
        The version that the commit made.

    Raises:
        ValueError: if there are no partitions, or `content` isn't about them.
        TableError: if the commit can't be found in the log afterwards.
    """
    keys = [partition.key for partition in partitions]
    if set(content.rows) != set(keys) or set(content.checksums) != set(keys):
        raise ValueError(f"{table.key}: content must describe exactly the partitions {keys}")
    predicate = build_predicate(table.partition_by, (one.slice for one in partitions))
    record = CommitRecord(
        commit_id=str(uuid.uuid4()),
        run_id=provenance.run_id,
        asset_key=table.key,
        partition_start=keys[0],
        partition_end=keys[-1],
        code_version=provenance.code_version,
        input_versions=dict(provenance.input_versions),
        write_mode="overwrite",
        predicate=predicate,
        rows=dict(content.rows),
        checksums=dict(content.checksums),
    )
    writer = (
        frame.select(*table.column_names)
        .write.format("delta")
        .mode("overwrite")
        .option("replaceWhere", predicate)
        .option("userMetadata", record.to_json())
    )
    with hold_table_lock(warehouse, table):
        for attempt in _retry_conflicts():
            with attempt:
                writer.save(warehouse.uri(table))
        # Others may have committed since, where no lock protects the table.
        commit = find_commit(read_commits(warehouse, table, limit=100), record.commit_id)
    if commit is None:
        raise TableError(
            f"{table.key}: Spark reported a commit that the log at {warehouse.uri(table)} lacks: "
            "the storage is not safe for concurrent commits"
        )
    return commit.version


def _retry_conflicts() -> Retrying:
    return Retrying(
        retry=retry_if_exception(_is_conflict),
        stop=stop_after_attempt(_CONFLICT_ATTEMPTS),
        wait=wait_random_exponential(multiplier=0.5, max=10),
        reraise=True,
    )


def _is_conflict(error: BaseException) -> bool:
    text = f"{type(error).__name__} {error}"
    return isinstance(error, PySparkException) and any(mark in text for mark in _CONFLICT_MARKS)
