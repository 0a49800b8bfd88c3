"""What Arrow reads of a batch of lines is what the parser parses of each of them."""

import random
from itertools import product
from typing import Any

import pyarrow as pa
import pytest

from backfill_engine.audit_columns import FIELDS_SEEN
from backfill_engine.tables.columns import Column, required
from backfill_engine.transforms.line_batches import BatchReader
from backfill_engine.transforms.line_parser import LineParser, build_converter
from backfill_engine_tests.transforms.test_line_parser import MORE_VALUES
from backfill_engine_tests.transforms.test_plain_lines import NAMES, VALUES, draw_line

TYPES = {
    "BOOLEAN": pa.bool_(),
    "TINYINT": pa.int8(),
    "SMALLINT": pa.int16(),
    "INT": pa.int32(),
    "BIGINT": pa.int64(),
    "FLOAT": pa.float32(),
    "DOUBLE": pa.float64(),
    "STRING": pa.string(),
    "VARCHAR(3)": pa.string(),
    "BINARY": pa.binary(),
    "DATE": pa.date32(),
    "TIMESTAMP": pa.timestamp("us", "UTC"),
    "TIMESTAMP_NTZ": pa.timestamp("us"),
}
FIELDS = (
    required("id", "INT"),
    Column("count", "BIGINT"),
    Column("late", "BOOLEAN"),
    Column("small", "TINYINT"),
    Column("note", "STRING"),
    Column("at", "TIMESTAMP"),
    Column("degrees", "DOUBLE"),
)
GOOD = '{"id":3,"count":4,"late":true,"small":5,"note":"x","at":null,"degrees":1.5}'


def read(lines: list[str], fields: tuple[Column, ...]) -> list[list[Any]] | None:
    """The values of each line and its keys; None if the batch is left to the parser."""
    converters = [build_converter(field) for field in fields]
    schema = pa.schema([(field.name, TYPES[field.type]) for field in fields])
    found = BatchReader(fields, converters).read(lines, schema)
    if found is None:
        return None
    columns = [found[name].to_pylist() for name in (*schema.names, FIELDS_SEEN)]
    assert [found[name].type for name in schema.names] == schema.types
    return [list(row) for row in zip(*columns, strict=True)]


def parse(lines: list[str], fields: tuple[Column, ...]) -> list[list[Any]] | None:
    """The same by the parser; None if it rejects a line."""
    converters = [build_converter(field) for field in fields]
    parser = LineParser(fields, len(fields), None)
    parsed = [parser.parse(line, converters) for line in lines]
    if any(line.reason for line in parsed):
        return None
    columns = [
        pa.array([line.values[at] for line in parsed], TYPES[field.type]).to_pylist()
        for at, field in enumerate(fields)
    ]
    rows = zip(*columns, (line.keys for line in parsed), strict=True)
    return [list(row) for row in rows]


def check(lines: list[str], fields: tuple[Column, ...]) -> bool:
    """Compares both where Arrow read anything; tells whether it did."""
    found = read(lines, fields)
    assert found is None or repr(found) == repr(parse(lines, fields)), lines
    return found is not None


def test_drawn_lines_alone_and_in_batches() -> None:
    drawn = random.Random(5)
    lines = [draw_line(drawn) for _ in range(6000)]
    alone = sum(check([line], FIELDS) for line in lines)
    assert len(lines) / 8 < alone < len(lines) / 2
    for _ in range(3000):
        check(drawn.choices([*lines, *[GOOD] * 1000], k=drawn.randint(2, 4)), FIELDS)
    for first, second in product([GOOD, *VALUES, "{", "}", "{}", f"{GOOD}{GOOD}", "\n"], repeat=2):
        check([first, second], FIELDS)
        check([first, GOOD, second, GOOD], FIELDS)


@pytest.mark.parametrize("type_", TYPES)
@pytest.mark.parametrize("colon", [":", " : "])
def test_every_value_of_every_type(type_: str, colon: str) -> None:
    fields = (Column("f", type_), Column("g", "STRING"))
    values = [value for value in (*VALUES, *MORE_VALUES, '"\\udc00"') if value]
    lines = [f'{{"f"{colon}{value}, "g": "y"}}' for value in values]
    taken = [check([line, line], fields) for line in lines]
    assert any(taken)
    assert not all(taken)


@pytest.mark.parametrize("name", NAMES)
def test_names_that_are_there_twice_or_declared_nowhere(name: str) -> None:
    for value in ("1", "null", '"a"'):
        check([GOOD.replace('"late"', f'"{name}":{value},"late"')], FIELDS)
        check([f'{{"id":1,"{name}":{value}}}', GOOD], FIELDS)


def test_what_is_declared_without_being_plain_is_left_to_the_parser() -> None:
    assert read(['{"f":1}'], (Column("f", "INT"),)) == [[1, "f"]]
    for field in (Column("f", "INT", lenient=True), Column("f", "DECIMAL(5,2)")):
        schema = pa.schema([("f", pa.int32())])
        reader = BatchReader((field,), [build_converter(field)])
        assert reader.read(['{"f":1}'], schema) is None


def test_a_missing_field_is_no_null_among_the_keys() -> None:
    fields = (Column("f", "INT"), Column("g", "INT"))
    found = read(['{"f":1,"g":2}', '{"g":null}', '{"g":3,"f":null}'], fields)
    assert found == [[1, 2, "f\x1fg"], [None, None, "g"], [None, 3, "g\x1ff"]]
