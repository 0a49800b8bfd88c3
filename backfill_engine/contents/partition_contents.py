"""What partitions hold: rows and checksums, read in this process or in Spark's tasks.

Loads without Spark, which is imported once tasks are to read. Rows are equal if their canonical
values (see `contents.checksums`) are, so floats to six decimals. Two different rows are taken for
equal with a chance of 1 in 2^64.

This is a second implementation of the formula in `contents.checksums`, with another reader
(delta-rs), other arithmetic (numpy) and another XXH64, so that what Spark wrote isn't vouched for
by Spark alone.
"""

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np
import pyarrow as pa

from backfill_engine.contents.canonical_words import canonicalize, format_checksum, hash_rows
from backfill_engine.contents.rows import PartitionIndex, read_delta_names, stream_table
from backfill_engine.lake.partitions import Partition, find_folder
from backfill_engine.lake.table_log import TableLog

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Counted(Protocol):
    """Whatever says how many rows a partition has, and their checksum."""

    @property
    def rows(self) -> int:
        """Rows."""
        ...

    @property
    def checksum(self) -> str:
        """See `contents.checksums`."""
        ...


@dataclass(frozen=True)
class ReadBack:
    """What one partition holds: its rows, and their checksum (see `contents.checksums`)."""

    rows: int
    checksum: str

    def agrees_with(self, audited: Counted) -> bool:
        """Tells whether the same rows were audited."""
        return (self.rows, self.checksum) == (audited.rows, audited.checksum)


UNREADABLE = ReadBack(rows=0, checksum="unreadable")
"""Of a partition of which a data file is missing or broken."""


def read_back(log: TableLog, partitions: Sequence[Partition]) -> dict[str, ReadBack]:
    """Reads all partitions together; if that fails, each alone.

    So a bad one is known by name. Args and returns as `read_readable`; what can't be read is
    `UNREADABLE`.
    """
    try:
        return read_readable(log, partitions)
    except pa.ArrowInvalid:
        if len(partitions) == 1:
            return {partitions[0].key: UNREADABLE}
    found: dict[str, ReadBack] = {}
    for partition in partitions:
        found |= read_back(log, [partition])
    return found


def read_readable(log: TableLog, partitions: Sequence[Partition]) -> dict[str, ReadBack]:
    """Reads only the files of `partitions`, and a few batches of rows at a time.

    Args:
        log: of the table, at the version to read; columns that aren't declared aren't read, and
            declared ones that it lacked then are null.
        partitions: what to read, in any order; disjoint.

    Returns:
        Rows and checksum per partition key, for each of `partitions`, in their order.

    Raises:
        ArrowInvalid: if a data file is missing, or unreadable (another size than the log says).
    """
    if not partitions:
        return {}
    table = log.table
    index = PartitionIndex(table, partitions)
    rows = np.zeros(len(index.partitions), np.int64)
    sums = np.zeros(len(index.partitions), np.uint64)
    for batch in stream_table(log, table.columns, index):
        np.add.at(rows, batch.owners, 1)
        words = [canonicalize(batch.values[column.name]) for column in table.columns]
        np.add.at(sums, batch.owners, hash_rows(words))
    found = {
        partition.key: ReadBack(int(count), format_checksum(0, int(total)))
        for partition, count, total in zip(index.partitions, rows, sums, strict=True)
    }
    return {partition.key: found[partition.key] for partition in partitions}


# Of these a file is all there is of its rows: no deletion vectors, no columns that are mapped.
_PLAIN_FEATURES = frozenset({"timestampNtz", "v2Checkpoint", "vacuumProtocolCheck"})
_OUTPUT_OF_INPUT = 4
"""Most bytes that a commit is taken to have, for one of its inputs."""


@dataclass(frozen=True)
class PartitionReader:
    """Reads partitions back: large ones in Spark's tasks, where it is given a session.

    Attributes:
        open_session: gives the session, started at the first call; None where there is none.
        task_bytes: bytes of data files from which on tasks read; None for never.
    """

    open_session: "Callable[[], SparkSession] | None" = None
    task_bytes: int | None = None

    def read_back(self, log: TableLog, partitions: Sequence[Partition]) -> dict[str, ReadBack]:
        """Reads rows and checksums of partitions; only these come to this process from tasks.

        Args:
            log: of the table, at the version to read.
            partitions: what to read; disjoint.

        Returns:
            What `contents.partition_contents.read_back` returns, either way.

        Raises:
            SparkUnavailableError: if there can be no session, or Spark's workers lack what the
                tasks need.
        """
        if self.open_session is None or self.task_bytes is None or not partitions:
            return read_back(log, partitions)
        sizes = log.sum_folder_bytes()
        folders = {find_folder(log.table, partition) for partition in partitions}
        size = sum(sizes.get(folder, 0) for folder in folders)
        # Most are small: what only tasks need to know is looked up only where they read.
        if size < self.task_bytes or not _has_plain_files(log):
            return read_back(log, partitions)
        from backfill_engine.contents.task_read_back import read_back_in_tasks

        return read_back_in_tasks(self.open_session(), log, partitions)

    def read_published(self, log: TableLog, partitions: Sequence[Partition]) -> dict[str, ReadBack]:
        """Reads partitions by the columns that the table had when each was published last.

        Of these its checksum is, whatever columns were added since.

        Args:
            log: of the table, which must have published each.
            partitions: what to read; disjoint.
        """
        by_version: dict[int, list[Partition]] = defaultdict(list)
        for partition in partitions:
            version = log.publishes[partition.key].version
            by_version[max(version, log.begins_with)].append(partition)
        if not by_version or log.with_columns_of(min(by_version)) is log:
            return self.read_back(log, partitions)
        found: dict[str, ReadBack] = {}
        for version, published in by_version.items():
            found |= self.read_back(log.with_columns_of(version), published)
        return found

    def check_workers(self, log: TableLog, *, input_bytes: int) -> None:
        """Sees before a commit that tasks can read it back, if it may be one for them.

        Args:
            log: of the table, which need not exist yet.
            input_bytes: of what the commit is computed from.

        Raises:
            SparkUnavailableError: if Spark's workers lack what the tasks need.
        """
        if self.open_session is None or self.task_bytes is None:
            return
        if input_bytes * _OUTPUT_OF_INPUT < self.task_bytes:
            return
        from backfill_engine.contents.task_read_back import check_workers

        check_workers(self.open_session(), log)


IN_THIS_PROCESS = PartitionReader()
"""Reads all of it here, whatever the size."""


def _has_plain_files(log: TableLog) -> bool:
    names = read_delta_names(log.open_snapshot())
    if any(
        column.find_stored_name(names) not in (None, column.name) for column in log.table.columns
    ):
        return False  # Files of before a column was renamed.
    protocol = log.open_snapshot().protocol()
    if protocol.min_reader_version == 1:
        return True
    features = protocol.reader_features
    return features is not None and _PLAIN_FEATURES.issuperset(features)
