"""Spark and the independent reader hash alike whatever a column may hold, and see every change."""

import datetime as dt
import math
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from backfill_engine.contents.canonical_words import canonicalize, find_arrow_type, hash_rows
from backfill_engine.contents.checksums import build_row_hash
from backfill_engine.grains.buckets import Buckets
from backfill_engine.tables.column_types import ColumnType, parse_type
from backfill_engine.tables.declarations import Column, Table, build_ddl, required

UTC = dt.UTC
ID = required("id", "INT", "Number of the row")


def build_table(type_: str) -> Table:
    return Table(
        "raw", "things", "id", (ID, Column("value", type_, "Whatever")), grain=Buckets(1, 10_000)
    )


def hash_by_spark(spark: SparkSession, type_: str, values: list[Any]) -> list[int]:
    table = build_table(type_)
    ddl = build_ddl(table.columns, constraints=False)
    frame = spark.createDataFrame(list(enumerate(values)), ddl)
    rows = frame.select("id", build_row_hash(table).alias("hash")).collect()
    return [row.hash % 2**64 for row in sorted(rows)]


def hash_by_arrow(type_: str, values: list[Any]) -> list[int]:
    """Hashes values in two parts; the second is a slice, so that its offset isn't 0."""
    table = build_table(type_)
    ids, value = (find_arrow_type(column) for column in table.columns)
    whole = pa.array(values, value)
    middle = len(values) // 2
    hashes: list[int] = []
    for first, part in ((0, whole.slice(0, middle)), (middle, whole.slice(middle))):
        numbers = pa.array(range(first, first + len(part)), ids)
        hashes += hash_rows([canonicalize(numbers), canonicalize(part)]).tolist()
    return hashes


def find_words(type_: str, values: list[Any]) -> list[int]:
    return canonicalize(pa.array(values, find_arrow_type(Column("value", type_, "")))).tolist()


# What must be told apart, by type: each list holds values with a word each.
APART: dict[str, list[Any]] = {
    "DECIMAL(10,2)": [None, *map(Decimal, ("0", "0.01", "-0.01", "99999999.99", "-1", "1", "10"))],
    "DECIMAL(18,0)": [None, *map(Decimal, (0, 10**18 - 1, -(10**18) + 1))],
    "DECIMAL(38,18)": [
        None,
        *map(Decimal, ("0", "1E-18", "-1E-18", "12345678901234567890.123456789012345678")),
        *map(Decimal, ("127E-18", "128E-18", "-128E-18", "-129E-18", "255E-18", "256E-18")),
    ],
    "DECIMAL(38,0)": [None, *map(Decimal, (10**38 - 1, -(10**38) + 1, 2**64, 2**63, -(2**63)))],
    "BINARY": [None, b"", b"\0", b"\0\0", b"a", b"\xff" * 40],
    "TIMESTAMP_NTZ": [
        None,
        *map(dt.datetime.fromisoformat, ("0001-01-01", "1969-12-31 23:59:59.999999")),
        *map(dt.datetime.fromisoformat, ("2013-03-10 02:30", "9999-12-31 23:59:59.999999")),
    ],
    "ARRAY<INT>": [None, [], [None], [None, None], [0], [0, None], [None, 0], [1, 2], [2, 1], [1]],
    "ARRAY<ARRAY<INT>>": [
        *(None, [], [None], [[]], [[], []], [[1], []], [[], [1]], [[1]], [[1, 2]], [[1], [2]]),
        *([[None]], [[1], None]),
    ],
    "ARRAY<STRING>": [None, [], [""], [None], ["a", "b"], ["ab"], ["a,b"], ["a", "b", ""]],
    "ARRAY<DOUBLE>": [[0.0], [math.nan], [math.inf], [-math.inf], [None], [7_233_902e-6], []],
    "STRUCT<a: INT, b: STRING>": [
        None,
        *({"a": a, "b": b} for a in (None, 0, 1) for b in (None, "", "1")),
    ],
    "STRUCT<a: ARRAY<INT>, b: ARRAY<INT>>": [
        None,
        *({"a": a, "b": b} for a in (None, [], [1], [1, 2]) for b in (None, [], [2])),
    ],
    "MAP<STRING, INT>": [
        *(None, [], [("a", 1)], [("a", None)], [("b", 1)], [("a", 1), ("b", 2)]),
        *([("a", 2), ("b", 1)], [("", 0)]),
    ],
    "MAP<DATE, ARRAY<STRUCT<x: BINARY>>>": [
        None,
        [],
        [(dt.date(2013, 1, 1), [{"x": b"1"}])],
        [(dt.date(2013, 1, 1), [{"x": None}])],
        [(dt.date(2013, 1, 1), [None])],
        [(dt.date(2013, 1, 1), [])],
        [(dt.date(2013, 1, 1), None)],
    ],
}


@pytest.mark.only_spark
@pytest.mark.parametrize("type_", APART)
def test_values_that_differ_have_words_that_differ_and_spark_agrees(
    spark: SparkSession, type_: str
) -> None:
    values = APART[type_]
    assert len(set(find_words(type_, values))) == len(values)
    as_spark = [as_spark_has_it(parse_type(type_), value) for value in values]
    assert hash_by_spark(spark, type_, as_spark) == hash_by_arrow(type_, values)


def as_spark_has_it(type_: ColumnType, value: Any) -> Any:
    """A map is a list of pairs to Arrow and a dict to Spark; the order of its pairs is free."""
    if value is None:
        return None
    if type_.kind == "ARRAY":
        return [as_spark_has_it(type_.parts[0], item) for item in value]
    if type_.kind == "STRUCT":
        parts = zip(type_.names, type_.parts, strict=True)
        return tuple(as_spark_has_it(part, value[name]) for name, part in parts)
    if type_.kind == "MAP":
        of_key, of_value = type_.parts
        return {
            as_spark_has_it(of_key, key): as_spark_has_it(of_value, item)
            for key, item in reversed(value)
        }
    return value


def test_a_map_is_the_same_in_any_order() -> None:
    forth, back = [("a", 1), ("b", 2), ("c", 3)], [("c", 3), ("a", 1), ("b", 2)]
    assert len(set(find_words("MAP<STRING, INT>", [forth, back]))) == 1


def test_zeros_and_precision_of_decimals_are_the_values() -> None:
    """1.0 and 1.00 are one value of a column, and a value is the same in a wider column."""
    assert len(set(find_words("DECIMAL(10,2)", [Decimal("1"), Decimal("1.00")]))) == 1
    assert find_words("DECIMAL(10,2)", [Decimal(7)]) == find_words("DECIMAL(18,2)", [Decimal(7)])


FIRST, LAST = map(dt.datetime.fromisoformat, ("0001-01-03", "9999-12-30"))
PLAIN: dict[str, st.SearchStrategy[Any]] = {
    "BOOLEAN": st.booleans(),
    "TINYINT": st.integers(-(2**7), 2**7 - 1),
    "SMALLINT": st.integers(-(2**15), 2**15 - 1),
    "INT": st.integers(-(2**31), 2**31 - 1),
    "BIGINT": st.integers(-(2**63), 2**63 - 1),
    "FLOAT": st.floats(width=32),
    "DOUBLE": st.floats() | st.floats(-1e6, 1e6),
    "STRING": st.text(st.characters(exclude_categories=["Cs"]), max_size=40),
    "BINARY": st.binary(max_size=40),
    "DATE": st.dates(),
    "TIMESTAMP": st.datetimes(FIRST, LAST, timezones=st.just(UTC)),
    "TIMESTAMP_NTZ": st.datetimes(FIRST, LAST),
}
HEALTHY = (HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.function_scoped_fixture)
DIGITS = st.integers(1, 38).flatmap(lambda most: st.tuples(st.just(most), st.integers(0, most)))
DECIMALS = DIGITS.map(lambda digits: f"DECIMAL({digits[0]},{digits[1]})")
TYPES = st.recursive(
    st.sampled_from(list(PLAIN)) | DECIMALS,
    lambda inner: st.one_of(
        inner.map(lambda part: f"ARRAY<{part}>"),
        st.lists(inner, min_size=1, max_size=3).map(
            lambda parts: f"STRUCT<{', '.join(f'f{at}: {part}' for at, part in enumerate(parts))}>"
        ),
        # Keys have types of their own, because some floats and all nulls can't be keys.
        st.tuples(st.sampled_from(["STRING", "INT", "DATE", "DECIMAL(20,3)"]), inner).map(
            lambda parts: f"MAP<{parts[0]}, {parts[1]}>"
        ),
    ),
    max_leaves=4,
)


def build_values(type_: ColumnType, *, nulls: bool = True) -> st.SearchStrategy[Any]:
    match type_.kind:
        case "DECIMAL":
            precision, scale = type_.digits
            unscaled = st.integers(-(10**precision) + 1, 10**precision - 1)
            found = unscaled.map(lambda number: Decimal(f"{number}E-{scale}"))
        case "ARRAY":
            found = st.lists(build_values(type_.parts[0]), max_size=4)
        case "STRUCT":
            parts = zip(type_.names, map(build_values, type_.parts), strict=True)
            found = st.fixed_dictionaries(dict(parts))
        case "MAP":
            of_key, of_value = type_.parts
            entry = st.tuples(build_values(of_key, nulls=False), build_values(of_value))
            found = st.lists(entry, max_size=4, unique_by=lambda entry: entry[0])
        case kind:
            found = PLAIN[kind]
    return st.none() | found if nulls else found


@pytest.mark.only_spark
@settings(max_examples=8, suppress_health_check=HEALTHY)
@given(data=st.data())
def test_spark_and_arrow_agree_on_values_of_any_type(
    spark: SparkSession, data: st.DataObject
) -> None:
    """Ten types are tested at once, as fields of one value, because a Spark job takes long."""
    types = data.draw(st.lists(TYPES, min_size=10, max_size=10))
    type_ = parse_type(f"STRUCT<{', '.join(f'c{at}: {field}' for at, field in enumerate(types))}>")
    values = data.draw(st.lists(build_values(type_), min_size=8, max_size=8))
    by_arrow = hash_by_arrow(str(type_), values)
    as_spark = [as_spark_has_it(type_, value) for value in values]
    assert hash_by_spark(spark, str(type_), as_spark) == by_arrow


@given(data=st.data())
def test_values_of_any_type_that_differ_have_words_that_differ(data: st.DataObject) -> None:
    exact = st.sampled_from(["ARRAY<INT>", "STRUCT<a: STRING, b: DECIMAL(20,1)>", "BINARY"])
    type_ = parse_type(
        data.draw(exact | st.just("MAP<STRING, ARRAY<BIGINT>>") | st.just("DECIMAL(38,3)"))
    )
    values = data.draw(st.lists(build_values(type_), min_size=2, max_size=8))
    distinct = {repr(sort_maps(type_, value)) for value in values}
    assert len(set(find_words(str(type_), values))) == len(distinct)


def sort_maps(type_: ColumnType, value: Any) -> Any:
    if isinstance(value, Decimal):
        return int(value.scaleb(type_.digits[1]))
    if isinstance(value, dict):
        parts = zip(type_.names, type_.parts, strict=True)
        return [sort_maps(part, value[name]) for name, part in parts]
    return sorted(value) if type_.kind == "MAP" and value is not None else value
