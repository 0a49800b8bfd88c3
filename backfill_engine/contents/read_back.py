"""Row count and checksum of what a version of a table really holds, read without Spark.

A second implementation of the formula in `contents.checksums`, with another reader (delta-rs),
other arithmetic (numpy) and another XXH64, so that what Spark wrote isn't vouched for by Spark
alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pyarrow as pa

from backfill_engine.contents.canonical_form import format_checksum
from backfill_engine.contents.canonical_words import canonicalize, hash_rows
from backfill_engine.contents.partition_index import PartitionIndex
from backfill_engine.contents.rows import TableRows
from backfill_engine.lake.partitions import Partition
from backfill_engine.lake.table_log import TableLog


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
    for batch in TableRows(log).stream(table.columns, index):
        np.add.at(rows, batch.owners, 1)
        words = [canonicalize(batch.values[column.name]) for column in table.columns]
        np.add.at(sums, batch.owners, hash_rows(words))
    found = {
        partition.key: ReadBack(int(count), format_checksum(0, int(total)))
        for partition, count, total in zip(index.partitions, rows, sums, strict=True)
    }
    return {partition.key: found[partition.key] for partition in partitions}
