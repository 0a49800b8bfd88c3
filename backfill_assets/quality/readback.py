"""Row count and checksum of what a version of a table really holds, read without Spark.

A second implementation of the formula in `quality.checksums`, with another reader (delta-rs), other
arithmetic (numpy) and another XXH64, so that what Spark wrote isn't vouched for by Spark alone.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import xxhash
from deltalake import QueryBuilder
from numpy.typing import NDArray

from backfill_assets.lake.slices import Partition, build_predicate, merge_slices
from backfill_assets.lake.warehouse import Warehouse
from backfill_assets.quality.canonical import (
    FLOAT_SCALE,
    INFINITY,
    MINUS_INFINITY,
    NOT_A_NUMBER,
    NULL,
    NULL_STRING,
    SEED,
    format_checksum,
)
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
_INT64 = np.iinfo(np.int64)
_P1, _P2, _P3, _P4, _P5 = (
    np.uint64(prime)
    for prime in (
        0x9E3779B185EBCA87,
        0xC2B2AE3D27D4EB4F,
        0x165667B19E3779F9,
        0x85EBCA77C2B2AE63,
        0x27D4EB2F165667C5,
    )
)

_Longs = NDArray[np.int64]
_Hashes = NDArray[np.uint64]


@dataclass(frozen=True)
class ReadBack:
    """What one partition holds: its rows, and their checksum (see `quality.checksums`)."""

    rows: int
    checksum: str


UNREADABLE = ReadBack(rows=0, checksum="unreadable")
"""Of a partition of which a data file is missing or broken."""


def read_back(
    warehouse: Warehouse, table: Table, partitions: Sequence[Partition], *, version: int
) -> dict[str, ReadBack]:
    """Reads all partitions together; if that fails each alone, so that a bad one is known by name.

    Args and returns as `read_readable`; what can't be read is `UNREADABLE`.
    """
    try:
        return read_readable(warehouse, table, partitions, version=version)
    except pa.ArrowInvalid:
        if len(partitions) == 1:
            return {partitions[0].key: UNREADABLE}
    found: dict[str, ReadBack] = {}
    for one in partitions:
        found |= read_back(warehouse, table, [one], version=version)
    return found


def read_readable(
    warehouse: Warehouse, table: Table, partitions: Sequence[Partition], *, version: int
) -> dict[str, ReadBack]:
    """Reads only the files of `partitions`, and a few batches of rows at a time.

    Args:
        warehouse: where the table is.
        table: its declaration; other columns that it may have aren't read.
        partitions: what to read, in any order; disjoint.
        version: of the table.

    Returns:
        Rows and checksum per partition key, for each of `partitions`, in their order.

    Raises:
        TypeError: if a column's type has no canonical form.
        ArrowInvalid: if a data file is missing, or unreadable (another size than the log says).
    """
    if not partitions:
        return {}
    types = [_arrow_type(column) for column in table.columns]
    by = table.column_names.index(table.partition_by)
    ascending = sorted(partitions, key=lambda one: one.slice.start)  # type: ignore[arg-type]
    starts = _canonicalize(pa.array([one.slice.start for one in ascending], types[by]))
    rows = np.zeros(len(ascending), np.int64)
    sums = np.zeros(len(ascending), np.uint64)
    for batch in _stream(warehouse, table, partitions, version):
        words = [
            _canonicalize(values.cast(type_))
            for values, type_ in zip(batch.columns, types, strict=True)
        ]
        owners = np.searchsorted(starts, words[by], side="right") - 1
        np.add.at(rows, owners, 1)
        np.add.at(sums, owners, _hash_rows(words))
    found = {
        one.key: ReadBack(int(count), format_checksum(0, int(total)))
        for one, count, total in zip(ascending, rows, sums, strict=True)
    }
    return {one.key: found[one.key] for one in partitions}


def _stream(
    warehouse: Warehouse, table: Table, partitions: Sequence[Partition], version: int
) -> Iterator[pa.RecordBatch]:
    """The declared columns of the partitions' rows, in declared order."""
    names = ", ".join(f"`{name}`" for name in table.column_names)
    slices = merge_slices(one.slice for one in partitions)
    contents = warehouse.open(table, version=version)
    reader = QueryBuilder(_READER_SETTINGS).register("contents", contents)
    for first in range(0, len(slices), _SLICES_PER_QUERY):
        some = slices[first : first + _SLICES_PER_QUERY]
        predicate = build_predicate(table.partition_by, some)
        batches = reader.execute(f"SELECT {names} FROM contents WHERE {predicate}")
        yield from pa.RecordBatchReader.from_stream(batches)


def _arrow_type(column: Column) -> pa.DataType:
    if column.type not in _ARROW_TYPES:
        raise TypeError(f"no canonical form for type {column.type} of column {column.name}")
    return _ARROW_TYPES[column.type]


def _canonicalize(values: pa.Array) -> _Longs:
    if pa.types.is_string(values.type):
        return _hash_strings(values)
    if pa.types.is_floating(values.type):
        return _scale_floats(values)
    if pa.types.is_date(values.type):
        values = values.cast(pa.int32())
    return pc.fill_null(values.cast(pa.int64()), NULL).to_numpy(zero_copy_only=False)


def _scale_floats(values: pa.Array) -> _Longs:
    """Saturated at the limits of 64 bits, as Java's conversion and so Spark's `floor` is."""
    floats = pc.fill_null(values.cast(pa.float64()), 0.0).to_numpy(zero_copy_only=False)
    with np.errstate(over="ignore", invalid="ignore"):
        rounded = np.floor(floats * 10.0**FLOAT_SCALE + 0.5)
        longs = rounded.astype(np.int64)
    longs[rounded >= 2.0**63] = _INT64.max
    longs[rounded < -(2.0**63)] = _INT64.min
    longs[np.isnan(floats)] = NOT_A_NUMBER
    longs[floats == np.inf] = INFINITY
    longs[floats == -np.inf] = MINUS_INFINITY
    longs[values.is_null().to_numpy(zero_copy_only=False)] = NULL
    return longs


def _hash_strings(values: pa.Array) -> _Longs:
    """Hashes each distinct value of the batch once."""
    encoded = values.dictionary_encode()
    distinct = encoded.dictionary.cast(pa.binary()).to_pylist()
    hashes = [xxhash.xxh64_intdigest(value, SEED) for value in distinct]
    longs = np.array([*hashes, NULL_STRING], np.uint64).view(np.int64)
    at = pc.fill_null(encoded.indices, len(distinct)).to_numpy(zero_copy_only=False)
    return longs[at]


def _hash_rows(words: Sequence[_Longs]) -> _Hashes:
    hashes = np.full(len(words[0]), SEED, np.uint64)
    for one in words:
        hashes = _hash_longs(one.view(np.uint64), hashes)
    return hashes


def _hash_longs(words: _Hashes, seeds: _Hashes) -> _Hashes:
    """XXH64 of each word's 8 bytes with its own seed, modulo 2^64 as numpy's arrays are."""
    mixed = (seeds + (_P5 + np.uint64(8))) ^ (_rotate(words * _P2, 31) * _P1)
    mixed = _rotate(mixed, 27) * _P1 + _P4
    mixed = (mixed ^ (mixed >> np.uint64(33))) * _P2
    mixed = (mixed ^ (mixed >> np.uint64(29))) * _P3
    return mixed ^ (mixed >> np.uint64(32))


def _rotate(values: _Hashes, bits: int) -> _Hashes:
    return (values << np.uint64(bits)) | (values >> np.uint64(64 - bits))
