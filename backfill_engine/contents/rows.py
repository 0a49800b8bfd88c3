"""Rows as a reader other than Spark sees them: streamed, as canonical words, hashed.

No Spark and no JVM: delta-rs and Arrow read, numpy computes. Batches come one at a time, so what is
held doesn't grow with the rows. Which partition a row belongs to, its partition column's canonical
word tells.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder

from backfill_engine.contents.canonical_words import Longs, canonicalize, find_arrow_type, hash_rows
from backfill_engine.grains.grain import SliceBound
from backfill_engine.lake.partitions import Partition, build_predicate, merge_slices
from backfill_engine.lake.table_log import TableLog
from backfill_engine.tables.declarations import Column, Table


class PartitionIndex:
    """Finds the partition that a value of the partition column belongs to.

    Args:
        table: whose partition column it is.
        partitions: in any order; disjoint.

    Attributes:
        partitions: ascending; an owner is an index into them.
        grain: of the table.
        starts: the canonical word of each one's first value, in their order.
        by: the partition column; of a table without partitions any column, as all rows belong to
            its only one.
    """

    def __init__(self, table: Table, partitions: Iterable[Partition]) -> None:
        self._is_whole = not table.partition_by
        self.by = find_column(table, table.partition_by or table.column_names[0])
        type_ = pa.int64() if self._is_whole else find_arrow_type(self.by)
        ascending = sorted(partitions, key=lambda partition: partition.slice.start)  # type: ignore[arg-type]
        self.partitions = tuple(ascending)
        self.grain = table.grain
        bounds = [(partition.slice.start, partition.slice.end) for partition in ascending]
        write = table.grain.find_stored
        self.starts = _canonicalize_bounds(type_, [write(start) for start, _ in bounds])
        # Words of texts are hashes, without an order: there a partition is its only value.
        self._ends = (
            self.starts + 1
            if pa.types.is_string(type_)
            else _canonicalize_bounds(type_, [write(end) for _, end in bounds])
        )
        self._order = np.argsort(self.starts)

    def find_owners(self, words: Longs) -> Longs:
        """Finds the owner of each canonical word; -1 for those in no partition."""
        if self._is_whole:
            return np.zeros(len(words), np.int64)
        places = np.searchsorted(self.starts, words, side="right", sorter=self._order) - 1
        owners = self._order[places]
        owners[(places < 0) | (words >= self._ends[owners])] = -1
        return owners


def find_column(table: Table, name: str) -> Column:
    """Finds the declared column of that name."""
    return table.columns[table.column_names.index(name)]


def _canonicalize_bounds(type_: pa.DataType, bounds: Sequence[SliceBound | str]) -> Longs:
    # The end of the last slice may be one more than the type can hold.
    return canonicalize(pa.array(bounds, pa.int64() if pa.types.is_integer(type_) else type_))


_BATCH_ROWS = 65_536

_READER_SETTINGS = {
    # Spark writes INT96; as nanoseconds, the default, years before 1678 and after 2261 wrap around.
    "datafusion.execution.parquet.coerce_int96": "us",
    "datafusion.execution.batch_size": str(_BATCH_ROWS),
}
# DataFusion recurses into OR; thousands of them overflow the stack, and the process is gone.
_SLICES_PER_QUERY = 100


class RowBatch(NamedTuple):
    """Some rows: the index of each one's partition, and values as declared, by column."""

    owners: Longs
    values: Mapping[str, pa.Array]


StreamRows: TypeAlias = Callable[[Sequence[Column], PartitionIndex], Iterator[RowBatch]]
"""Streams columns of the rows in the partitions of an index, more than once, in any order."""


def stream_table(
    log: TableLog, columns: Sequence[Column], index: PartitionIndex
) -> Iterator[RowBatch]:
    """Streams rows of a table at the version of its log, and opens only files of the partitions.

    Args:
        log: of the table.
        columns: to read; those that the table lacks are null, and those that it had by another name
            are read by that.
        index: of the partitions.

    Raises:
        ArrowInvalid: if a data file is missing, or unreadable.
    """
    if not index.partitions:
        return
    by = index.by
    snapshot = log.open_snapshot()
    present = read_delta_names(snapshot)
    wanted = dict.fromkeys((by, *columns))
    stored = {column: column.find_stored_name(present) for column in wanted}
    read = [column for column in wanted if stored[column]]
    names = [name for name in stored.values() if name]
    conditions = build_conditions(log.table.partition_by, index)
    for batch in stream_rows(snapshot, names, conditions):
        values = {
            column.name: kept.cast(find_arrow_type(column))
            for column, kept in zip(read, batch.columns, strict=True)
        }
        for column in wanted:
            if column.name not in values:
                values[column.name] = pa.nulls(batch.num_rows, find_arrow_type(column))
        yield RowBatch(index.find_owners(canonicalize(values[by.name])), values)


def stream_rows(
    contents: DeltaTable, names: Sequence[str], conditions: Iterable[str]
) -> Iterator[pa.RecordBatch]:
    """Streams the columns `names` of a Delta table's rows, in batches of at most 65,536 rows.

    Args:
        contents: the table, at the version to read.
        names: columns that it has.
        conditions: which rows, of `build_conditions`; an empty one for all. Files of other rows
            aren't opened.

    Raises:
        ArrowInvalid: if a data file is missing, or unreadable (another size than the log says).
    """
    select = f"SELECT {', '.join(f'`{name}`' for name in names)} FROM contents"
    reader = QueryBuilder(_READER_SETTINGS).register("contents", contents)
    for condition in conditions:
        yield from join_small(pa.RecordBatchReader.from_stream(reader.execute(select + condition)))


def join_small(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Joins batches up to the largest size: each small file is one, and each costs the same."""
    waiting, rows = list[pa.RecordBatch](), 0
    for batch in batches:
        if waiting and rows + batch.num_rows > _BATCH_ROWS:
            yield pa.concat_batches(waiting)
            waiting, rows = [], 0
        waiting.append(batch)
        rows += batch.num_rows
    if waiting:
        yield pa.concat_batches(waiting)


def read_delta_names(contents: DeltaTable) -> frozenset[str]:
    """Reads the names of the columns that a Delta table has."""
    return frozenset(field.name for field in contents.schema().fields)


def build_conditions(column: str, index: PartitionIndex) -> Iterator[str]:
    """Builds the conditions of queries that read the rows of an index, by their column.

    Without a column, as of a table without partitions, it is an empty one.
    """
    if not column:
        yield ""
        return
    slices = merge_slices(partition.slice for partition in index.partitions)
    for first in range(0, len(slices), _SLICES_PER_QUERY):
        queried = slices[first : first + _SLICES_PER_QUERY]
        yield f" WHERE {build_predicate(column, queried, index.grain)}"


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
    """Sums up rows and their hashes modulo 2^64, by owner and reader."""
    rows, hashes = Counter[tuple[int, int]](), Counter[tuple[int, int]]()
    for batch in stream_table(log, log.table.columns, index) if log.exists else ():
        words = {name: canonicalize(values) for name, values in batch.values.items()}
        of_rows = hash_rows([words[column.name] for column in log.table.columns])
        reading = readers.find_owners(words[column])
        read = reading >= 0
        pairs, of = np.unique(
            np.stack([batch.owners[read], reading[read]]), axis=1, return_inverse=True
        )
        totals = np.zeros(len(pairs.T), np.uint64)
        np.add.at(totals, of.reshape(-1), of_rows[read])
        names = [(int(owner), int(reader)) for owner, reader in pairs.T]
        rows.update(dict(zip(names, np.bincount(of.reshape(-1)).tolist(), strict=True)))
        hashes.update(dict(zip(names, totals.tolist(), strict=True)))
    return {pair: (count, hashes[pair] % 2**64) for pair, count in rows.items()}
