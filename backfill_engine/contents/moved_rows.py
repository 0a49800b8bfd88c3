"""For which partitions of a reader a table has lost or gained rows between two versions."""

from collections.abc import Iterable
from typing import TypeAlias

import numpy as np

from backfill_engine.contents.canonical_words import canonicalize, hash_rows
from backfill_engine.contents.partition_index import PartitionIndex
from backfill_engine.contents.rows import TableRows
from backfill_engine.lake.partitions import Partition
from backfill_engine.lake.table_log import TableLog

_Sums: TypeAlias = dict[tuple[int, int], tuple[int, int]]


def find_moved_rows(
    before: TableLog,
    after: TableLog,
    partitions: Iterable[Partition],
    *,
    column: str,
    readers: PartitionIndex,
) -> dict[str, set[str]]:
    """Compares partitions of a table at two versions, for each partition that reads their rows.

    Of each reader's rows in a partition the count and the checksum (`contents.checksums`) are
    compared, so a row that only changed counts as lost and gained. What is held grows with the
    pairs of partition and reader, not with the rows.

    Args:
        before: of the table, at the older version; one that doesn't exist yet has no rows.
        after: at the newer one.
        partitions: of the table; disjoint.
        column: of the table; a value of the readers' partition column, which says who reads a row.
        readers: partitions of the reading table.

    Returns:
        By key of the reading partition, the partitions that lost or gained rows of it.

    Raises:
        ArrowInvalid: if a data file is gone.
    """
    index = PartitionIndex(after.table, partitions)
    old, new = (_sum_rows(log, index, column, readers) for log in (before, after))
    moved: dict[str, set[str]] = {}
    for pair in old.keys() | new.keys():
        if old.get(pair) != new.get(pair):
            owner, reader = pair
            key = readers.partitions[reader].key
            moved.setdefault(key, set()).add(index.partitions[owner].key)
    return moved


def _sum_rows(log: TableLog, index: PartitionIndex, column: str, readers: PartitionIndex) -> _Sums:
    sums: _Sums = {}
    if not log.exists:
        return sums
    for batch in TableRows(log).stream(log.table.columns, index):
        words = {name: canonicalize(values) for name, values in batch.values.items()}
        hashes = hash_rows([words[column.name] for column in log.table.columns])
        reading = readers.find_owners(words[column])
        read = reading >= 0
        pairs, of = np.unique(
            np.stack([batch.owners[read], reading[read]]), axis=1, return_inverse=True
        )
        rows, totals = np.zeros(len(pairs.T), np.int64), np.zeros(len(pairs.T), np.uint64)
        np.add.at(rows, of.reshape(-1), 1)
        np.add.at(totals, of.reshape(-1), hashes[read])
        for pair, count, total in zip(pairs.T, rows, totals, strict=True):
            owner, reader = map(int, pair)
            counted, summed = sums.get((owner, reader), (0, 0))
            sums[owner, reader] = counted + int(count), (summed + int(total)) % 2**64
    return sums
