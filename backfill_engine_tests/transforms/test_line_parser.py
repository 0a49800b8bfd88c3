"""What Python parses of a line is what Spark's functions parse of it, value by value."""

import json
import random
from itertools import product
from typing import Any

import pytest
from pyspark.sql import SparkSession

from backfill_engine.audit_columns import FIELD_SEPARATOR, FIELDS_SEEN, REJECT_REASON, REJECTED_LINE
from backfill_engine.tables.columns import Column, required
from backfill_engine.transforms.json_lines import parse_json_lines
from backfill_engine.transforms.line_parser import LineParser, build_converter
from backfill_engine_tests.transforms.test_plain_lines import FIELDS, VALUES, draw_line

pytestmark = pytest.mark.only_spark  # Spark's functions.

TYPES = (
    *("TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "BOOLEAN", "STRING", "BINARY"),
    *("DATE", "TIMESTAMP", "TIMESTAMP_NTZ", "DECIMAL(5,2)", "DECIMAL(38,18)", "VARCHAR(3)"),
    *("ARRAY<INT>", "ARRAY<ARRAY<STRING>>", "MAP<STRING, INT>", "MAP<INT, STRING>"),
    *("STRUCT<x: INT, y: STRING>", "ARRAY<STRUCT<a: INT, b: MAP<STRING, DECIMAL(5,2)>>>"),
)
MORE_VALUES = (
    *("-128", "32768", "2147483648", "9223372036854775808", "1e39", "3.4028235e38", "1e400"),
    *("0.005", "0.50", "1e1", "1.25E-4", "1e-9999999", "0e99", "999.99", "1000", '"1e2"', '"1.5"'),
    *('"+5"', '" 5 "', '"5."', '".5"', '"TRUE"', '" true"', '"9007199254740993.0"', '"1e3"'),
    *('"2013-02-30"', '"2013-07-01T25:00"', '"2013-07-01 04:00"', '"2013-07-01T04:00:00.1234567"'),
    *('"2013-07-01T04:00:00.1+05:30"', '"2013-07-01T04:00-0800"', '"2013-07-01T04:00+19:00"'),
    *('"AP8="', '"AP8"', '"A"', '"A P 8 ="', '"%"', '"ü🙂3"', '"four"', '"\\ud83d\\ude00"'),
    *('"\\ud83d"', '"\\\\ud83d"', "[1, 2]", '["5"]', "[[null], []]", '{"1": "a", "01": "b"}'),
    *('{"a": 1, "a": 2}', '{"x": {"y": 1}}', '[{"a": 1, "b": {"k": 0.25}}]', '[{"a": 1, "c": 2}]'),
    *('{"x": 1, "y": "z"}', '{"a": null}', '"{}"', '"tab\\tand\\u0001"', "[1,", '"\t"'),
)


def parse_by_spark(spark: SparkSession, lines: list[str], fields: list[Column]) -> list[Any]:
    frame = spark.createDataFrame([(line,) for line in lines], "value STRING").coalesce(1)
    return parse_json_lines(frame, fields).collect()


def compare(spark: SparkSession, lines: list[str], fields: list[Column]) -> None:
    parser, converters = LineParser(fields, len(fields), None), [*map(build_converter, fields)]
    for row in parse_by_spark(spark, lines, fields):
        line = row[REJECTED_LINE]
        parsed = parser.parse(line, converters)
        assert parsed.reason == row[REJECT_REASON], line
        if parsed.reason is None:
            expected = [row[field.name] for field in fields]
            assert [*map(_plain, parsed.values)] == [*map(_plain, expected)], line
            seen = set(parsed.keys.split(FIELD_SEPARATOR))
            assert seen == set(row[FIELDS_SEEN].split(FIELD_SEPARATOR)), line


def _plain(value: Any) -> Any:
    """Writes a value as both have it: structs and maps as pairs, moments without UTC."""
    if hasattr(value, "asDict"):
        return _plain(value.asDict())
    if isinstance(value, dict):
        return [(name, _plain(part)) for name, part in value.items()]
    if isinstance(value, list | tuple):
        return type(value)(map(_plain, value))
    if getattr(value, "tzinfo", None):
        return value.replace(tzinfo=None)
    return bytes(value) if isinstance(value, bytearray) else value


def test_lines_are_parsed_alike(spark: SparkSession) -> None:
    drawn = random.Random(11)
    lines = [draw_line(drawn) for _ in range(3000)]
    # Where a number can't be, Spark's reader of keys gives up or not by what stands behind it.
    compare(spark, [line for line in lines if "NaN" not in line], [*FIELDS])


def test_values_of_every_type_are_parsed_alike(spark: SparkSession) -> None:
    for lenient in (False, True):
        fields = [
            Column(f"f{at}", type_, "", lenient=lenient and "<" not in type_)
            for at, type_ in enumerate(TYPES)
        ]
        lines = [
            f"{{{json.dumps(field.name)}: {value}}}"
            for field, value in product(fields, (*VALUES, *MORE_VALUES))
            if "NaN" not in value
        ]
        compare(spark, lines, fields)


def test_too_many_new_fields_are_counted_alike(spark: SparkSession) -> None:
    fields = [required("id", "INT")]
    lines = ['{"id": 1, "a": 1, "b": 2}', '{"id": 1, "a": 1, "b": 2, "c": 3}']
    frame = spark.createDataFrame([(line,) for line in lines], "value STRING")
    rows = parse_json_lines(frame, fields, max_new_fields=2).collect()
    parser = LineParser(fields, 1, 2)
    converters = [build_converter(fields[0])]
    for row in rows:
        assert parser.parse(row[REJECTED_LINE], converters).reason == row[REJECT_REASON]
