"""Parses JSON lines in Python: what `json_lines` does by Spark's functions, for other engines.

It is the same contract, value by value: `json_values` says what is one of a type. A test holds both
against each other.
"""

import base64
import datetime as dt
import json
import re
from collections.abc import Callable, Iterator, Sequence
from ctypes import c_float
from dataclasses import dataclass
from decimal import Context, Decimal, DecimalException
from functools import cached_property, partial
from typing import Any, NamedTuple, TypeAlias

import pyarrow as pa

from backfill_engine.audit_columns import (
    FIELD_SEPARATOR,
    FIELDS_SEEN,
    LANDED_LINE,
    REJECT_REASON,
    REJECTED_LINE,
)
from backfill_engine.engines.engine import NOT_UTF8
from backfill_engine.tables.column_types import ColumnType
from backfill_engine.tables.columns import Column
from backfill_engine.transforms.json_values import (
    DAY,
    FORMS,
    HALF,
    LARGEST_WHOLE,
    LENIENT_NUMBER,
    LIKE_A_VALUE,
    NUMBER,
    SHORT_EXPONENT,
    WHOLE,
)
from backfill_engine.transforms.line_batches import BatchReader

Convert: TypeAlias = Callable[[Any], Any]
"""Returns a JSON value as one of a type; None if it isn't one."""


class Fraction(str):
    """A number with a point or an exponent, or minus zero, as it was written."""


class Pairs(list[tuple[str, Any]]):
    """An object, with keys that are there twice."""


class WrongPartError(Exception):
    """Part of a nested value isn't of its type."""


class ParsedLine(NamedTuple):
    """A line: its values in the order of the fields, why it is rejected, and its keys."""

    values: Sequence[Any]
    reason: str | None
    keys: str


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON")


def _build_decoder(parse_int: Callable[[str], Any]) -> Callable[[str], Any]:
    return json.JSONDecoder(
        object_pairs_hook=Pairs,
        parse_int=parse_int,
        parse_float=Fraction,
        parse_constant=_refuse_constant,
    ).decode


_decode = _build_decoder(int)
_decode_exactly = _build_decoder(lambda text: Fraction(text) if text == "-0" else int(text))
_HAS_MINUS_ZERO = re.compile(r"-0\s*[],}]").search

_PAIR, _HALF = re.compile(WHOLE), re.compile(HALF)
_LIKE_A_VALUE = re.compile(LIKE_A_VALUE, re.ASCII)
_SHOWN = 40


@dataclass(frozen=True)
class LineParser:
    """Parses lines by declared fields.

    Attributes:
        fields: what a line may hold.
        declared: how many of them are declared, the first ones.
        most_new: most fields of a line beyond these; None for any number.
    """

    fields: Sequence[Column]
    declared: int
    most_new: int | None

    @cached_property
    def _names(self) -> dict[str, None]:
        return dict.fromkeys(field.name for field in self.fields)

    def parse_batches(
        self, batches: Iterator[pa.RecordBatch], schema: pa.Schema
    ) -> Iterator[pa.RecordBatch]:
        """Parses the column `value` of batches; the others are kept.

        Args:
            batches: of lines.
            schema: of what is returned: the other columns, the fields, and the audit columns.
        """
        converters = [build_converter(field) for field in self.fields]
        reader = BatchReader(self.fields, converters)
        for batch in batches:
            lines = batch.column(batch.schema.get_field_index(LANDED_LINE))
            texts = lines.to_pylist()
            if (read := reader.read(texts, schema)) is not None:
                reasons = pa.nulls(len(lines), pa.string())
                columns = {**read, REJECTED_LINE: lines, REJECT_REASON: reasons}
            else:
                columns = self._parse_each(texts, converters, schema)
            yield pa.RecordBatch.from_arrays(
                [columns[name] if name in columns else batch.column(name) for name in schema.names],
                schema=schema,
            )

    def _parse_each(
        self, lines: Sequence[str], converters: Sequence[Convert], schema: pa.Schema
    ) -> dict[str, pa.Array]:
        parsed = [self.parse(line, converters) for line in lines]
        values = {
            field.name: [line.values[at] for line in parsed] for at, field in enumerate(self.fields)
        }
        values |= {
            REJECTED_LINE: [line.removeprefix(NOT_UTF8) for line in lines],
            REJECT_REASON: [line.reason for line in parsed],
            FIELDS_SEEN: [line.keys for line in parsed],
        }
        return {name: pa.array(found, schema.field(name).type) for name, found in values.items()}

    def parse(self, line: str, converters: Sequence[Convert]) -> ParsedLine:
        """Parses one line."""
        pairs = _read_object(line)
        found = dict(pairs or ())
        keys = self._join_keys(found, pairs) if pairs is not None else ""
        if reason := self._find_fault(line, pairs, found):
            return ParsedLine([None] * len(self.fields), reason, keys)
        values: list[Any] = []
        for field, convert in zip(self.fields, converters, strict=True):
            landed = found.get(field.name)
            value = _convert(convert, landed)
            values.append(value)
            if value is None and reason is None:
                if landed is not None:
                    reason = f"`{field.name}` is not {field.type}: {_show(landed)}"
                elif not field.nullable:
                    reason = f"`{field.name}` is missing"
        return ParsedLine(values, reason, keys)

    def _find_fault(self, line: str, pairs: Pairs | None, found: dict[str, Any]) -> str | None:
        """Finds why a line is rejected whatever its values are."""
        if line.startswith(NOT_UTF8):
            return "the line is not UTF-8"
        if pairs is None:
            return "the line is not one JSON object"
        if "\\u" in line and _HALF.search(_PAIR.sub(" ", line.replace("\\\\", "  "))):
            return "a character is half there"
        if len(found) < len(pairs):
            return "a field is there twice"
        return self._find_too_many(found)

    def _join_keys(self, found: dict[str, Any], pairs: Pairs) -> str:
        if found.keys() == self._names.keys() and None not in found.values():
            return FIELD_SEPARATOR.join(self._names)
        keys = FIELD_SEPARATOR.join(name.replace(FIELD_SEPARATOR, " ") for name, _ in pairs)
        return keys.encode("utf-8", "replace").decode()  # Half a character is no text.

    def _find_too_many(self, found: dict[str, Any]) -> str | None:
        if self.most_new is None or len(found) <= self.most_new:
            return None
        new = len(found.keys() - {field.name for field in self.fields[: self.declared]})
        if new <= self.most_new:
            return None
        return f"more than {self.most_new} fields that no schema declares: {new}"


def _read_object(line: str) -> Pairs | None:
    try:
        read = _decode_exactly(line) if _HAS_MINUS_ZERO(line) else _decode(line)
    except (ValueError, RecursionError):
        return None
    return read if type(read) is Pairs else None


def _convert(convert: Convert, landed: Any) -> Any:
    try:
        return convert(landed) if landed is not None else None
    except WrongPartError:
        return None


def build_converter(field: Column) -> Convert:
    """Builds what converts the values of a field."""
    return _build(field.parsed_type, lenient=field.lenient)


def _build(type_: ColumnType, *, lenient: bool) -> Convert:
    parts = [_build(part, lenient=lenient) for part in type_.parts]
    match type_.kind:
        case "ARRAY":
            return partial(_read_array, parts[0])
        case "STRUCT":
            return partial(_read_struct, dict(zip(type_.names, parts, strict=True)))
        case "MAP":
            read_key = _build(type_.parts[0], lenient=False)
            is_text = type_.parts[0].kind in ("STRING", "BINARY", *FORMS)
            return partial(_read_map, read_key if is_text else _of_token(read_key), parts[1])
        case "STRING" if type_.digits:
            return partial(_bound, write_letters if lenient else _read_string, *type_.digits)
        case "DECIMAL":
            return partial(_read_decimal, *type_.digits, lenient)
        case kind if kind in _BITS:
            return partial(_read_integer, 2 ** (_BITS[kind] - 1), lenient)
        case kind if kind in FORMS:
            return partial(_read_time, kind, lenient)
        case "FLOAT" | "DOUBLE":
            return partial(_read_float, _narrow if type_.kind == "FLOAT" else float, lenient)
    return (_LENIENT if lenient else _STRICT)[type_.kind]


_BITS = {"TINYINT": 8, "SMALLINT": 16, "INT": 32, "BIGINT": 64}
_IS_NUMBER = re.compile(NUMBER, re.ASCII).fullmatch
_IS_LENIENT_NUMBER = re.compile(LENIENT_NUMBER.strip("^$"), re.ASCII).fullmatch
_HAS_SHORT_EXPONENT = re.compile(SHORT_EXPONENT, re.ASCII).search
_IS_ZERO = re.compile(r"[+-]?[0.]+[eE]").match
_IS_DAY = re.compile(DAY).fullmatch
_IS_OF_FORM = {kind: re.compile(form).fullmatch for kind, form in FORMS.items()}
_INSTANT = re.compile(
    r"(.{10})[T ](\d\d):(\d\d)(?::(\d\d)(?:\.(\d+))?(?:Z|([+-]\d\d):?(\d\d))?)?"
).fullmatch
_FARTHEST = dt.timedelta(hours=18)
"""From UTC, of a time zone, as Java has it."""

_EXACT = Context(prec=100)
_MOST_DIGITS = 38


def _read_string(value: Any) -> str | None:
    return value if type(value) is str else None


def _bound(read: Convert, least: int, most: int, value: Any) -> str | None:
    text = read(value)
    return text if text is not None and least <= len(text) <= most else None


def write_letters(value: Any) -> str:
    """Writes a value: the letters of a string, else its JSON."""
    match value:
        case str():
            return str(value)
        case True:
            return "true"
        case False:
            return "false"
        case None | list():
            return _write_json(value)
    return str(value)


def _write_json(value: Any) -> str:
    match value:
        case None:
            return "null"
        case Fraction():
            return str(value)
        case str():
            return json.dumps(value, ensure_ascii=False)
        case Pairs():
            pairs = (f"{_write_json(name)}:{_write_json(part)}" for name, part in value)
            return f"{{{','.join(pairs)}}}"
        case list():
            return f"[{','.join(map(_write_json, value))}]"
    return write_letters(value)


def _show(value: Any) -> str:
    letters = write_letters(value)
    is_quoted = type(value) is str and _LIKE_A_VALUE.match(letters.lower())
    return letters[:_SHOWN] + (" (a string)" if is_quoted else "")


def _read_bytes(value: Any) -> bytes | None:
    if type(value) is not str:
        return None
    body = "".join(value.split())
    letters = body.rstrip("=")
    padding = len(body) - len(letters)
    if padding > 2 or len(letters) % 4 == 1 or (padding and len(body) % 4):
        return None
    try:
        return base64.b64decode(letters + "=" * (-len(letters) % 4), validate=True)
    except ValueError:
        return None


def _read_part(convert: Convert, value: Any) -> Any:
    if value is None:
        return None
    if (found := convert(value)) is None:
        raise WrongPartError
    return found


def _read_array(convert: Convert, value: Any) -> list[Any] | None:
    if type(value) is not list:
        return None
    return [_read_part(convert, element) for element in value]


def _read_struct(converters: dict[str, Convert], value: Any) -> dict[str, Any] | None:
    if type(value) is not Pairs:
        return None
    fields = dict(value)
    if len(fields) < len(value) or not fields.keys() <= converters.keys():
        return None
    return {name: _read_part(convert, fields.get(name)) for name, convert in converters.items()}


def _read_map(read_key: Convert, convert: Convert, value: Any) -> list[tuple[Any, Any]] | None:
    if type(value) is not Pairs:
        return None
    keys = [read_key(name) for name, _ in value]
    if len({name for name, _ in value}) < len(value) or None in keys or len({*keys}) < len(keys):
        return None
    return [(key, _read_part(convert, part)) for key, (_, part) in zip(keys, value, strict=True)]


def _of_token(read: Convert) -> Convert:
    """Reads the text of a key as JSON's number or boolean."""

    def read_key(name: str) -> Any:
        try:
            token = _decode(name)
        except ValueError:
            return None
        return read(token) if token is not None else None

    return read_key


def _read_boolean(value: Any) -> bool | None:
    return value if type(value) is bool else None


def _read_boolean_leniently(value: Any) -> bool | None:
    return {"true": True, "false": False}.get(write_letters(value).strip(" ").lower())


def _read_time(kind: str, lenient: bool, value: Any) -> dt.date | None:  # noqa: FBT001
    if type(value) is not str:
        return None
    letters = value.strip(" ") if lenient else value
    try:
        if kind == "DATE":
            return dt.date.fromisoformat(letters) if _IS_DAY(letters) else None
        if lenient and _IS_DAY(letters):
            letters = f"{letters}T00:00"
        moment = _read_instant(letters) if _IS_OF_FORM[kind](letters) else None
    except (ValueError, OverflowError):
        return None
    return moment.replace(tzinfo=dt.UTC) if moment and kind == "TIMESTAMP" else moment


def _read_instant(letters: str) -> dt.datetime | None:
    # Spark reads no time zone behind minutes.
    if (parts := _INSTANT(letters)) is None:
        return None
    day, hour, minute, second, fraction, zone_hours, zone_minutes = parts.groups()
    moment = dt.datetime.combine(
        dt.date.fromisoformat(day),
        dt.time(int(hour), int(minute), int(second or 0), int(f"{fraction or 0:0<6}"[:6])),
    )
    if zone_hours is None:
        return moment
    away = dt.timedelta(hours=abs(int(zone_hours)), minutes=int(zone_minutes))
    if int(zone_minutes) > 59 or away > _FARTHEST:
        return None
    return moment + away if zone_hours.startswith("-") else moment - away


def _read_number(value: Any, *, lenient: bool, from_text: bool) -> str | None:
    """Reads the digits of a number, or of a string with one where that may be."""
    if type(value) is bool or not isinstance(value, int | str):
        return None
    letters = str(value).strip(" ") if lenient else str(value)
    if lenient:
        return letters if _IS_LENIENT_NUMBER(letters) else None
    if type(value) is str and not from_text:
        return None
    return letters if _IS_NUMBER(letters) else None


def _read_decimal(digits: int, scale: int, lenient: bool, value: Any) -> Decimal | None:  # noqa: FBT001
    letters = _read_number(value, lenient=lenient, from_text=True)
    if letters is None:
        return None
    try:
        if _IS_ZERO(letters):
            # Spark counts the zeros before the point, and takes 38 of them.
            _, zeros, exponent = _EXACT.create_decimal(letters).as_tuple()
            return Decimal(0) if len(zeros) + int(exponent) <= _MOST_DIGITS else None
        if "e" in letters.lower() and not _HAS_SHORT_EXPONENT(letters):
            return None
        number = _EXACT.create_decimal(letters)
        exact = number.quantize(Decimal(1).scaleb(-scale), context=_EXACT)
    except DecimalException:
        return None
    return exact if exact == number and abs(exact) < Decimal(10) ** (digits - scale) else None


def _read_integer(most: int, lenient: bool, value: Any) -> int | None:  # noqa: FBT001
    if value == "-0" and type(value) is Fraction:
        return 0
    if type(value) is int:
        return value if -most <= value < most else None
    if not lenient:
        return None
    letters = _read_number(value, lenient=True, from_text=True)
    if letters is None:
        return None
    if re.fullmatch(r"[+-]?[0-9]+", letters):
        number = int(letters)
    else:
        double = float(letters)
        if not double.is_integer() or abs(double) > LARGEST_WHOLE:
            return None
        number = int(double)
    return number if -most <= number < most else None


def _narrow(number: float) -> float:
    return c_float(number).value


def _read_float(narrow: Callable[[float], float], lenient: bool, value: Any) -> float | None:  # noqa: FBT001
    letters = _read_number(value, lenient=lenient, from_text=False)
    if letters is None:
        return None
    number = narrow(float(letters))
    return number if abs(number) < float("inf") else None


_STRICT: dict[str, Convert] = {
    "STRING": _read_string,
    "BOOLEAN": _read_boolean,
    "BINARY": _read_bytes,
}
_LENIENT: dict[str, Convert] = {
    "STRING": write_letters,
    "BOOLEAN": _read_boolean_leniently,
    "BINARY": _read_bytes,
}
