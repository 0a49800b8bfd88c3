"""What partitions of a table, or of a golden data set, hold row by row: hashes, and counts.

No Spark, no Dagster. Rows are equal if their canonical values (see `contents.checksums`) are, so
floats to six decimals. Two different rows are taken for equal with a chance of 1 in 2^64.
"""

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from backfill_engine.contents.canonical_words import Hashes, Longs, canonicalize, hash_rows
from backfill_engine.contents.rows import PartitionIndex, RowBatch, StreamRows, stream_table
from backfill_engine.lake.partitions import Partition
from backfill_engine.lake.table_log import TableLog
from backfill_engine.rules.drift import Drift
from backfill_engine.tables.declarations import Table

_ROWS_AT_ONCE = 10_000_000
"""Most rows to hold of more than one partition: 0.2 to 0.9 GB, by what is done with them."""


@dataclass(frozen=True, eq=False)
class Contents:
    """What partitions hold, as hashes: 20 bytes a row, 12 without a key, whatever the columns.

    While it is read, another 8 bytes a row are taken.

    Attributes:
        table: the declaration by which the rows were read.
        stream: reads the rows again.
        partitions: ascending.
        keys: columns that identify a row within its partition; empty where rows may repeat.
        compared: columns that the row hashes are of, in declared order; those that a table lacked
            at its version are null.
        owners: per row, the index of its partition.
        key_hashes: per row, of its partition and its key; None without a key.
        row_hashes: per row, of the compared columns.
        row_counts: rows per partition.
        nulls: null values per partition, by compared column.
        histograms: an array (partitions × bins) of rows, nulls in the last bin, by the `histogram`
            of each `Drift` rule of a compared column.
    """

    table: Table
    stream: StreamRows
    partitions: tuple[Partition, ...]
    keys: tuple[str, ...]
    compared: tuple[str, ...]
    owners: NDArray[np.int32]
    key_hashes: Hashes | None
    row_hashes: Hashes
    row_counts: Longs
    nulls: Mapping[str, Longs]
    histograms: Mapping[str, Longs]

    @property
    def identities(self) -> Hashes:
        """Per row, what makes it the same row in another content: its key, else all of it."""
        return self.row_hashes if self.key_hashes is None else self.key_hashes


def read_contents(
    log: TableLog,
    partitions: Sequence[Partition],
    *,
    columns: Sequence[str] | None = None,
    keys: Sequence[str] | None = None,
) -> Contents:
    """Reads partitions of a table at a version, a batch of rows at a time; see `Contents`.

    Args:
        log: of the table, at the version to read. Declared columns that it lacked then read as
            null; columns that aren't declared aren't read.
        partitions: in any order; disjoint. Files of others aren't opened.
        columns: to compare, None for all; the keys and the partition column always are.
        keys: columns that identify a row within its partition; None for the natural key.

    Raises:
        ValueError: if a column isn't declared.
        ArrowInvalid: if a data file is missing, or unreadable (another size than the log says).
    """
    table = log.table
    keys = table.natural_key if keys is None else tuple(keys)
    wanted = {*(table.column_names if columns is None else columns), *keys, table.partition_by}
    wanted.discard("")  # Of a table without partitions.
    if undeclared := sorted(wanted - set(table.column_names)):
        raise ValueError(f"{table.key} has no columns {', '.join(undeclared)}")
    return read_rows(table, partial(stream_table, log), partitions, keys, wanted)


def split_by_rows(
    partitions: Sequence[Partition], rows: Mapping[str, int]
) -> Iterator[list[Partition]]:
    """Yields partitions in order, as many at a time as may be held; at least one.

    Args:
        partitions: what is to be read.
        rows: how many there are to hold, by key.
    """
    group: list[Partition] = []
    held = 0
    for partition in partitions:
        if group and held + rows[partition.key] > _ROWS_AT_ONCE:
            yield group
            group, held = [], 0
        group.append(partition)
        held += rows[partition.key]
    if group:
        yield group


def read_rows(
    table: Table,
    stream: StreamRows,
    partitions: Sequence[Partition],
    keys: tuple[str, ...],
    wanted: Set[str],
) -> Contents:
    """Reads partitions of a table, or of what is to be compared with it.

    Args:
        table: the declaration by which the rows are read.
        stream: reads them.
        partitions: in any order; disjoint.
        keys: columns that identify a row within its partition.
        wanted: columns to compare, the keys among them; those that aren't declared are ignored.
    """
    index = PartitionIndex(table, partitions)
    count = len(index.partitions)
    columns = [column for column in table.columns if column.name in wanted]
    names = tuple(column.name for column in columns)
    drifts = [
        rule
        for rule in table.rules
        if isinstance(rule, Drift) and {rule.column, rule.weight or rule.column} <= {*names}
    ]
    nulls = {name: np.zeros(count, np.int64) for name in names}
    histograms = {rule.histogram: np.zeros((count, rule.bins), np.int64) for rule in drifts}
    owners = [np.zeros(0, np.int32)]
    key_hashes, row_hashes = [np.zeros(0, np.uint64)], [np.zeros(0, np.uint64)]
    for batch in stream(columns, index):
        words = {name: canonicalize(batch.values[name]) for name in names}
        owners.append(batch.owners.astype(np.int32))
        row_hashes.append(hash_whole(batch, words))
        if keys:
            key_hashes.append(hash_keys(batch, words, keys, index))
        for name in names:
            if batch.values[name].null_count:
                np.add.at(nulls[name], batch.owners[_find_nulls(batch.values[name])], 1)
        for rule in drifts:
            bins = _find_bins(batch.values[rule.column], rule)
            weights = 1 if rule.weight is None else _read_weights(batch.values[rule.weight])
            np.add.at(histograms[rule.histogram], (batch.owners, bins), weights)
    joined = _join(owners)
    return Contents(
        table=table,
        stream=stream,
        partitions=index.partitions,
        keys=keys,
        compared=names,
        owners=joined,
        key_hashes=_join(key_hashes) if keys else None,
        row_hashes=_join(row_hashes),
        row_counts=np.bincount(joined, minlength=count),
        nulls=nulls,
        histograms=histograms,
    )


def hash_keys(
    batch: RowBatch, words: Mapping[str, Longs], keys: Sequence[str], index: PartitionIndex
) -> Hashes:
    """Hashes partition and key of each row, for a row that moved has another identity.

    Args:
        batch: rows.
        words: their canonical words, by column.
        keys: the key columns.
        index: of the partitions.
    """
    return hash_rows([index.starts[batch.owners], *(words[name] for name in keys)])


def hash_whole(batch: RowBatch, words: Mapping[str, Longs]) -> Hashes:
    """Hashes each row, of all columns that `words`, the canonical words of the batch, has."""
    return hash_rows([*words.values(), *_flag_constants([batch.values[name] for name in words])])


def _flag_constants(values: Sequence[pa.Array]) -> Iterator[Longs]:
    """Yields bits that tell null, NaN and infinity from the numbers with the same words."""
    for first in range(0, len(values), 64):
        flags = np.zeros(len(values[0]), np.uint64)
        for bit, each in enumerate(values[first : first + 64]):
            if pa.types.is_floating(each.type):
                # Nulls become NaN.
                flagged = ~np.isfinite(each.to_numpy(zero_copy_only=False))
            elif each.null_count:
                flagged = _find_nulls(each)
            else:
                continue
            flags |= flagged.astype(np.uint64) << np.uint64(bit)
        yield flags.view(np.int64)


def _find_nulls(values: pa.Array) -> NDArray[np.bool_]:
    return values.is_null().to_numpy(zero_copy_only=False)


def _find_bins(values: pa.Array, rule: Drift) -> Longs:
    """Finds the same bins as when Spark measures: NaN counts as larger than any number."""
    if isinstance(rule.edges[0], str):
        names = pa.array(rule.edges, values.type)
        named = pc.call_function("index_in", [values], pc.SetLookupOptions(names))
        bins = pc.fill_null(named, len(rule.edges)).to_numpy(zero_copy_only=False).astype(np.int64)
        bins[_find_nulls(values)] = rule.bins - 1
        return bins
    numbers = pc.fill_null(values.cast(pa.float64(), safe=False), 0.0)
    bins = np.searchsorted(rule.edges, numbers.to_numpy(zero_copy_only=False), side="right")
    bins[_find_nulls(values)] = rule.bins - 1
    return bins


def _read_weights(values: pa.Array) -> Longs:
    return pc.fill_null(values.cast(pa.int64()), 0).to_numpy(zero_copy_only=False)


def _join(parts: list[Any]) -> Any:
    """Forgets the parts, so that only one array is there twice at a time."""
    joined = np.concatenate(parts)
    parts.clear()
    return joined
