"""Rows as a reader other than Spark sees them: streamed, as canonical words, hashed.

No Spark and no JVM: delta-rs and Arrow read, numpy computes. Batches come one at a time, so what is
held doesn't grow with the rows.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import xxhash
from deltalake import DeltaTable, QueryBuilder
from numpy.typing import NDArray

from backfill_assets.contents.canonical_form import (
    FLOAT_SCALE,
    INFINITY,
    MINUS_INFINITY,
    NOT_A_NUMBER,
    NULL,
    NULL_STRING,
    SEED,
)
from backfill_assets.lake.slices import Partition, SliceBound, build_predicate, merge_slices
from backfill_assets.lake.table_log import TableLog
from backfill_assets.tables.declarations import Column, Table

_READER_SETTINGS = {
    # Spark writes INT96; as nanoseconds, the default, years before 1678 and after 2261 wrap around.
    "datafusion.execution.parquet.coerce_int96": "us",
    "datafusion.execution.batch_size": "65536",
}
# DataFusion recurses into OR; thousands of them overflow the stack, and the process is gone.
_SLICES_PER_QUERY = 100
_ARROW_TYPES: dict[str, pa.DataType] = {
    "TINYINT": pa.int8(),
    "SMALLINT": pa.int16(),
    "INT": pa.int32(),
    "BIGINT": pa.int64(),
    "BOOLEAN": pa.bool_(),
    "DATE": pa.date32(),
    "TIMESTAMP": pa.timestamp("us", tz="UTC"),
    "FLOAT": pa.float32(),
    "DOUBLE": pa.float64(),
    "STRING": pa.string(),
}
_P1 = np.uint64(0x9E3779B185EBCA87)
_P2 = np.uint64(0xC2B2AE3D27D4EB4F)
_P3 = np.uint64(0x165667B19E3779F9)
_P4 = np.uint64(0x85EBCA77C2B2AE63)
_P5 = np.uint64(0x27D4EB2F165667C5)

Longs: TypeAlias = NDArray[np.int64]
Hashes: TypeAlias = NDArray[np.uint64]


class PartitionIndex:
    """Finds the partition that a value of the partition column belongs to.

    Args:
        table: whose partition column it is.
        partitions: in any order; disjoint.

    Attributes:
        partitions: ascending; an owner is an index into them.
        starts: the canonical word of each one's first value.
    """

    def __init__(self, table: Table, partitions: Iterable[Partition]) -> None:
        by = find_column(table, table.partition_by)
        ascending = sorted(partitions, key=lambda partition: partition.slice.start)  # type: ignore[arg-type]
        self.partitions = tuple(ascending)
        self.starts = _canonicalize_bounds(by, [result.slice.start for result in ascending])
        self._ends = _canonicalize_bounds(by, [result.slice.end for result in ascending])

    def find_owners(self, words: Longs) -> Longs:
        """The owner of each canonical word; -1 for those in no partition."""
        owners = np.searchsorted(self.starts, words, side="right") - 1
        owners[words >= self._ends[owners]] = -1
        return owners


class RowBatch(NamedTuple):
    """Some rows: the index of each one's partition, and values as declared, by column."""

    owners: Longs
    values: Mapping[str, pa.Array]


class RowSource(Protocol):
    """Rows of a table's partitions that can be read more than once."""

    @property
    def table(self) -> Table:
        """The declaration by which they are read."""
        ...

    def stream(self, columns: Sequence[Column], index: PartitionIndex) -> Iterator[RowBatch]:
        """These columns of the rows in the partitions of `index`, in no particular order."""
        ...


@dataclass(frozen=True)
class TableRows:
    """The rows of a table of the warehouse, at the version of its log."""

    log: TableLog

    @property
    def table(self) -> Table:
        """The declaration by which they are read."""
        return self.log.table

    def read_column_names(self) -> frozenset[str]:
        """The columns that the table has at the version."""
        return read_delta_names(self.log.open_snapshot())

    def stream(self, columns: Sequence[Column], index: PartitionIndex) -> Iterator[RowBatch]:
        """A `RowSource`; opens only files of the partitions. Columns that it lacks are null.

        Raises:
            ArrowInvalid: if a data file is missing, or unreadable.
        """
        if not index.partitions:
            return
        by = find_column(self.table, self.table.partition_by)
        present = self.read_column_names()
        wanted = dict.fromkeys((by, *columns))
        read = [column for column in wanted if column.name in present]
        names = [column.name for column in read]
        snapshot, partitions = self.log.open_snapshot(), index.partitions
        for batch in stream_rows(snapshot, names, partition_by=by.name, partitions=partitions):
            values = {
                column.name: stored.cast(find_arrow_type(column))
                for column, stored in zip(read, batch.columns, strict=True)
            }
            for column in columns:
                if column.name not in values:
                    values[column.name] = pa.nulls(batch.num_rows, find_arrow_type(column))
            yield RowBatch(index.find_owners(canonicalize(values[by.name])), values)


def find_column(table: Table, name: str) -> Column:
    """The declared column of that name."""
    return table.columns[table.column_names.index(name)]


def find_arrow_type(column: Column) -> pa.DataType:
    """What Arrow calls the column's type.

    Raises:
        TypeError: if the type has no canonical form.
    """
    if column.type not in _ARROW_TYPES:
        raise TypeError(f"no canonical form for type {column.type} of column {column.name}")
    return _ARROW_TYPES[column.type]


def stream_rows(
    contents: DeltaTable,
    names: Sequence[str],
    *,
    partition_by: str,
    partitions: Iterable[Partition] | None = None,
) -> Iterator[pa.RecordBatch]:
    """The columns `names` of a Delta table's rows, in batches of at most 65,536 rows.

    Args:
        contents: the table, at the version to read.
        names: columns that it has.
        partition_by: the column that `partitions` are about.
        partitions: whose rows to read, at least one; files of others aren't opened. None for all.

    Raises:
        ArrowInvalid: if a data file is missing, or unreadable (another size than the log says).
    """
    select = f"SELECT {', '.join(f'`{name}`' for name in names)} FROM contents"
    reader = QueryBuilder(_READER_SETTINGS).register("contents", contents)
    for condition in _build_conditions(partition_by, partitions):
        yield from pa.RecordBatchReader.from_stream(reader.execute(select + condition))


def read_delta_names(contents: DeltaTable) -> frozenset[str]:
    """The columns that a Delta table has."""
    return frozenset(field.name for field in contents.schema().fields)


def canonicalize(values: pa.Array) -> Longs:
    """The canonical words of a column, which `contents.checksums` describes.

    Args:
        values: of one of the types that `find_arrow_type` returns.
    """
    if pa.types.is_string(values.type):
        return _hash_strings(values)
    if pa.types.is_floating(values.type):
        return _scale_floats(values)
    if pa.types.is_date(values.type):
        values = values.cast(pa.int32())
    return pc.fill_null(values.cast(pa.int64()), NULL).to_numpy(zero_copy_only=False)


def hash_rows(words: Sequence[Longs]) -> Hashes:
    """Chains XXH64 over the columns, one hash a row; the order of the columns matters."""
    hashes = np.full(len(words[0]), SEED, np.uint64)
    for column in words:
        hashes = _hash_longs(column.view(np.uint64), hashes)
    return hashes


def _build_conditions(partition_by: str, partitions: Iterable[Partition] | None) -> Iterator[str]:
    if partitions is None:
        yield ""
        return
    slices = merge_slices(partition.slice for partition in partitions)
    for first in range(0, len(slices), _SLICES_PER_QUERY):
        queried = slices[first : first + _SLICES_PER_QUERY]
        yield f" WHERE {build_predicate(partition_by, queried)}"


def _canonicalize_bounds(column: Column, bounds: Sequence[SliceBound]) -> Longs:
    type_ = find_arrow_type(column)
    # The end of the last slice may be one more than the type can hold.
    return canonicalize(pa.array(bounds, pa.int64() if pa.types.is_integer(type_) else type_))


def _scale_floats(values: pa.Array) -> Longs:
    """Saturated at the limits of 64 bits, as Java's conversion and so Spark's `floor` is."""
    floats = pc.fill_null(values.cast(pa.float64()), 0.0).to_numpy(zero_copy_only=False)
    with np.errstate(over="ignore", invalid="ignore"):
        rounded = np.floor(floats * 10.0**FLOAT_SCALE + 0.5)
        longs = rounded.astype(np.int64)
    longs[rounded >= 2.0**63] = np.iinfo(np.int64).max
    longs[rounded < -(2.0**63)] = np.iinfo(np.int64).min
    longs[np.isnan(floats)] = NOT_A_NUMBER
    longs[floats == np.inf] = INFINITY
    longs[floats == -np.inf] = MINUS_INFINITY
    longs[values.is_null().to_numpy(zero_copy_only=False)] = NULL
    return longs


def _hash_strings(values: pa.Array) -> Longs:
    """Hashes each distinct value of the batch once."""
    encoded = values.dictionary_encode()
    distinct = encoded.dictionary.cast(pa.binary()).to_pylist()
    hashes = [xxhash.xxh64_intdigest(value, SEED) for value in distinct]
    longs = np.array([*hashes, NULL_STRING], np.uint64).view(np.int64)
    at = pc.fill_null(encoded.indices, len(distinct)).to_numpy(zero_copy_only=False)
    return longs[at]


def _hash_longs(words: Hashes, seeds: Hashes) -> Hashes:
    """XXH64 of each word's 8 bytes with its own seed, modulo 2^64 as numpy's arrays are."""
    mixed = (seeds + (_P5 + np.uint64(8))) ^ (_rotate(words * _P2, 31) * _P1)
    mixed = _rotate(mixed, 27) * _P1 + _P4
    mixed = (mixed ^ (mixed >> np.uint64(33))) * _P2
    mixed = (mixed ^ (mixed >> np.uint64(29))) * _P3
    return mixed ^ (mixed >> np.uint64(32))


def _rotate(values: Hashes, bits: int) -> Hashes:
    return (values << np.uint64(bits)) | (values >> np.uint64(64 - bits))
