"""Canonical words of a column's values, and hashes of rows, as `checksums` describes them.

By numpy and an XXH64 of its own, from values as Arrow has them; Spark's side is in `checksums`.
"""

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import xxhash
from numpy.typing import NDArray

from backfill_engine.tables.column_types import MOST_DIGITS_OF_LONG, ColumnType
from backfill_engine.tables.columns import Column

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
    "BINARY": pa.binary(),
    "TIMESTAMP_NTZ": pa.timestamp("us"),
}
_P1 = np.uint64(0x9E3779B185EBCA87)
_P2 = np.uint64(0xC2B2AE3D27D4EB4F)
_P3 = np.uint64(0x165667B19E3779F9)
_P4 = np.uint64(0x85EBCA77C2B2AE63)
_P5 = np.uint64(0x27D4EB2F165667C5)


Longs: TypeAlias = NDArray[np.int64]
Hashes: TypeAlias = NDArray[np.uint64]


def find_arrow_type(column: Column) -> pa.DataType:
    """Finds what Arrow calls the column's type."""
    return _translate(column.parsed_type)


def _translate(type_: ColumnType) -> pa.DataType:
    parts = [_translate(part) for part in type_.parts]
    match type_.kind:
        case "DECIMAL":
            return pa.decimal128(*type_.digits)
        case "ARRAY":
            return pa.list_(parts[0])
        case "MAP":
            return pa.map_(parts[0], parts[1])
        case "STRUCT":
            return pa.struct(list(zip(type_.names, parts, strict=True)))
    return _ARROW_TYPES[type_.kind]


def canonicalize(values: pa.Array) -> Longs:
    """Computes the canonical words of a column, which `contents.checksums` describes.

    Args:
        values: of one of the types that `find_arrow_type` returns.
    """
    if pa.types.is_string(values.type):
        return _hash_texts(values, NULL_STRING)
    if pa.types.is_binary(values.type):
        return _hash_texts(values, NULL)
    if pa.types.is_floating(values.type):
        return _scale_floats(values)
    if pa.types.is_decimal(values.type):
        return _fill_nulls(_hash_decimals(values), values)
    if pa.types.is_nested(values.type):
        return _fill_nulls(_hash_nested(values), values)
    if pa.types.is_date(values.type):
        values = values.cast(pa.int32())
    return pc.fill_null(values.cast(pa.int64()), NULL).to_numpy(zero_copy_only=False)


def hash_rows(words: Sequence[Longs]) -> Hashes:
    """Chains XXH64 over the columns, one hash a row; the order of the columns matters."""
    hashes = _seed(len(words[0]))
    for column in words:
        hashes = _hash_longs(column.view(np.uint64), hashes)
    return hashes


def _scale_floats(values: pa.Array) -> Longs:
    """Scales floats to integers, saturated at the limits of 64 bits.

    Java's conversion, and so Spark's `floor`, saturates likewise.
    """
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


def _hash_texts(values: pa.Array, null: int) -> Longs:
    """Hashes each distinct value of the batch once."""
    encoded = values.dictionary_encode()
    distinct = encoded.dictionary.cast(pa.binary()).to_pylist()
    hashes = [xxhash.xxh64_intdigest(value, SEED) for value in distinct]
    longs = np.array([*hashes, null], np.uint64).view(np.int64)
    at = pc.fill_null(encoded.indices, len(distinct)).to_numpy(zero_copy_only=False)
    return longs[at]


def _hash_decimals(values: pa.Array) -> Longs:
    """Hashes unscaled integers, of which Arrow has the lower 8 bytes first."""
    if not len(values):
        return np.zeros(0, np.int64)  # Its buffer may be none, or of any size.
    stored = np.frombuffer(values.buffers()[1], np.int64, 2 * len(values), 16 * values.offset)
    halves = stored.reshape(-1, 2)
    if values.type.precision <= MOST_DIGITS_OF_LONG:
        return _hash_longs(halves[:, 0].view(np.uint64), _seed(len(values))).view(np.int64)
    distinct, at = np.unique(halves, axis=0, return_inverse=True)
    unscaled = [(int(upper) << 64) + (int(lower) % 2**64) for lower, upper in distinct]
    hashes = [xxhash.xxh64_intdigest(_write_shortest(number), SEED) for number in unscaled]
    return np.array(hashes, np.uint64).view(np.int64)[at.reshape(-1)]


def _write_shortest(number: int) -> bytes:
    """Writes an integer as Java's BigInteger does: in two's complement, the highest byte first."""
    bits = (number if number >= 0 else ~number).bit_length()
    return number.to_bytes(bits // 8 + 1, "big", signed=True)


def _hash_nested(values: pa.Array) -> Longs:
    if pa.types.is_struct(values.type):
        fields = [word for field in values.flatten() for word in _mark(field)]
        return hash_rows(fields).view(np.int64)
    if not pa.types.is_map(values.type):
        return _hash_lists(_measure_lists(values), _mark(values.flatten())).view(np.int64)
    entry = pa.struct([("key", values.type.key_type), ("value", values.type.item_type)])
    entries = values.cast(pa.list_(entry))
    lengths = _measure_lists(entries)
    words = [word for part in entries.flatten().flatten() for word in _mark(part)]
    order = np.lexsort((*reversed(words), np.repeat(np.arange(len(lengths)), lengths)))
    return _hash_lists(lengths, [word[order] for word in words]).view(np.int64)


def _measure_lists(values: pa.Array) -> Longs:
    lengths = pc.fill_null(pc.call_function("list_value_length", [values]), 0)
    return lengths.to_numpy(zero_copy_only=False).astype(np.int64)


def _hash_lists(lengths: Longs, words: Sequence[Longs]) -> Hashes:
    """Chains XXH64 over the size of each list and its elements' words, all lists in step."""
    hashes = _hash_longs(lengths.view(np.uint64), _seed(len(lengths)))
    starts, rows, position = np.cumsum(lengths) - lengths, np.flatnonzero(lengths), 0
    while len(rows):
        at = starts[rows] + position
        for word in words:
            hashes[rows] = _hash_longs(word[at].view(np.uint64), hashes[rows])
        position += 1
        rows = rows[lengths[rows] > position]
    return hashes


def _mark(values: pa.Array) -> tuple[Longs, Longs]:
    """Computes the two words of values inside of others: mark, and canonical value."""
    marks = np.full(len(values), IS_VALUE, np.int64)
    if pa.types.is_floating(values.type):
        marks[~np.isfinite(values.to_numpy(zero_copy_only=False))] = IS_CONSTANT
    is_null = values.is_null().to_numpy(zero_copy_only=False)
    marks[is_null] = IS_NULL
    return marks, np.where(is_null, 0, canonicalize(values))


def _fill_nulls(words: Longs, values: pa.Array) -> Longs:
    return np.where(values.is_null().to_numpy(zero_copy_only=False), NULL, words)


def _seed(count: int) -> Hashes:
    return np.full(count, SEED, np.uint64)


def _hash_longs(words: Hashes, seeds: Hashes) -> Hashes:
    """Computes XXH64 of each word's 8 bytes with its own seed.

    It is modulo 2^64, as numpy's arrays are.
    """
    mixed = (seeds + (_P5 + np.uint64(8))) ^ (_rotate(words * _P2, 31) * _P1)
    mixed = _rotate(mixed, 27) * _P1 + _P4
    mixed = (mixed ^ (mixed >> np.uint64(33))) * _P2
    mixed = (mixed ^ (mixed >> np.uint64(29))) * _P3
    return mixed ^ (mixed >> np.uint64(32))


def _rotate(values: Hashes, bits: int) -> Hashes:
    return (values << np.uint64(bits)) | (values >> np.uint64(64 - bits))


SEED = 42
FLOAT_SCALE = 6
NULL = 0x6E756C6C
NULL_STRING = SEED  # Spark's hash of a null is the seed, not null
NOT_A_NUMBER, INFINITY, MINUS_INFINITY = 0x6E616E, 0x696E66, 0x2D696E66

IS_NULL, IS_VALUE, IS_CONSTANT = 0, 1, 2
"""Marks of what stands inside of another value: null, and what isn't a finite number."""


def format_checksum(upper: int | None, lower: int | None) -> str:
    """Writes a checksum as 16 hexadecimal digits; all zero for a partition without rows."""
    return f"{(((upper or 0) << 32) + (lower or 0)) % 2**64:016x}"
