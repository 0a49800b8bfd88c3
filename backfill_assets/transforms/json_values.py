"""Turns a JSON value, as text, into one of a declared type, or finds that it isn't one.

Nothing is dropped or guessed: a decimal with more digits, a time zone where none is declared, or a
field that a STRUCT doesn't declare make the whole value wrong. Bytes are Base64. What can't be seen
here is how Spark's reader rounded a number of over 15 digits with a point: such decimals must land
as strings.
"""

from functools import reduce
from operator import or_

from pyspark.sql import Column as SparkColumn
from pyspark.sql import functions as F

from backfill_assets.tables.column_types import ColumnType

_NUMBER = r"^-?\d+(\.\d*)?([eE][+-]?\d+)?$"
_SHORT = r"^-?\d(\.\d{0,14})?[eE][+-]?\d+$"
_ZONE = r":\d\d(\.\d*)?\s*([A-Za-z+-].*)$"


def build_value(text: SparkColumn, type_: ColumnType) -> SparkColumn:
    """Builds a column of the type; null where the text is null, or not of the type.

    Args:
        text: STRING: a text's letters, of any other value its JSON.
        type_: the declared type.
    """
    match type_.kind:
        case "STRING":
            return text
        case "BINARY":
            return F.try_to_binary(text, F.lit("base64"))
        case "ARRAY":
            (of_element,) = type_.parts
            return F.transform(_elements(text), lambda one: build_value(one, of_element))
        case "STRUCT":
            fields = _fields(text, type_)
            parts = zip(type_.names, type_.parts, strict=True)
            values = (build_value(fields[name], part).alias(name) for name, part in parts)
            return F.when(fields.isNotNull(), F.struct(*values))
        case "MAP":
            # Spark would fail the job over keys that are null, or there twice.
            typed = F.map_from_arrays(_keys(text, type_), _values(text, type_))
            return F.when(~_has_wrong_keys(text, type_), typed)
    return _cast(text, type_)


def is_wrong(text: SparkColumn, type_: ColumnType) -> SparkColumn:
    """Builds a BOOLEAN: whether a text is there and not of the type, or part of it isn't."""
    match type_.kind:
        case "STRING":
            return F.expr("false")
        case "ARRAY":
            elements, (of_element,) = _elements(text), type_.parts
            wrong = F.exists(elements, lambda one: is_wrong(one, of_element))
            return text.isNotNull() & (elements.isNull() | wrong)
        case "STRUCT":
            fields, names = _fields(text, type_), F.json_object_keys(text)
            unknown = F.size(F.array_except(names, F.array(*map(F.lit, type_.names)))) > 0
            parts = zip(type_.names, type_.parts, strict=True)
            wrong = reduce(or_, (is_wrong(fields[name], part) for name, part in parts))
            return text.isNotNull() & (names.isNull() | unknown | _repeats(names) | wrong)
        case "MAP":
            _, of_value = type_.parts
            values = F.map_values(_texts(text))
            wrong = F.exists(values, lambda one: is_wrong(one, of_value))
            return text.isNotNull() & (_has_wrong_keys(text, type_) | wrong)
    return text.isNotNull() & build_value(text, type_).isNull()


def _cast(text: SparkColumn, type_: ColumnType) -> SparkColumn:
    typed = text.try_cast(str(type_))
    if type_.kind in ("FLOAT", "DOUBLE"):
        # Spark reads "NaN", "1d" and 1e400 as numbers too, which JSON's are not.
        is_number = text.rlike(_NUMBER) & (F.abs(typed) < float("inf"))
        return F.when(is_number, typed)
    if type_.kind == "DECIMAL":
        # A cast would round. Spark passes numbers on as doubles print: small ones with an exponent,
        # and of over 15 digits not as they were, so these must land as strings.
        is_plain = text.rlike(rf"^-?\d+(\.\d{{0,{type_.digits[1]}}}0*)?$")
        is_exact = text.rlike(_SHORT) & (typed.cast("double") == text.try_cast("double"))
        return F.when(is_plain | is_exact, typed)
    if type_.kind == "TIMESTAMP_NTZ":
        return F.when(~text.rlike(_ZONE), typed)
    return typed


def _elements(text: SparkColumn) -> SparkColumn:
    return F.when(text.rlike(r"^\s*\[(?s:.*)\]\s*$"), F.from_json(text, "array<string>"))


def _fields(text: SparkColumn, type_: ColumnType) -> SparkColumn:
    ddl = ", ".join(f"`{name}`: string" for name in type_.names)
    return F.when(F.json_object_keys(text).isNotNull(), F.from_json(text, f"struct<{ddl}>"))


def _texts(text: SparkColumn) -> SparkColumn:
    return F.from_json(text, "map<string, string>")


def _keys(text: SparkColumn, type_: ColumnType) -> SparkColumn:
    return F.transform(F.map_keys(_texts(text)), lambda one: build_value(one, type_.parts[0]))


def _values(text: SparkColumn, type_: ColumnType) -> SparkColumn:
    return F.transform(F.map_values(_texts(text)), lambda one: build_value(one, type_.parts[1]))


def _has_wrong_keys(text: SparkColumn, type_: ColumnType) -> SparkColumn:
    names, keys = F.json_object_keys(text), _keys(text, type_)
    wrong = _repeats(names) | F.exists(keys, lambda one: one.isNull()) | _repeats(keys)
    return names.isNull() | wrong


def _repeats(values: SparkColumn) -> SparkColumn:
    return F.size(F.array_distinct(values)) < F.size(values)
