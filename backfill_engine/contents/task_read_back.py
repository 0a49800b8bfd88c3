"""The read-back of `contents.partition_contents` in Spark's tasks, each with some data files.

Spark carries paths there and sums back; it reads no row. Rows are read by Arrow, which needs a path
and no log, and hashed by the same numpy and XXH64 as in one process; which files there are is still
what delta-rs finds in the log.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from urllib.parse import unquote
from weakref import WeakSet

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import Row, SparkSession

from backfill_engine.contents.canonical_words import (
    Hashes,
    Longs,
    canonicalize,
    find_arrow_type,
    format_checksum,
    hash_rows,
)
from backfill_engine.contents.partition_contents import ReadBack, read_back
from backfill_engine.contents.rows import PartitionIndex
from backfill_engine.errors import SparkUnavailableError
from backfill_engine.filesystems import open_filesystem
from backfill_engine.lake.partitions import Partition, find_folder
from backfill_engine.lake.reader import SPARK_ERRORS
from backfill_engine.lake.table_log import TableLog
from backfill_engine.tables.columns import Column

_TASK_BYTES = 32 * 2**20
"""Bytes of data files that are worth a task, some seconds of it."""

_BATCH_ROWS = 65_536
_SCHEMA = "partition int, rows bigint, checksum bigint, folder string"
_UNREADABLE = -1
"""In the place of a partition, where a file of the folder is missing, broken or of another size."""

_NO_WORKERS = (
    "ModuleNotFoundError",
    "ImportError",
    "PYTHON_VERSION_MISMATCH",
    "Cannot run program",
)
_CHECKED: WeakSet[SparkSession] = WeakSet()
"""Sessions of whose workers a task has loaded all that reading takes."""


@dataclass(frozen=True)
class FileShare:
    """Some row groups of a data file; those of all its shares are the file.

    Attributes:
        path: below the table.
        size: of the whole file in bytes, as the log says.
        folder: the value of the folder column, as text: it isn't in the file.
        share: which share it is, from 0.
        shares: how many the file has.
    """

    path: str
    size: int
    folder: str
    share: int = 0
    shares: int = 1

    @property
    def bytes(self) -> int:
        """About as many as are read."""
        return self.size // self.shares


@dataclass(frozen=True)
class TableFiles:
    """What a task knows of a table whose files it reads without the log.

    Attributes:
        uri: where the table is.
        columns: that the checksum is of, in declared order.
        partition_by: the one that partitions are about.
        folder_column: the one that isn't in the files; empty if all are.
        index: of the partitions to sum; rows of others are left out.
    """

    uri: str
    columns: tuple[Column, ...]
    partition_by: str
    folder_column: str
    index: PartitionIndex


def read_back_in_tasks(
    spark: SparkSession, log: TableLog, partitions: Sequence[Partition]
) -> dict[str, ReadBack]:
    """Reads data files in tasks; what they can't, this process reads with the log.

    Args:
        spark: the session.
        log: of the table, at the version to read.
        partitions: what to read; disjoint.

    Returns:
        What `contents.partition_contents.read_back` returns.

    Raises:
        SparkUnavailableError: if Spark's workers lack what the tasks need.
    """
    table = _describe_table(log, partitions)
    folders = {partition.key: find_folder(log.table, partition) for partition in partitions}
    files = [
        FileShare(unquote(path), size, folder)
        for folder, path, size in log.list_files("path", "size_bytes")
        if folder in folders.values()
    ]
    sums = _sum_in_tasks(spark, table, _share_out(files))
    rows, checksums = Counter[int](), Counter[int]()
    for part in sums:
        rows[part.partition] += part.rows
        checksums[part.partition] += part.checksum
    found = {
        partition.key: ReadBack(rows[number], format_checksum(0, checksums[number]))
        for number, partition in enumerate(table.index.partitions)
    }
    # A folder may hold several partitions; which of them it is, the reader with the log can tell.
    unreadable = {part.folder for part in sums if part.partition == _UNREADABLE}
    suspects = [partition for partition in partitions if folders[partition.key] in unreadable]
    if suspects:
        found |= read_back(log, suspects)
    return {partition.key: found[partition.key] for partition in partitions}


def check_workers(spark: SparkSession, log: TableLog) -> None:
    """Has a task read nothing, once in a session: it loads all that reading takes.

    Args:
        spark: the session.
        log: of the table that is to be read, which need not exist yet.

    Raises:
        SparkUnavailableError: if Spark's workers lack what the tasks need.
    """
    if spark not in _CHECKED:
        _sum_in_tasks(spark, _describe_table(log, ()), [[]])
        _CHECKED.add(spark)


def _describe_table(log: TableLog, partitions: Sequence[Partition]) -> TableFiles:
    table, index = log.table, PartitionIndex(log.table, partitions)
    return TableFiles(log.uri, table.columns, index.by.name, table.folder_column, index)


def _share_out(files: Iterable[FileShare]) -> list[list[FileShare]]:
    """Shares files out among tasks of about the same number of bytes, large ones in shares."""
    shares: list[FileShare] = []
    for file in files:
        count = max(1, file.size // _TASK_BYTES)
        shares += [replace(file, share=number, shares=count) for number in range(count)]
    shares.sort(key=lambda share: share.bytes, reverse=True)
    total = sum(share.bytes for share in shares)
    count = min(-(-total // _TASK_BYTES), len(shares))
    return [shares[number::count] for number in range(count)]


def _sum_in_tasks(
    spark: SparkSession, table: TableFiles, tasks: Sequence[Sequence[FileShare]]
) -> list[Row]:
    """Sums up shares of files in tasks; returns the rows of all batches of `sum_share`."""

    def sum_tasks(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield from (sum_share(table, share) for share in tasks[number])

    frame = spark.range(0, len(tasks), 1, max(1, len(tasks))).mapInArrow(sum_tasks, _SCHEMA)
    try:
        return frame.collect()
    except SPARK_ERRORS as error:
        if not any(sign in str(error) for sign in _NO_WORKERS):
            raise
        raise SparkUnavailableError(_describe_workers(error)) from error


def sum_share(table: TableFiles, share: FileShare) -> pa.RecordBatch:
    """Sums up rows and row hashes (modulo 2^64) of a share, a row for each partition.

    Of a share that can't be read the batch has one row, `_UNREADABLE` in the partition's place.
    """
    count = len(table.index.partitions)
    rows, checksums = np.zeros(count, np.int64), np.zeros(count, np.uint64)
    try:
        for owners, hashes in _hash_share(table, share):
            np.add.at(rows, owners, 1)
            np.add.at(checksums, owners, hashes)
        held = np.flatnonzero(rows)
        rows, checksums = rows[held], checksums[held]
    except (OSError, pa.ArrowException):
        held, rows, checksums = np.array([_UNREADABLE]), np.zeros(1, int), np.zeros(1, np.uint64)
    return pa.RecordBatch.from_pydict(
        {
            "partition": pa.array(held, pa.int32()),
            "rows": rows,
            "checksum": checksums.view(np.int64),
            "folder": pa.repeat(share.folder, len(held)),
        }
    )


def _hash_share(table: TableFiles, share: FileShare) -> Iterator[tuple[Longs, Hashes]]:
    """Yields the partition's number and the hash of each row in one of them."""
    by = [column.name for column in table.columns].index(table.partition_by)
    for batch in _stream_share(table, share):
        words = [
            canonicalize(_find_values(batch, column, table, share)) for column in table.columns
        ]
        owners, hashes = table.index.find_owners(words[by]), hash_rows(words)
        within = owners >= 0
        yield owners[within], hashes[within]


def _stream_share(table: TableFiles, share: FileShare) -> Iterator[pa.RecordBatch]:
    filesystem, base = open_filesystem(table.uri)
    path = f"{base}/{share.path}"
    size = filesystem.get_file_info(path).size
    if size != share.size:
        raise OSError(f"{path} has {size} bytes, the log says {share.size}")
    # Spark writes INT96; as nanoseconds, the default, years before 1678 and after 2261 wrap around.
    with pq.ParquetFile(path, filesystem=filesystem, coerce_int96_timestamp_unit="us") as file:
        stored = set(file.schema_arrow.names) - {table.folder_column}
        yield from file.iter_batches(
            batch_size=_BATCH_ROWS,
            row_groups=range(file.num_row_groups)[share.share :: share.shares],
            columns=[column.name for column in table.columns if column.name in stored],
            use_threads=False,  # a task has one core
        )


def _find_values(
    batch: pa.RecordBatch, column: Column, table: TableFiles, share: FileShare
) -> pa.Array:
    """Finds a column's values: in the batch, by the folder, or null where the file is older."""
    type_ = find_arrow_type(column)
    if column.name == table.folder_column:
        return pa.repeat(pa.scalar(share.folder).cast(type_), batch.num_rows)
    if column.name not in batch.schema.names:
        return pa.nulls(batch.num_rows, type_)
    return batch.column(column.name).cast(type_)


def _describe_workers(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines()]
    cause = next(line for line in lines if any(sign in line for sign in _NO_WORKERS))
    return (
        f"Spark's workers can't read back what was published ({cause[:200]}): install this version "
        "of backfill_assets with its dependencies there, for the Python that PYSPARK_PYTHON names "
        "to them; or set BACKFILL_READ_BACK_BYTES to more than a commit has, and it is read here"
    )
