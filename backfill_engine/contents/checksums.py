"""A checksum of a partition's contents that doesn't depend on the order of rows or files.

Each row becomes one 64-bit hash, a partition's checksum is the sum of its rows' hashes modulo 2^64
(a sum, not an XOR, so that a row doubled is seen). Canonical values, chosen so that other readers
can compute the same:

- integers and booleans: the 64-bit integer
- dates: days since 1970-01-01; timestamps: microseconds since then, UTC; those without a time zone
  likewise, as if they were UTC
- floats: floor(value * 10^6 + 0.5), saturated at the limits of 64 bits; NaN and the infinities
  have constants of their own
- strings: XXH64 of the UTF-8 bytes, seed 42; binaries: of their bytes
- decimals: XXH64, seed 42, of the unscaled integer: up to 18 digits of its 8 bytes; beyond, of as
  few bytes as hold it with its sign, the highest first
- arrays, structs and maps: XXH64 chained, from seed 42, over 64-bit integers. What stands inside
  gives two, a mark (0 null, 1 a value, 2 NaN or an infinity) and the canonical value (0 of a null).
  An array gives its size, then its elements in order; a struct its fields in declared order; a map
  its size, then its entries as four integers, key before value, sorted by these
- null: a constant; for strings it is the seed, 42

The row's hash chains XXH64 over the columns in declared order: the hash so far seeds the next,
starting at 42 (this is Spark's `xxhash64`).
"""

import itertools

from pyspark.sql import Column as SparkColumn
from pyspark.sql import functions as F

from backfill_engine.contents.canonical_words import (
    FLOAT_SCALE,
    INFINITY,
    IS_CONSTANT,
    IS_NULL,
    IS_VALUE,
    MINUS_INFINITY,
    NOT_A_NUMBER,
    NULL,
)
from backfill_engine.contents.canonical_words import format_checksum as format_checksum
from backfill_engine.tables.column_types import ColumnType
from backfill_engine.tables.declarations import Table


def build_row_hash(table: Table) -> SparkColumn:
    """Builds the column that hashes a row of `table`, a BIGINT."""
    words = (_canonical(F.col(column.name), column.parsed_type) for column in table.columns)
    return F.xxhash64(*(F.coalesce(word, F.lit(NULL)) for word in words))


def build_checksum_parts(row_hash: SparkColumn) -> tuple[SparkColumn, SparkColumn]:
    """Builds two BIGINT sums, of the upper and the lower 32 bits.

    Neither overflows below 2^31 rows.
    """
    return F.sum(F.shiftright(row_hash, 32)), F.sum(row_hash.bitwiseAND(F.lit(0xFFFFFFFF)))


def _canonical(value: SparkColumn, type_: ColumnType) -> SparkColumn:
    match type_.kind:
        case "TINYINT" | "SMALLINT" | "INT" | "BIGINT" | "BOOLEAN":
            return value.cast("bigint")
        case "DATE":
            return F.unix_date(value).cast("bigint")
        case "TIMESTAMP":
            return F.unix_micros(value)
        case "TIMESTAMP_NTZ":
            # The session's time zone is UTC, so nothing is shifted.
            return F.unix_micros(value.cast("timestamp"))
        case "FLOAT" | "DOUBLE":
            rounded = F.floor(value.cast("double") * 10.0**FLOAT_SCALE + 0.5)
            return (
                F.when(F.isnan(value), F.lit(NOT_A_NUMBER))
                .when(value == float("inf"), F.lit(INFINITY))
                .when(value == float("-inf"), F.lit(MINUS_INFINITY))
                .otherwise(rounded)
                .cast("bigint")
            )
        case "STRING":
            return F.xxhash64(value)
        case "DECIMAL":
            return _hash_value(value, value.cast(str(type_)))
        case "BINARY":
            return _hash_value(value, value)
    return _canonical_of_parts(value, type_)


def _canonical_of_parts(value: SparkColumn, type_: ColumnType) -> SparkColumn:
    match type_.kind:
        case "ARRAY":
            (of_element,) = type_.parts
            elements = F.transform(value, lambda element: F.struct(*_mark(element, of_element)))
            return _hash_value(value, F.size(value).cast("bigint"), elements)
        case "MAP":
            of_key, of_value = type_.parts
            entries = F.transform(
                F.map_entries(value),
                lambda entry: F.struct(
                    *_mark(entry["key"], of_key), *_mark(entry["value"], of_value)
                ),
            )
            return _hash_value(value, F.size(value).cast("bigint"), F.array_sort(entries))
        case _:
            fields = zip(type_.names, type_.parts, strict=True)
            marked = (_mark(value.getField(name), of_field) for name, of_field in fields)
            return _hash_value(value, *itertools.chain.from_iterable(marked))


def _mark(value: SparkColumn, type_: ColumnType) -> tuple[SparkColumn, SparkColumn]:
    """Builds the two BIGINTs of a value inside of another: its mark, and its canonical value."""
    mark = F.when(value.isNull(), F.lit(IS_NULL))
    if type_.kind in ("FLOAT", "DOUBLE"):
        is_finite = F.abs(value) < float("inf")  # NaN is larger.
        mark = mark.when(~is_finite, F.lit(IS_CONSTANT))
    canonical = F.when(value.isNotNull(), _canonical(value, type_)).otherwise(F.lit(0))
    # Names, as the fields of all elements must have the same.
    return (
        mark.otherwise(F.lit(IS_VALUE)).cast("bigint").alias("mark"),
        canonical.cast("bigint").alias("word"),
    )


def _hash_value(value: SparkColumn, *parts: SparkColumn) -> SparkColumn:
    return F.when(value.isNotNull(), F.xxhash64(*parts))
