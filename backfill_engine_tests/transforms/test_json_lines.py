"""Whatever a source may put on a line becomes a row or a reason, never a guess."""

import json
from typing import Any

import pytest
from pyspark.sql import Row, SparkSession
from pyspark.testing import assertDataFrameEqual

from backfill_engine.audit_columns import (
    FIELD_SEPARATOR,
    FIELDS_SEEN,
    REJECT_REASON,
    REJECTED_LINE,
)
from backfill_engine.tables.declarations import Column, build_ddl, required
from backfill_engine.transforms.json_lines import parse_json_lines

FIELDS = (
    required("id", "INT", "Number"),
    required("name", "STRING", "Name"),
    Column("delay", "INT", "Minutes"),
    Column("note", "STRING", "Note"),
    Column("at", "TIMESTAMP", "When"),
    Column("degrees", "DOUBLE", "Temperature"),
)
NOT_ONE_OBJECT = "the line is not one JSON object"


def parse_lines(spark: SparkSession, *lines: str) -> list[Row]:
    frame = spark.createDataFrame(
        [(line, n) for n, line in enumerate(lines)], "value string, n int"
    )
    return sorted(parse_json_lines(frame, FIELDS).collect(), key=lambda row: row.n)


def test_good_lines_become_typed_rows(spark: SparkSession) -> None:
    lines = [
        ("a", '{"id": 1, "name": "x", "delay": -5, "note": "é", "at": "2013-07-01T04:00:00Z"}'),
        ("b", ' {"name":"","id":2,"delay":null}\t'),
    ]
    parsed = parse_json_lines(spark.createDataFrame(lines, "file string, value string"), FIELDS)
    seen = FIELD_SEPARATOR.join(("id", "name", "delay", "note", "at"))
    expected: list[tuple[Any, ...]] = [
        ("a", 1, "x", -5, "é", "2013-07-01 04:00:00", None, None, seen),
        ("b", 2, "", None, None, None, None, None, FIELD_SEPARATOR.join(("name", "id", "delay"))),
    ]
    columns = build_ddl(FIELDS, constraints=False).replace("`at` TIMESTAMP", "`at` STRING")
    schema = f"file STRING, {columns}, {REJECT_REASON} STRING, {FIELDS_SEEN} STRING"
    assert dict(parsed.dtypes)["at"] == "timestamp"
    assertDataFrameEqual(
        parsed.drop(REJECTED_LINE).withColumn("at", parsed["at"].cast("string")),
        spark.createDataFrame(expected, schema),
    )


@pytest.mark.parametrize(
    "line",
    [
        "no JSON",
        '{"id": 1, "name": "x"',
        '{"id": 1, "name": "x',
        '{"id": 1, "name": "x"} garbage',
        '{"id": 1, "name": "x"},',
        '{"id": 1, "name": "x"}{"id": 2, "name": "y"}',
        '{"id": 1, "name": "x"}]',
        '{"id": 1, "name": "x"}] garbage',
        '{"id": 1, "name": "x"}]{"id": 2, "name": "y"}',
        '{"id": 1, "name": "x"}][1,2',
        "{'id': 1, 'name': 'x'}",
        '{"id": 1, "name": "x"} {"id": 2, "name": "y"}',
        '{"id": 1, "name": "x"}, {"id": 2, "name": "y"}',
        '[{"id": 1, "name": "x"}]',
        "[]",
        '"x"',
        "3",
        "null",
        "\ufeff" + '{"id": 1, "name": "x"}',
    ],
)
def test_line_that_is_not_one_object_is_rejected(spark: SparkSession, line: str) -> None:
    (row,) = parse_lines(spark, line)
    assert row[REJECT_REASON] == NOT_ONE_OBJECT
    assert row[REJECTED_LINE] == line
    assert [row[field.name] for field in FIELDS] == [None] * len(FIELDS)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ('{"id": "one", "name": "x"}', "`id` is not INT: one"),
        ('{"id": 1.5, "name": "x"}', "`id` is not INT: 1.5"),
        ('{"id": 1, "name": "x", "delay": true}', "`delay` is not INT: true"),
        ('{"id": 1, "name": "x", "delay": ""}', "`delay` is not INT: "),
        ('{"id": 1, "name": "x", "delay": [3]}', "`delay` is not INT: [3]"),
        ('{"id": 1, "name": "x", "at": "yesterday"}', "`at` is not TIMESTAMP: yesterday"),
        ('{"id": 1, "name": "x", "degrees": "NaN"}', "`degrees` is not DOUBLE: NaN"),
        ('{"name": "x"}', "`id` is missing"),
        ('{"id": null, "name": "x"}', "`id` is missing"),
        ('{"id": 1}', "`name` is missing"),
        ('{"id": 1, "name": null}', "`name` is missing"),
        ('{"ID": 1, "name": "x"}', "`id` is missing"),
        ("{}", "`id` is missing"),
        (f'{{"id": "{"9" * 99}", "name": "x"}}', f"`id` is not INT: {'9' * 40}"),
    ],
)
def test_unusable_field_is_named(spark: SparkSession, line: str, reason: str) -> None:
    (row,) = parse_lines(spark, line)
    assert row[REJECT_REASON] == reason


def test_all_fields_of_a_record_are_reported_and_unknown_ones_do_not_reject(
    spark: SparkSession,
) -> None:
    rows = parse_lines(
        spark,
        '{"id": 1, "name": "x", "wind": 3, "ID": {"deep": 1}}',
        '{"id": 2, "name": "x", "gate": null}',
        '{"id": "three", "name": "x"}',
        "{",
    )
    assert [row[REJECT_REASON] is None for row in rows] == [True, True, False, False]
    assert [set(row[FIELDS_SEEN].split(FIELD_SEPARATOR)) for row in rows] == [
        {"id", "name", "wind", "ID"},
        {"id", "name", "gate"},
        {"id", "name"},
        {""},
    ]


@pytest.mark.only_spark
@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (b'{"id": 1, "name": "\xff"}', "the line is not UTF-8"),
        (b'{"id": 1, "name": "\xed\xa0\x80"}', "the line is not UTF-8"),
        (b'\xff\xfe{"id": 1, "name": "x"}', "the line is not UTF-8"),
        ('{"id": 1, "name": "é"}'.encode(), None),
    ],
)
def test_bytes_that_are_no_text_are_not_replaced_in_silence(
    spark: SparkSession, value: bytes, reason: str | None
) -> None:
    lines = spark.createDataFrame([(bytearray(value),)], "value binary")
    lines = lines.selectExpr("CAST(value AS string) AS value")
    (row,) = parse_json_lines(lines, FIELDS).select(REJECT_REASON).collect()
    assert row[REJECT_REASON] == reason


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ('{"id": 1, "name": "x", "id": 2}', "a field is there twice"),
        ('{"id": 1, "name": "x", "id": 1}', "a field is there twice"),
        ('{"id": 1, "name": "x", "wind": 1, "wind": 2}', "a field is there twice"),
        ('{"id": 1, "name": "x", "wind": {"at": 1, "id": 2}}', None),
        ('{"id": 1, "name": "x", "ID": 2}', None),
    ],
)
def test_a_field_that_is_there_twice_is_not_chosen_from(
    spark: SparkSession, line: str, reason: str | None
) -> None:
    (row,) = parse_lines(spark, line)
    assert row[REJECT_REASON] == reason


@pytest.mark.parametrize(
    ("new", "reason"), [(3, None), (4, "more than 3 fields that no schema declares: 4")]
)
def test_a_line_has_so_many_fields_beyond_the_declared_and_no_more(
    spark: SparkSession, new: int, reason: str | None
) -> None:
    record = {"id": 1, "name": "x", **{f"new_{n}": n for n in range(new)}}
    lines = spark.createDataFrame([(json.dumps(record),)], "value string")
    evolved = (*FIELDS, Column("new_0", "STRING", "New"))
    parsed = parse_json_lines(lines, evolved, declared=len(FIELDS), max_new_fields=3)
    (row,) = parsed.collect()
    assert row[REJECT_REASON] == reason
