"""What is read the fast way is read as the careful way reads it, whatever the line."""

import json
import random

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from backfill_engine.audit_columns import FIELDS_SEEN, REJECT_REASON, REJECTED_LINE
from backfill_engine.tables.declarations import Column, required
from backfill_engine.transforms import json_lines
from backfill_engine.transforms.json_lines import parse_json_lines
from backfill_engine.transforms.plain_lines import HAS_ALL, IS_PLAIN, KEYS, read_plain_lines

pytestmark = pytest.mark.only_spark  # Spark's functions.

FIELDS = (
    required("id", "INT", "Number"),
    Column("count", "BIGINT", "Number"),
    Column("late", "BOOLEAN", "Whether"),
    Column("small", "TINYINT", "Number"),
    Column("note", "STRING", "Note"),
    Column("at", "TIMESTAMP", "When"),
    Column("degrees", "DOUBLE", "Temperature"),
    Column("price", "DECIMAL(10,2)", "Price"),
    Column("tags", "ARRAY<STRING>", "Tags"),
    Column("place", "STRUCT<x: INT, y: STRING>", "Place"),
)
VALUES = (
    *("1", "-7", "0", "-0", "007", "1.0", "1e3", "99999999999", '"5"', '""', "null", "true"),
    *("false", '"true"', "NaN", '"a:b"', '"a\\u003ab"', '"a\\"b"', '"é"', "1.10", "12.345"),
    *('"2013-07-01T04:00:00Z"', '"2013-07-01"', '"not a time"', '["a", "b:c"]', "[]", "[1, null]"),
    *('{"x": 1, "y": "a:b"}', '{"x": 1, "x": 2}', '{"z": 1}', "{}", "'a'", "", "128", "300"),
)
NAMES = (*(field.name for field in FIELDS), "ID", "wind", "a:b", "id")
ENDS = ("", " ", "}", "]", ",", " 5", ' {"id": 1}', ',"end":"x"', ',"line":{"id":2}', ',"end":"."}')
GOOD = {"id": "3", "count": "4", "late": "true", "small": "5", "note": '"x"', "degrees": "1.5"}


def draw_line(drawn: random.Random) -> str:
    """Draws a line that is often nearly right."""
    record = [(name, value) for name, value in GOOD.items() if drawn.random() < 0.7]
    for _ in range(drawn.choice((0, 0, 1, 1, 2, 4))):
        record.insert(drawn.randint(0, len(record)), (drawn.choice(NAMES), drawn.choice(VALUES)))
    colon = drawn.choice((":", ":", " : ", ": "))
    text = ",".join(f"{json.dumps(name)}{colon}{value}" for name, value in record)
    begin = drawn.choice(("{",) * 12 + ("", "[", '{"line":{', "{{", " {"))
    return begin + text + "}" + (drawn.choice(ENDS) if drawn.random() < 0.3 else "")


def read_nothing_fast(lines: DataFrame, fields: tuple[Column, ...]) -> DataFrame:
    """What finds no line plain, so that all are read carefully."""
    read = read_plain_lines(lines, fields)
    none = F.expr("false")
    return read.withColumns({HAS_ALL: none, IS_PLAIN: none, KEYS: F.json_object_keys("value")})


def test_lines_are_read_as_the_careful_way_reads_them(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn = random.Random(7)
    full = json.dumps({field.name: None for field in FIELDS})
    lines = [
        *(draw_line(drawn) for _ in range(6000)),
        *VALUES,
        full,
        *(f'{{"id": {value}, "note": {other}}}' for value in VALUES for other in VALUES),
    ]
    frame = spark.createDataFrame([(line,) for line in lines], "value STRING").repartition(2)
    fast = parse_json_lines(frame, FIELDS)
    monkeypatch.setattr(json_lines, "read_plain_lines", read_nothing_fast)
    careful = parse_json_lines(frame, FIELDS)
    # The keys' reader gives up at NaN; what has all fields is not asked for its keys.
    differing = fast.exceptAll(careful).where(f"{REJECTED_LINE} NOT LIKE '%NaN%'")
    assert differing.collect() == []
    values = [REJECTED_LINE, REJECT_REASON, *(field.name for field in FIELDS)]
    assert fast.select(*values).exceptAll(careful.select(*values)).collect() == []
    assert fast.count() == careful.count() == len(lines)
    plain = read_plain_lines(frame, FIELDS).where(IS_PLAIN).count()
    assert len(lines) / 5 < plain < len(lines) * 4 / 5


def test_a_line_with_every_field_needs_no_list_of_its_keys(spark: SparkSession) -> None:
    fields = FIELDS[:2]
    lines = ['{"count":2,"id":1}', '{"id":1}', '{"id":1,"count":2,"wind":3}', '{"id":1,"id":2}']
    frame = spark.createDataFrame([(line,) for line in lines], "value STRING")
    rows = read_plain_lines(frame, fields).collect()
    read = {row.value: (row[IS_PLAIN], row[KEYS]) for row in rows}
    assert [read[line] for line in lines] == [
        (True, None),
        (True, ["id"]),
        (True, ["id", "count", "wind"]),
        (True, ["id", "id"]),
    ]
    seen = parse_json_lines(frame.limit(1), fields).collect()[0][FIELDS_SEEN]
    assert seen.split("\x1f") == ["id", "count"]
