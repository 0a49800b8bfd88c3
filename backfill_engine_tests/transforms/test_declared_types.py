"""Declared types are meant: what JSON's own reader says of a value is what becomes of it.

An oracle in Python judges values that hypothesis builds, as each type. Each lands in three ways, so
that it is read the fast way, the careful one, and with blanks where most feeds have none.
"""

import datetime as dt
import json
import re
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import Phase, given, seed, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from backfill_engine.audit_columns import REJECT_REASON
from backfill_engine.tables.declarations import Column
from backfill_engine.transforms.json_lines import parse_json_lines

BITS = {"TINYINT": 8, "SMALLINT": 16, "INT": 32, "BIGINT": 64}
TYPES = (*BITS, "BOOLEAN", "DOUBLE", "DECIMAL(5,2)", "STRING", "DATE", "TIMESTAMP", "TIMESTAMP_NTZ")
TIME = r"(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d)(:\d\d(\.\d{1,6}0*)?)?"
REJECTED = "rejected"


class Number(str):
    """A number, as it is written."""


def read_json(text: str) -> Any:
    """A value as it is written; `REJECTED` for what isn't JSON."""

    def refuse(_: str) -> None:
        raise ValueError

    try:
        return json.loads(text, parse_int=Number, parse_float=Number, parse_constant=refuse)
    except (ValueError, RecursionError):
        return REJECTED


def judge(text: str, type_: str) -> Any:
    """What a strict field holds of a value, as text; None for null."""
    value = read_json(text)
    if value is None or value is REJECTED:
        return value
    if type_ in BITS:
        if not isinstance(value, Number) or not re.fullmatch(r"-?\d+", value):
            return REJECTED
        most = 2 ** (BITS[type_] - 1)
        return str(int(value)) if -most <= int(value) < most else REJECTED
    if type_ == "BOOLEAN":
        return str(value).lower() if isinstance(value, bool) else REJECTED
    if type_ == "DOUBLE":
        is_finite = isinstance(value, Number) and abs(float(value)) < float("inf")
        return repr(float(value)) if is_finite else REJECTED
    if type_ == "DECIMAL(5,2)":
        if not isinstance(value, str) or not re.fullmatch(NUMBER, value):
            return REJECTED
        exact = Decimal(value)
        fits = abs(exact) < 1000 and exact == round(exact, 2)
        return str(exact.quantize(Decimal("0.01")) or Decimal("0.00")) if fits else REJECTED
    if not isinstance(value, str) or isinstance(value, Number):
        return REJECTED
    if any("\ud800" <= letter <= "\udfff" for letter in value):
        return REJECTED
    return value if type_ == "STRING" else judge_time(value, type_)


NUMBER = r"-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?"


def judge_time(value: str, type_: str) -> str:
    zone = r"(Z|[+-]\d\d:?\d\d)?" if type_ == "TIMESTAMP" else ""
    form = r"\d{4}-\d\d-\d\d" if type_ == "DATE" else TIME + zone
    if not re.fullmatch(form, value, re.ASCII):
        return REJECTED
    try:
        if type_ == "DATE":
            return dt.date.fromisoformat(value).isoformat()
        found = dt.datetime.fromisoformat(re.sub(r"(\.\d{6})0+", r"\1", value))
    except ValueError:
        return REJECTED
    if found.tzinfo:
        found = found.astimezone(dt.UTC)
    return found.strftime("%Y-%m-%d %H:%M:%S.%f")


DIGITS = st.from_regex(r"\A[-+]?[0-9]{1,21}(\.[0-9]{0,21})?([eE][-+]?[0-9]{1,3})?\Z")
TIMES = st.from_regex(
    r"\A(20[0-9]{2}-?[01]?[0-9]-[0-3][0-9])?[T ]?"
    r"([0-2][0-9]:[0-5][0-9](:[0-6][0-9](\.[0-9]{1,7})?)?)?"
    r"(Z|\+01:00|-0530| UTC| Europe/Berlin)?\Z"
)
TEXTS = st.one_of(DIGITS, TIMES, st.text(st.characters(codec="utf-8"), max_size=8))
STRINGS = st.builds(
    lambda text, escaped: json.dumps(text, ensure_ascii=escaped), TEXTS, st.booleans()
)
NESTED = st.recursive(
    st.one_of(st.integers(-5, 5), TEXTS, st.none(), st.booleans()),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(TEXTS, inner, max_size=2),
    max_leaves=4,
).map(json.dumps)
_WORDS = r"""
true false null NaN Infinity -Infinity -0 -0.0 5.0 5e0 1e3 +5 .5 5. 07 0x10 127 128 -129 32768
2147483648 -9223372036854775808 9223372036854775808 1e999 -1e999 1.999999999999999999999 999.99
999.995 1e-9999999 12.5e1 1.25e-1 0e-5 "+5" "5" "1.5" "NaN" "Infinity" "true" "" "10:00" "T10:00"
"now" "epoch" "2013-02-30" "2013-1-1" "2013-01-01" "2013-01-01T24:00:00" "2013-01-01T10:00"
"2013-01-01T10:00:00.1234567Z" "2013-01-01T10:00:00.123456000Z" "2013-01-01T10:00:00+0100" "\u0000"
"\ud800" "\udc00\ud800" "\ud83d\ude00" "\\ud800" "a\"b\\" "x," "}x" 'a' [] {} [5] ["5"] {5:1}
"""
WORDS = (
    *_WORDS.split(),
    *('" 5 "', "1 2", '"\x7f"', '"\x7f5"', '"5\x7f"', f"{'[' * 3000}{']' * 3000}", "9" * 2000),
)
"""What testers and feeds are known to write."""


@pytest.fixture(scope="module")
def values() -> list[str]:
    drawn: list[str] = []

    @seed(7)
    @settings(max_examples=250, database=None, phases=[Phase.generate])
    @given(st.one_of(DIGITS, STRINGS, NESTED))
    def draw(text: str) -> None:
        drawn.append(text)

    draw()
    return list(dict.fromkeys(text for text in (*WORDS, *drawn) if "\n" not in text))


def read_landed(spark: SparkSession, values: list[str]) -> Iterator[tuple[str, str, set[Any]]]:
    """Type, value, and what was made of it, each way, as text."""
    fields = [Column(f"f{at}", type_, "Any") for at, type_ in enumerate(TYPES)]
    ways = ("{{{}}}", '{{"other":"\\\\",{}}}', '{{ {}\t, "f99" : 1}}')
    lines = [
        (way.format(f'"f{at}":{value}'), at, value)
        for at in range(len(fields))
        for value in values
        for way in ways
    ]
    frame = spark.createDataFrame(lines, "value STRING, at INT, landed STRING").repartition(2)
    parsed = parse_json_lines(frame, fields)
    shown = (
        F.date_format(field.name, "yyyy-MM-dd HH:mm:ss.SSSSSS")
        if field.type.startswith("TIMESTAMP")
        else F.col(field.name).cast("string")
        for field in fields
    )
    rows = parsed.select("at", "landed", REJECT_REASON, F.get(F.array(*shown), F.col("at")))
    found: dict[tuple[int, str], set[Any]] = {}
    for at, landed, reason, value in rows.collect():
        found.setdefault((at, landed), set()).add(REJECTED if reason else value)
    assert len(found) == len(fields) * len(values)
    return ((TYPES[at], landed, made) for (at, landed), made in found.items())


def test_a_value_of_another_type_is_rejected_and_no_other(
    spark: SparkSession, values: list[str]
) -> None:
    wrong = []
    for type_, text, made in read_landed(spark, values):
        expected = judge(text, type_)
        if type_ == "DOUBLE" and REJECTED not in (expected, *made) and None not in made:
            made, expected = {float(value) for value in made}, float(expected)
        if made != {expected}:
            wrong.append((type_, text, made, expected))
    assert wrong == []
