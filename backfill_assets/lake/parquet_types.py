"""Whether the columns of a Parquet file are those that are declared."""

import re
from collections.abc import Callable, Mapping, Sequence

import pyarrow as pa
from pyarrow import types

from backfill_assets.tables.declarations import Column

_DECIMAL = re.compile(r"DECIMAL\((\d+), ?(\d+)\)")

_FITS: Mapping[str, Callable[[pa.DataType], bool]] = {
    "BOOLEAN": types.is_boolean,
    "INT": lambda found: types.is_signed_integer(found) and found.bit_width <= 32,
    "BIGINT": types.is_signed_integer,
    "FLOAT": types.is_float32,
    "DOUBLE": lambda found: types.is_float64(found) or types.is_float32(found),
    "STRING": lambda found: (
        types.is_string(found) or types.is_large_string(found) or types.is_string_view(found)
    ),
    "DATE": types.is_date32,
    "TIMESTAMP": lambda found: types.is_timestamp(found) and found.unit in ("ms", "us"),
}
"""By the declared type, the Arrow types that Spark reads as it without loss."""


def find_column_faults(schema: pa.Schema, fields: Sequence[Column]) -> list[str]:
    """Finds what is wrong with a file's columns, in words; columns beyond `fields` are none.

    Names are as they are written: one that differs by case is another. Two that differ by nothing
    else are a fault, as Spark couldn't tell them apart.
    """
    lower = [name.lower() for name in schema.names]
    faults: list[str] = []
    for field in fields:
        if field.name not in schema.names:
            faults.append(f"lacks the column {field.name}")
        elif lower.count(field.name.lower()) > 1:
            faults.append(f"has the column {field.name} more than once")
        elif not _fits(found := schema.field(field.name).type, field.type):
            faults.append(f"has {field.name} as {found}, not {field.type}")
    return faults


def _fits(found: pa.DataType, declared: str) -> bool:
    if types.is_dictionary(found):
        found = found.value_type
    if decimal := _DECIMAL.fullmatch(declared):
        precision, scale = int(decimal[1]), int(decimal[2])
        return types.is_decimal128(found) and found.precision <= precision and found.scale == scale
    fits = _FITS.get(declared)
    return fits is not None and fits(found)
