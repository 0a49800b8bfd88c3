"""Any type can land as JSON; what isn't exactly of its type is found, and nothing is rounded."""

import datetime as dt
from decimal import Decimal
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from backfill_engine.tables.column_types import parse_type
from backfill_engine.transforms.json_values import build_value, is_wrong, mark_line

pytestmark = pytest.mark.only_spark  # Spark's functions.

NESTED = "ARRAY<STRUCT<a: INT, b: MAP<STRING, DECIMAL(5,2)>>>"
RIGHT: list[tuple[str, str | None, Any]] = [
    ("DECIMAL(5,2)", "-1.50", Decimal("-1.50")),
    ("DECIMAL(5,2)", "1.5000", Decimal("1.50")),
    ("DECIMAL(5,2)", "1e1", Decimal(10)),
    ("DECIMAL(10,6)", "1.25E-4", Decimal("0.000125")),
    ("DECIMAL(38,18)", f"{10**19}.{'1' * 18}", Decimal(f"{10**19}.{'1' * 18}")),
    ("DECIMAL(38,18)", f'"{10**19}.{"1" * 18}"', Decimal(f"{10**19}.{'1' * 18}")),
    ("DECIMAL(38,18)", "1.2345678901234567E19", Decimal(12345678901234567000)),
    ("TIMESTAMP_NTZ", '"2013-03-10T02:30:00"', dt.datetime.fromisoformat("2013-03-10 02:30")),
    ("BINARY", '"AP8="', b"\0\xff"),
    ("ARRAY<INT>", "[1,null, 3]", [1, None, 3]),
    ("ARRAY<INT>", "[]", []),
    ("ARRAY<INT>", None, None),
    ("ARRAY<STRING>", '["a\\"b", "", null, "5"]', ['a"b', "", None, "5"]),
    ("ARRAY<ARRAY<BOOLEAN>>", "[[true],[],null]", [[True], [], None]),
    ("STRUCT<a: INT, b: STRING>", '{"b":"x"}', (None, "x")),
    ("STRUCT<a: DATE>", "{}", (None,)),
    ("MAP<INT, BINARY>", '{"2":"AA==","1":null}', {1: None, 2: b"\0"}),
    ("MAP<STRING, INT>", "{}", {}),
    (NESTED, '[{"a":1,"b":{"x":0.25}},{"b":null}]', [(1, {"x": Decimal("0.25")}), (None, None)]),
]
WRONG = [
    ("DECIMAL(5,2)", "1.5E-3"),
    ("DECIMAL(38,18)", "1.2345678901234567E20"),
    ("DECIMAL(5,2)", "1.0000000000000000000000001"),
    ("TIMESTAMP_NTZ", '"2013-03-10 02:30:00.5 +01:00"'),
    ("BINARY", '"%"'),
    ("ARRAY<STRING>", '["a", 5]'),
    ("ARRAY<STRING>", '[{"c":1}]'),
    ("ARRAY<INT>", '["5"]'),
    ("STRUCT<a: STRING>", '{"a":true}'),
    ("MAP<STRING, DOUBLE>", '{"a":"1.5"}'),
    ("ARRAY<INT>", '[1,"x"]'),
    ("ARRAY<INT>", "1"),
    ("ARRAY<INT>", '{"a":1}'),
    ("ARRAY<INT>", '"[1]"'),
    ("ARRAY<ARRAY<INT>>", "[[1],2]"),
    ("STRUCT<a: INT>", '{"a":1,"b":2}'),
    ("STRUCT<a: INT>", '{"a":1,"a":1}'),
    ("STRUCT<a: INT>", '{"a":"x"}'),
    ("STRUCT<a: INT>", "[1]"),
    ("STRUCT<a: INT>", '"text"'),
    ("STRUCT<a: INT>", '"{}"'),
    ("MAP<STRING, INT>", '{"a":1,"a":2}'),
    ("MAP<STRING, INT>", '{"a":"x"}'),
    ("MAP<INT, INT>", '{"1":1,"01":2}'),
    ("MAP<INT, INT>", '{"x":1}'),
    ("MAP<STRING, INT>", "[1]"),
    (NESTED, '[{"a":1,"b":{"x":0.255}}]'),
    (NESTED, '[{"a":1,"c":1}]'),
]


@pytest.fixture(scope="module")
def found(spark: SparkSession) -> dict[tuple[str, str | None, bool], tuple[Any, bool]]:
    """The value of each text as its type, and whether it is wrong; by whether it is lenient."""
    cases = [(type_, text, False) for type_, text, _ in RIGHT]
    cases += [(type_, text, False) for type_, text in WRONG]
    cases += [(type_, text, True) for type_, text, _ in LENIENT]
    texts = spark.createDataFrame([(text,) for _, text, _ in cases], "text STRING").coalesce(1)
    line = mark_line(F.concat(F.lit('{"text":'), "text", F.lit("}")))
    texts = texts.select(
        F.from_json(line, "text STRING")["text"].alias("text"),
        F.monotonically_increasing_id().alias("at"),
    )
    found: dict[tuple[str, str | None, bool], tuple[Any, bool]] = {}
    for type_, lenient in dict.fromkeys((type_, lenient) for type_, _, lenient in cases):
        parsed, text = parse_type(type_), F.col("text")
        ours = [at for at, case in enumerate(cases) if case[::2] == (type_, lenient)]
        rows = texts.where(F.col("at").isin(ours)).select(
            "at",
            build_value(text, parsed, lenient=lenient).alias("value"),
            is_wrong(text, parsed, lenient=lenient).alias("wrong"),
        )
        assert rows.schema["value"].dataType.simpleString().upper() == type_.upper().replace(
            ": ", ":"
        ).replace(", ", ",")
        found |= {cases[row.at]: (row.value, row.wrong) for row in rows.collect()}
    return found


@pytest.mark.parametrize(("type_", "text", "value"), RIGHT)
def test_a_value_of_its_type_is_taken_as_it_is(
    found: dict[tuple[str, str | None, bool], tuple[Any, bool]], type_: str, text: str, value: Any
) -> None:
    typed, wrong = found[type_, text, False]
    assert (typed, wrong) == (value, False)


LENIENT: list[tuple[str, str, Any]] = [
    ("INT", '" 5 "', 5),
    ("INT", '"+5"', 5),
    ("INT", "5.0", 5),
    ("INT", "5e0", 5),
    ("INT", "5.5", None),
    ("INT", '"0x5"', None),
    ("INT", "true", None),
    ("TINYINT", '"128"', None),
    ("DOUBLE", '"1.5"', 1.5),
    ("DOUBLE", '"NaN"', None),
    ("DOUBLE", '"1e999"', None),
    ("DECIMAL(5,2)", '" 1.50 "', Decimal("1.50")),
    ("DECIMAL(5,2)", '"1.505"', None),
    ("BOOLEAN", '"True"', True),
    ("BOOLEAN", "1", None),
    ("STRING", "1.10", "1.10"),
    ("STRING", "true", "true"),
    ("STRING", '{"a\\"": ["\\\\", 1.10, "x"]}', '{"a\\"":["\\\\",1.10,"x"]}'),
    ("TIMESTAMP_NTZ", '"2013-03-10"', dt.datetime.fromisoformat("2013-03-10")),
    ("TIMESTAMP_NTZ", '"10:00"', None),
    ("DATE", '"2013-03-10"', dt.date(2013, 3, 10)),
    ("DATE", '"10:00"', None),
    ("ARRAY<INT>", '["5", 6.0]', [5, 6]),
]


@pytest.mark.parametrize(("type_", "text", "value"), LENIENT)
def test_a_lenient_field_takes_what_can_be_converted_without_loss(
    found: dict[tuple[str, str | None, bool], tuple[Any, bool]], type_: str, text: str, value: Any
) -> None:
    assert found[type_, text, True] == (value, value is None)


@pytest.mark.parametrize(("type_", "text"), WRONG)
def test_a_value_that_is_not_wholly_of_its_type_is_found(
    found: dict[tuple[str, str | None, bool], tuple[Any, bool]], type_: str, text: str
) -> None:
    _, wrong = found[type_, text, False]
    assert wrong is True
