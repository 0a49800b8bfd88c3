"""Rows and checksums of single data files, as a task of Spark computes them, without Spark.

The formula is the one of `contents.partition_contents`, by the same numpy and XXH64; the reader is
Arrow's, which needs a path and no log. What this module imports is all that a worker needs.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs

from backfill_engine.contents.canonical_words import Hashes, Longs, canonicalize, find_arrow_type
from backfill_engine.contents.canonical_words import hash_rows as hash_words
from backfill_engine.contents.partition_index import PartitionIndex
from backfill_engine.lake.filesystems import open_filesystem
from backfill_engine.tables.columns import Column

# Spark writes INT96; as nanoseconds, the default, years before 1678 and after 2261 wrap around.
_INT96_UNIT = "us"
_BATCH_ROWS = 65_536


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


@dataclass(frozen=True)
class TableFiles:
    """What is to be known of a table to read its files without its log.

    Attributes:
        uri: where the table is.
        columns: that the checksum is of, in declared order.
        partition_by: the one that partitions are about.
        folder_column: the one that isn't in the files.
        index: of the partitions to sum; rows of others are left out.
    """

    uri: str
    columns: tuple[Column, ...]
    partition_by: str
    folder_column: str
    index: PartitionIndex


@dataclass(frozen=True, eq=False)
class FileSums:
    """What files hold of each partition.

    Attributes:
        rows: by the partition's number in the index.
        checksums: sums of row hashes modulo 2^64, likewise.
        unreadable: folders of files that are missing, broken or of another size.
    """

    rows: Longs
    checksums: Hashes
    unreadable: frozenset[str]


def sum_files(table: TableFiles, shares: Iterable[FileShare]) -> FileSums:
    """Sums up rows and row hashes; a share of a file that can't be read is left out whole."""
    filesystem, base = open_filesystem(table.uri)
    count = len(table.index.partitions)
    rows, checksums = np.zeros(count, np.int64), np.zeros(count, np.uint64)
    unreadable: set[str] = set()
    for share in shares:
        try:
            hashed = list(_hash_share(filesystem, f"{base}/{share.path}", table, share))
        except (OSError, pa.ArrowException):
            unreadable.add(share.folder)
            continue
        for owners, hashes in hashed:
            np.add.at(rows, owners, 1)
            np.add.at(checksums, owners, hashes)
    return FileSums(rows, checksums, frozenset(unreadable))


def _hash_share(
    filesystem: fs.FileSystem, path: str, table: TableFiles, share: FileShare
) -> Iterator[tuple[Longs, Hashes]]:
    """Yields the partition's number and the hash of each row in one of them."""
    by = [column.name for column in table.columns].index(table.partition_by)
    for batch in _stream_share(filesystem, path, table, share):
        words = [
            canonicalize(_find_values(batch, column, table, share)) for column in table.columns
        ]
        owners, hashes = table.index.find_owners(words[by]), hash_words(words)
        within = owners >= 0
        yield owners[within], hashes[within]


def _stream_share(
    filesystem: fs.FileSystem, path: str, table: TableFiles, share: FileShare
) -> Iterator[pa.RecordBatch]:
    size = filesystem.get_file_info(path).size
    if size != share.size:
        raise OSError(f"{path} has {size} bytes, the log says {share.size}")
    with pq.ParquetFile(
        path, filesystem=filesystem, coerce_int96_timestamp_unit=_INT96_UNIT
    ) as file:
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
