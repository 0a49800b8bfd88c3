"""A checksum of a partition's contents that doesn't depend on the order of rows or files.

Each row becomes one 64-bit hash, a partition's checksum is the sum of its rows' hashes modulo 2^64
(a sum, not an XOR, so that a row doubled is seen). Canonical values, chosen so that other readers
can compute the same:

- integers and booleans: the 64-bit integer
- dates: days since 1970-01-01; timestamps: microseconds since then, UTC
- floats: floor(value * 10^6 + 0.5), saturated at the limits of 64 bits; NaN and the infinities
  have constants of their own
- strings: XXH64 of the UTF-8 bytes, seed 42
- null: a constant; for strings it is the seed, 42

The row's hash chains XXH64 over the columns in declared order: the hash so far seeds the next,
starting at 42 (this is Spark's `xxhash64`).
"""

from pyspark.sql import Column as SparkColumn
from pyspark.sql import functions as F

from backfill_assets.contents.canonical_form import (
    FLOAT_SCALE,
    INFINITY,
    MINUS_INFINITY,
    NOT_A_NUMBER,
    NULL,
)
from backfill_assets.contents.canonical_form import format_checksum as format_checksum
from backfill_assets.tables.declarations import Column, Table


def build_row_hash(table: Table) -> SparkColumn:
    """Builds the column that hashes a row of `table`, a BIGINT."""
    return F.xxhash64(*(F.coalesce(_canonical(column), F.lit(NULL)) for column in table.columns))


def build_checksum_parts(row_hash: SparkColumn) -> tuple[SparkColumn, SparkColumn]:
    """Builds two BIGINT sums, of the upper and the lower 32 bits.

    Neither overflows below 2^31 rows.
    """
    return F.sum(F.shiftright(row_hash, 32)), F.sum(row_hash.bitwiseAND(F.lit(0xFFFFFFFF)))


def _canonical(column: Column) -> SparkColumn:
    value = F.col(column.name)
    match column.type:
        case "TINYINT" | "SMALLINT" | "INT" | "BIGINT" | "BOOLEAN":
            return value.cast("bigint")
        case "DATE":
            return F.unix_date(value).cast("bigint")
        case "TIMESTAMP":
            return F.unix_micros(value)
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
        case other:
            raise TypeError(f"no canonical form for type {other} of column {column.name}")
