"""Turns a JSON value, as marked text, into one of a declared type, or finds that it isn't one.

Nothing is dropped, guessed or converted: a text of digits is no number, 5.0 no integer, a time
without its day no instant. A decimal with more digits, a time zone where none is declared, or a
field that a STRUCT doesn't declare make the whole value wrong. Bytes are Base64, and a decimal may
land as a string. What a lenient field takes beyond that, `tables.columns` says.

A line is marked first, so that a reader of texts still sees what each value was. Spark's reader
turns any value into a text where a text is asked for: a number loses its digits, and a text of
digits looks like a number. On a marked line strings and numbers are texts: a string ends with a
mark, a number begins with one, and keeps all digits. Objects, arrays, true, false and null stay as
they are.
"""

from functools import reduce
from operator import or_

from pyspark.sql import Column as SparkColumn
from pyspark.sql import functions as F

from backfill_engine.tables.column_types import ColumnType

MARK = "\x7f"
"""A character that no line needs to escape, and hardly any has."""

NUMBER = r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?"
"""A number, as JSON writes it."""

HALF = r"\\u[dD][89a-fA-F][0-9a-fA-F]{2}"
WHOLE = r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
"""A character beyond U+FFFF as JSON escapes it, in two of its halves."""

LIKE_A_VALUE = r"^\s*([+-]?[0-9]{1,20}(\.[0-9]{1,20})?|true|false)\s*$"
"""What a string may hold that could be taken for a number or a boolean."""


def mark_line(line: SparkColumn) -> SparkColumn:
    """Marks all strings that are values, and all numbers, at any depth.

    What isn't JSON doesn't become JSON by that.
    """
    marked = F.regexp_replace(_part_quotes(line), rf'"([^"]*)"|({NUMBER})', f'"$1{MARK}$2"')
    return F.regexp_replace(marked, rf'{MARK}"(\s*:)', '"$1')


def mark_plain_line(line: SparkColumn) -> SparkColumn:
    """Marks the strings of a line without escapes and marks, where no blanks follow them.

    In such a line a quotation mark before a comma or a brace ends a string. If it begins one, the
    line isn't JSON any more.
    """
    return F.replace(
        F.replace(line, F.lit('",'), F.lit(f'{MARK}",')), F.lit('"}'), F.lit(f'{MARK}"}}')
    )


def has_lone_surrogate(line: SparkColumn) -> SparkColumn:
    """Builds a BOOLEAN: whether a character is half there, which no text can hold."""
    return F.regexp_replace(_part_quotes(line), WHOLE, " ").rlike(HALF)


def is_string(text: SparkColumn) -> SparkColumn:
    """Builds a BOOLEAN: whether a marked text was a string."""
    return F.endswith(text, F.lit(MARK))


def read_string(text: SparkColumn) -> SparkColumn:
    """Reads the letters of what was a string."""
    return F.substring(text, 1, F.length(text) - 1)


def read_token(text: SparkColumn) -> SparkColumn:
    """Reads what wasn't a string: a number's digits, or else its JSON, whatever is marked in it."""
    is_number = F.startswith(text, F.lit(MARK))
    return F.when(is_number, F.substring(text, 2, 2**31 - 1)).otherwise(text)


def remove_marks(text: SparkColumn) -> SparkColumn:
    """Removes all marks from the text of a value: what is left is its letters, or its JSON."""
    parted = F.regexp_replace(_part_quotes(text), rf'"{MARK}({NUMBER})"', "$1")
    # Before a colon it is a key's own.
    unmarked = F.regexp_replace(parted, rf'{MARK}"(\s*(?:[^:\s]|$))', '"$1')
    json = F.replace(
        F.replace(unmarked, F.lit(r"\u0022"), F.lit(r"\"")), F.lit(r"\u005c"), F.lit("\\\\")
    )
    is_nested = F.startswith(text, F.lit("{")) | F.startswith(text, F.lit("["))
    return (
        F.when(is_string(text), read_string(text)).when(is_nested, json).otherwise(read_token(text))
    )


def _part_quotes(json: SparkColumn) -> SparkColumn:
    """Writes escaped backslashes and quotation marks otherwise; those left begin or end strings."""
    return F.replace(
        F.replace(json, F.lit("\\\\"), F.lit(r"\u005c")), F.lit(r"\""), F.lit(r"\u0022")
    )


_NUMBER = f"^{NUMBER}$"
_INTEGER = r"^-?[0-9]+$"
LENIENT_NUMBER = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$"
_BASE64 = r"^[A-Za-z0-9+/=\s]*$"
DAY = r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
_TIME = rf"{DAY}[T ][0-9]{{2}}:[0-9]{{2}}(:[0-9]{{2}}(\.[0-9]{{1,6}}0*)?)?"
_ZONE = r"(Z|[+-][0-9]{2}:?[0-9]{2})?"
FORMS = {"DATE": DAY, "TIMESTAMP": _TIME + _ZONE, "TIMESTAMP_NTZ": _TIME}
"""As ISO 8601 has it; the T may be a blank."""

SHORT_EXPONENT = r"[eE][+-]?[0-9]{1,6}$"
INTEGERS = frozenset({"TINYINT", "SMALLINT", "INT", "BIGINT"})
LARGEST_WHOLE = 2.0**53
"""Up to this a DOUBLE is exact in its integers."""


def build_value(text: SparkColumn, type_: ColumnType, *, lenient: bool = False) -> SparkColumn:
    """Builds a column of the type; null where the text is null, or not of the type.

    Args:
        text: STRING, of a marked line: see the head of this module.
        type_: the declared type.
        lenient: whether what can be converted without loss is.
    """
    match type_.kind:
        case "STRING":
            value = remove_marks(text) if lenient else F.when(is_string(text), read_string(text))
            return F.when(F.length(value).between(*type_.digits), value) if type_.digits else value
        case "BINARY":
            letters = F.when(is_string(text), read_string(text))
            letters = F.when(letters.rlike(_BASE64), letters)
            return F.try_to_binary(letters, F.lit("base64"))
        case "ARRAY":
            (of_element,) = type_.parts
            elements = _elements(text)
            return F.transform(
                elements, lambda element: build_value(element, of_element, lenient=lenient)
            )
        case "STRUCT":
            fields = _fields(text, type_)
            parts = zip(type_.names, type_.parts, strict=True)
            values = (
                build_value(fields[name], part, lenient=lenient).alias(name) for name, part in parts
            )
            return F.when(fields.isNotNull(), F.struct(*values))
        case "MAP":
            # Spark would fail the job over keys that are null, or there twice.
            values = F.transform(
                F.map_values(_texts(text)),
                lambda element: build_value(element, type_.parts[1], lenient=lenient),
            )
            typed = F.map_from_arrays(_keys(text, type_), values)
            return F.when(~_has_wrong_keys(text, type_), typed)
    return _read_lenient(text, type_) if lenient else _read_strict(text, type_)


def is_wrong(text: SparkColumn, type_: ColumnType, *, lenient: bool = False) -> SparkColumn:
    """Builds a BOOLEAN: whether a text is there and not of the type, or part of it isn't."""
    match type_.kind:
        case "ARRAY":
            elements, (of_element,) = _elements(text), type_.parts
            wrong = F.exists(
                elements, lambda element: is_wrong(element, of_element, lenient=lenient)
            )
            return text.isNotNull() & (elements.isNull() | wrong)
        case "STRUCT":
            fields, names = _fields(text, type_), F.json_object_keys(_nested(text))
            unknown = F.exists(names, lambda name: ~name.isin(*type_.names))
            parts = zip(type_.names, type_.parts, strict=True)
            wrong = reduce(
                or_, (is_wrong(fields[name], part, lenient=lenient) for name, part in parts)
            )
            return text.isNotNull() & (names.isNull() | unknown | _repeats(names) | wrong)
        case "MAP":
            _, of_value = type_.parts
            values = F.map_values(_texts(text))
            wrong = F.exists(values, lambda value: is_wrong(value, of_value, lenient=lenient))
            return text.isNotNull() & (_has_wrong_keys(text, type_) | wrong)
    return text.isNotNull() & build_value(text, type_, lenient=lenient).isNull()


def _read_strict(text: SparkColumn, type_: ColumnType) -> SparkColumn:
    if type_.kind in FORMS:
        return F.when(is_string(text), _cast_time(read_string(text), type_))
    if type_.kind == "DECIMAL":
        letters = F.when(is_string(text), read_string(text)).otherwise(read_token(text))
        return F.when(letters.rlike(_NUMBER), _cast_decimal(letters, type_))
    token = F.when(~is_string(text), read_token(text))
    if type_.kind == "BOOLEAN":
        return F.when(token.isin("true", "false"), token == "true")
    if type_.kind in INTEGERS:
        return F.when(token.rlike(_INTEGER), token.try_cast(str(type_)))
    return F.when(token.rlike(_NUMBER), _cast_float(token, type_))


def _read_lenient(text: SparkColumn, type_: ColumnType) -> SparkColumn:
    letters = F.trim(F.when(is_string(text), read_string(text)).otherwise(read_token(text)))
    if type_.kind in FORMS:
        of_day = F.when(letters.rlike(f"^{DAY}$"), letters.try_cast(str(type_)))
        return F.when(is_string(text), F.coalesce(_cast_time(letters, type_), of_day))
    if type_.kind == "BOOLEAN":
        letters = F.lower(letters)
        return F.when(letters.isin("true", "false"), letters == "true")
    number = F.when(letters.rlike(LENIENT_NUMBER), letters)
    if type_.kind == "DECIMAL":
        return _cast_decimal(number, type_)
    if type_.kind in INTEGERS:
        double = number.try_cast("double")
        is_whole = (double == F.floor(double)) & (F.abs(double) <= LARGEST_WHOLE)
        whole = F.when(is_whole, double.try_cast(str(type_)))
        return F.coalesce(number.try_cast(str(type_)), whole)
    return _cast_float(number, type_)


def _cast_time(letters: SparkColumn, type_: ColumnType) -> SparkColumn:
    # A cast alone would take a time of day for one of today.
    return F.when(letters.rlike(f"^{FORMS[type_.kind]}$"), letters.try_cast(str(type_)))


def _cast_float(number: SparkColumn, type_: ColumnType) -> SparkColumn:
    typed = number.try_cast(str(type_))
    return F.when(F.abs(typed) < float("inf"), typed)


def _cast_decimal(number: SparkColumn, type_: ColumnType) -> SparkColumn:
    # A cast would round.
    scale = type_.digits[1]
    is_plain = number.rlike(rf"^[+-]?[0-9]*(\.[0-9]{{0,{scale}}}0*)?$")
    is_zero = number.rlike(r"^[+-]?[0.]+[eE]")
    is_exact = number.rlike(SHORT_EXPONENT) & (_count_decimals(number) <= scale)
    return F.when(is_plain | is_zero | is_exact, number.try_cast(str(type_)))


def _count_decimals(number: SparkColumn) -> SparkColumn:
    """Counts the digits behind the point of a number with an exponent, less zeros at its end."""
    exponent = F.regexp_extract(number, r"[eE]\+?(-?[0-9]+)$", 1).try_cast("int")
    fraction = F.regexp_extract(number, r"\.([0-9]*?)0*[eE]", 1)
    zeros = F.regexp_extract(number, r"(0*)(?:\.0*)?[eE]", 1)
    digits = F.when(F.length(fraction) > 0, F.length(fraction)).otherwise(-F.length(zeros))
    return digits - exponent


def _elements(text: SparkColumn) -> SparkColumn:
    nested = _nested(text)
    return F.when(F.startswith(nested, F.lit("[")), F.from_json(nested, "array<string>"))


def _fields(text: SparkColumn, type_: ColumnType) -> SparkColumn:
    ddl, nested = ", ".join(f"`{name}`: string" for name in type_.names), _nested(text)
    return F.when(F.json_object_keys(nested).isNotNull(), F.from_json(nested, f"struct<{ddl}>"))


def _texts(text: SparkColumn) -> SparkColumn:
    return F.from_json(_nested(text), "map<string, string>")


def _nested(text: SparkColumn) -> SparkColumn:
    """Builds the JSON of what wasn't a string; a string may hold some, too."""
    return F.when(~is_string(text), text)


def _keys(text: SparkColumn, type_: ColumnType) -> SparkColumn:
    """Builds the keys, which are strings in JSON, whatever their type."""
    return F.transform(F.map_keys(_texts(text)), lambda key: _build_key(key, type_.parts[0]))


def _build_key(key: SparkColumn, type_: ColumnType) -> SparkColumn:
    # A number's text is its key, and so it is no string to `build_value`.
    mark = MARK if type_.kind in ("STRING", "BINARY", *FORMS) else ""
    return build_value(F.concat(key, F.lit(mark)), type_)


def _has_wrong_keys(text: SparkColumn, type_: ColumnType) -> SparkColumn:
    names, keys = F.json_object_keys(_nested(text)), _keys(text, type_)
    wrong = _repeats(names) | F.exists(keys, lambda key: key.isNull()) | _repeats(keys)
    return names.isNull() | wrong


def _repeats(values: SparkColumn) -> SparkColumn:
    return F.size(F.array_distinct(values)) < F.size(values)
