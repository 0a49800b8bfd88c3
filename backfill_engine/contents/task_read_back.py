"""The read-back of `contents.partition_contents` in Spark's tasks, each with some data files.

Spark carries paths there and sums back; it reads no row. Rows are read by Arrow and hashed by
numpy, as in one process, and which files there are is still what delta-rs finds in the log.
"""

import heapq
from collections.abc import Iterable, Iterator, Sequence
from weakref import WeakSet

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession

from backfill_engine.contents.canonical_words import format_checksum
from backfill_engine.contents.file_sums import FileShare, FileSums, TableFiles, sum_files
from backfill_engine.contents.partition_contents import ReadBack, read_back
from backfill_engine.contents.partition_index import PartitionIndex
from backfill_engine.errors import SparkUnavailableError
from backfill_engine.lake.partitions import Partition, find_folder
from backfill_engine.lake.reader import SPARK_ERRORS
from backfill_engine.lake.table_log import TableLog

_TASK_BYTES = 32 * 2**20
"""Bytes of data files that are worth a task, some seconds of it."""

_SCHEMA = "partition int, rows bigint, checksum bigint, unreadable string"
_ARROW_SCHEMA = pa.schema(
    [
        ("partition", pa.int32()),
        ("rows", pa.int64()),
        ("checksum", pa.int64()),
        ("unreadable", pa.string()),
    ]
)
_NO_WORKERS = (
    "ModuleNotFoundError",
    "ImportError",
    "PYTHON_VERSION_MISMATCH",
    "Cannot run program",
)
_CHECKED: WeakSet[SparkSession] = WeakSet()
"""Sessions of whose workers a task has loaded all that reading takes."""


def read_back_in_tasks(
    spark: SparkSession, log: TableLog, partitions: Sequence[Partition], files: Iterable[FileShare]
) -> dict[str, ReadBack]:
    """Reads data files in tasks; what they can't, this process reads with the log.

    Args:
        spark: the session.
        log: of the table, at the version to read.
        partitions: what to read; disjoint.
        files: all that hold rows of theirs.

    Returns:
        What `contents.partition_contents.read_back` returns.

    Raises:
        SparkUnavailableError: if Spark's workers lack what the tasks need.
    """
    table = log.table
    index = PartitionIndex(table, partitions)
    sums = _sum_in_tasks(
        spark,
        TableFiles(log.uri, table.columns, table.partition_by, table.folder_column, index),
        _share_out(files),
    )
    found = {
        partition.key: ReadBack(int(rows), format_checksum(0, int(checksum)))
        for partition, rows, checksum in zip(
            index.partitions, sums.rows, sums.checksums, strict=True
        )
    }
    # A folder may hold several partitions; which of them it is, the reader with the log can tell.
    suspects = [
        partition for partition in partitions if find_folder(table, partition) in sums.unreadable
    ]
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
    if spark in _CHECKED:
        return
    table = log.table
    nothing = PartitionIndex(table, ())
    _sum_in_tasks(
        spark,
        TableFiles(log.uri, table.columns, table.partition_by, table.folder_column, nothing),
        [[]],
    )
    _CHECKED.add(spark)


def _share_out(files: Iterable[FileShare]) -> list[list[FileShare]]:
    """Shares files out among tasks of about the same number of bytes, large ones in shares."""
    shares = sorted(
        (share for file in files for share in _split(file)),
        key=lambda share: share.size // share.shares,
        reverse=True,
    )
    total = sum(share.size // share.shares for share in shares)
    tasks: list[list[FileShare]] = [[] for _ in range(min(-(-total // _TASK_BYTES), len(shares)))]
    loads = [(0, number) for number in range(len(tasks))]
    for share in shares:
        load, number = loads[0]
        tasks[number].append(share)
        heapq.heapreplace(loads, (load + share.size // share.shares, number))
    return tasks


def _split(file: FileShare) -> Iterator[FileShare]:
    count = max(1, file.size // _TASK_BYTES)
    for number in range(count):
        yield FileShare(file.path, file.size, file.folder, number, count)


def _sum_in_tasks(
    spark: SparkSession, table: TableFiles, tasks: Sequence[Sequence[FileShare]]
) -> FileSums:
    def sum_tasks(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield _build_batch(sum_files(table, tasks[number]))

    frame = spark.range(0, len(tasks), 1, max(1, len(tasks))).mapInArrow(sum_tasks, _SCHEMA)
    try:
        found = frame.collect()
    except SPARK_ERRORS as error:
        if not any(sign in str(error) for sign in _NO_WORKERS):
            raise
        raise SparkUnavailableError(_describe_workers(error)) from error
    held = [row for row in found if row.unreadable is None]
    owners = np.array([row.partition for row in held], np.int64)
    count = len(table.index.partitions)
    rows, checksums = np.zeros(count, np.int64), np.zeros(count, np.uint64)
    np.add.at(rows, owners, np.array([row.rows for row in held], np.int64))
    np.add.at(checksums, owners, np.array([row.checksum for row in held], np.int64).view(np.uint64))
    unreadable = frozenset(row.unreadable for row in found if row.unreadable is not None)
    return FileSums(rows, checksums, unreadable)


def _build_batch(sums: FileSums) -> pa.RecordBatch:
    """Builds a row for each partition that has rows, and one for each folder with a bad file."""
    held = np.flatnonzero(sums.rows)
    bad = sorted(sums.unreadable)
    sized = [
        pa.array(held, pa.int32()),
        pa.array(sums.rows[held]),
        pa.array(sums.checksums[held].view(np.int64)),
    ]
    columns = [pa.concat_arrays([part, pa.nulls(len(bad), part.type)]) for part in sized]
    folders = pa.concat_arrays([pa.nulls(len(held), pa.string()), pa.array(bad, pa.string())])
    return pa.RecordBatch.from_arrays([*columns, folders], schema=_ARROW_SCHEMA)


def _describe_workers(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines()]
    cause = next(line for line in lines if any(sign in line for sign in _NO_WORKERS))
    return (
        f"Spark's workers can't read back what was published ({cause[:200]}): install this version "
        "of backfill_assets with its dependencies there, for the Python that PYSPARK_PYTHON names "
        "to them; or set BACKFILL_READ_BACK_BYTES to more than a commit has, and it is read here"
    )
