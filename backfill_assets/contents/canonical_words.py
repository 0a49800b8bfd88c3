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

from backfill_assets.contents.canonical_form import (
    FLOAT_SCALE,
    INFINITY,
    MINUS_INFINITY,
    NOT_A_NUMBER,
    NULL,
    NULL_STRING,
    SEED,
)
from backfill_assets.tables.declarations import Column

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


def find_arrow_type(column: Column) -> pa.DataType:
    """Finds what Arrow calls the column's type.

    Raises:
        TypeError: if the type has no canonical form.
    """
    if column.type not in _ARROW_TYPES:
        raise TypeError(f"no canonical form for type {column.type} of column {column.name}")
    return _ARROW_TYPES[column.type]


def canonicalize(values: pa.Array) -> Longs:
    """Computes the canonical words of a column, which `contents.checksums` describes.

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


def _hash_strings(values: pa.Array) -> Longs:
    """Hashes each distinct value of the batch once."""
    encoded = values.dictionary_encode()
    distinct = encoded.dictionary.cast(pa.binary()).to_pylist()
    hashes = [xxhash.xxh64_intdigest(value, SEED) for value in distinct]
    longs = np.array([*hashes, NULL_STRING], np.uint64).view(np.int64)
    at = pc.fill_null(encoded.indices, len(distinct)).to_numpy(zero_copy_only=False)
    return longs[at]


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
