"""Whether the columns of a Parquet file are those that are declared."""

from collections.abc import Callable, Mapping, Sequence

import pyarrow as pa
from pyarrow import types

from backfill_engine.tables.column_types import ColumnType
from backfill_engine.tables.columns import Column

_FITS: Mapping[str, Callable[[pa.DataType], bool]] = {
    "BOOLEAN": types.is_boolean,
    "TINYINT": lambda found: types.is_int8(found),
    "SMALLINT": lambda found: types.is_signed_integer(found) and found.bit_width <= 16,
    "INT": lambda found: types.is_signed_integer(found) and found.bit_width <= 32,
    "BIGINT": types.is_signed_integer,
    "FLOAT": types.is_float32,
    "DOUBLE": lambda found: types.is_float64(found) or types.is_float32(found),
    "STRING": lambda found: (
        types.is_string(found) or types.is_large_string(found) or types.is_string_view(found)
    ),
    "BINARY": lambda found: types.is_binary(found) or types.is_large_binary(found),
    "DATE": types.is_date32,
    "TIMESTAMP": lambda found: types.is_timestamp(found) and found.unit in ("ms", "us"),
    "TIMESTAMP_NTZ": lambda found: (
        types.is_timestamp(found) and found.unit in ("ms", "us") and found.tz is None
    ),
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
        elif not _fits(found := schema.field(field.name).type, field.parsed_type):
            faults.append(f"has {field.name} as {found}, not {field.type}")
    return faults


def _fits(found: pa.DataType, declared: ColumnType) -> bool:
    if types.is_dictionary(found):
        found = found.value_type
    match declared.kind:
        case "DECIMAL":
            precision, scale = declared.digits
            return (
                types.is_decimal128(found) and found.precision <= precision and found.scale == scale
            )
        case "ARRAY":
            is_list = types.is_list(found) or types.is_large_list(found)
            return is_list and _fits(found.value_type, declared.parts[0])
        case "MAP":
            of_key, of_value = declared.parts
            return (
                types.is_map(found)
                and _fits(found.key_type, of_key)
                and _fits(found.item_type, of_value)
            )
        case "STRUCT":
            return types.is_struct(found) and all(
                found.get_field_index(name) >= 0 and _fits(found.field(name).type, part)
                for name, part in zip(declared.names, declared.parts, strict=True)
            )
    return _FITS[declared.kind](found)
