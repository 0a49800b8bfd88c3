"""The checksum sees every change of contents, and anyone can compute it from its description."""

import datetime as dt
import math
import random
from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import SparkSession

from backfill_engine.contents.checksums import (
    build_checksum_parts,
    build_row_hash,
    format_checksum,
)
from backfill_engine.grains.buckets import Buckets
from backfill_engine.tables.declarations import Column, Table, build_ddl, required
from backfill_engine_tests.contents.xxh64 import hash_bytes

TYPES = {
    "tiny": "TINYINT",
    "small": "SMALLINT",
    "number": "INT",
    "big": "BIGINT",
    "flag": "BOOLEAN",
    "day": "DATE",
    "at": "TIMESTAMP",
    "single": "FLOAT",
    "double": "DOUBLE",
    "text": "STRING",
    "other_text": "STRING",
}
MEASUREMENTS = Table(
    layer="raw",
    name="measurements",
    partition_by="id",
    grain=Buckets(1, 1000),
    columns=(
        required("id", "INT", "Row number"),
        *(Column(name, type_, name) for name, type_ in TYPES.items()),
    ),
)
EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
ROW: dict[str, Any] = {
    "id": 1,
    "tiny": 1,
    "small": 2,
    "number": 3,
    "big": 4,
    "flag": True,
    "day": dt.date(2013, 7, 1),
    "at": dt.datetime(2013, 7, 1, 4, 5, 6, 789, tzinfo=dt.UTC),
    "single": 0.5,
    "double": 0.25,
    "text": "JFK",
    "other_text": "LGA",
}
SECOND_ROW = {**ROW, "id": 2, "text": "EWR"}
Rows = Sequence[Mapping[str, Any]]


def compute_checksums(spark: SparkSession, contents: Mapping[str, Rows]) -> dict[str, str]:
    """Spark's checksum of each of several contents of the table, in one job."""
    rows = [
        (label, *(row[name] for name in MEASUREMENTS.column_names))
        for label, labelled in contents.items()
        for row in labelled
    ]
    schema = f"label STRING, {build_ddl(MEASUREMENTS.columns, constraints=False)}"
    upper, lower = build_checksum_parts(build_row_hash(MEASUREMENTS))
    parts = (
        spark.createDataFrame(rows, schema).groupBy("label").agg(upper.alias("u"), lower.alias("l"))
    )
    return {row.label: format_checksum(row.u, row.l) for row in parts.collect()}


def compute_checksum_in_python(rows: Rows) -> str:
    """The documented formula, without Spark and without this project's code."""
    return f"{sum(map(_hash_row, rows)) % 2**64:016x}"


def _hash_row(row: Mapping[str, Any]) -> int:
    chained = 42
    for name in MEASUREMENTS.column_names:
        null = 42 if TYPES.get(name) == "STRING" else int.from_bytes(b"null")
        word = (null if row[name] is None else _canonical(row[name])) % 2**64
        chained = hash_bytes(word.to_bytes(8, "little"), chained)
    return chained


def _canonical(value: object) -> int:
    match value:
        case bool() | int():
            return int(value)
        case dt.datetime():
            return (value - EPOCH) // dt.timedelta(microseconds=1)
        case dt.date():
            return (value - EPOCH.date()).days
        case float():
            if not math.isfinite(value):
                return int.from_bytes(str(value).encode())
            return max(-(2**63), min(2**63 - 1, math.floor(value * 10**6 + 0.5)))
        case str():
            return hash_bytes(value.encode(), 42)
        case _:
            raise TypeError(value)


def test_second_opinion_on_xxh64_agrees_with_published_values() -> None:
    assert hash_bytes(b"", 0) == 0xEF46DB3751D8E999
    assert hash_bytes(b"abc", 0) == 0x44BC2CF5AD770999
    assert hash_bytes(b"xxhash", 20141025) == 0xB559B98D844E0635
    assert hash_bytes(b"Nobody inspects the spammish repetition", 0) == 0xFBCEA83C8A378BF1


NOT_FINITE = (math.inf, -math.inf, math.nan)
VALUES: dict[str, list[Any]] = {
    "tiny": [-128, 0, 127],
    "small": [-(2**15), 2**15 - 1],
    "number": [-(2**31), -1, 0, 2**31 - 1],
    "big": [-(2**63), -1, 2**63 - 1],
    "flag": [True, False],
    "day": [dt.date(1, 1, 1), dt.date(1969, 12, 31), dt.date(2024, 2, 29), dt.date(9999, 12, 31)],
    "at": [
        EPOCH - dt.timedelta(microseconds=1),
        dt.datetime(2013, 3, 10, 2, 30, tzinfo=dt.timezone(-dt.timedelta(hours=5))),
        dt.datetime(2262, 4, 12, 1, 2, 3, 999_999, tzinfo=dt.UTC),
    ],
    "single": [0.1015625, -2.5, *NOT_FINITE],
    "double": [0.1 + 0.2, -0.0, -1e-7, 1e-300, 123456.7890125, -1e12, 1e300, -1e300, *NOT_FINITE],
    "text": ["", " ", "a", "é", "日本語", "😀", "x" * 7, "y" * 31, "z" * 32, "ü" * 40, "\0", "1.0"],
}


def build_nasty_rows() -> list[dict[str, Any]]:
    chosen = random.Random(20130701)
    rows = [{**ROW, name: value} for name, values in VALUES.items() for value in values]
    rows += [{**ROW, name: None} for name in TYPES]
    rows += [
        {
            **ROW,
            **{name: chosen.choice(values) for name, values in VALUES.items()},
            "double": chosen.uniform(-1e6, 1e6),
            "other_text": "".join(chosen.choices("aé日😀", k=chosen.randrange(40))),
        }
        for _ in range(100)
    ]
    return [{**row, "id": number} for number, row in enumerate(rows)]


def test_documented_formula_gives_the_same_checksum(spark: SparkSession) -> None:
    rows = build_nasty_rows()
    contents: dict[str, Rows] = {str(row["id"]): [row] for row in rows}
    contents["all"] = rows
    expected = {label: compute_checksum_in_python(labelled) for label, labelled in contents.items()}
    assert compute_checksums(spark, contents) == expected


def test_order_and_partitioning_of_rows_do_not_matter(spark: SparkSession) -> None:
    rows = build_nasty_rows()
    shuffled = random.Random(1).sample(rows, len(rows))
    schema = build_ddl(MEASUREMENTS.columns, constraints=False)
    frames = [
        spark.createDataFrame([tuple(row.values()) for row in rows_in_order], schema).repartition(
            parts
        )
        for rows_in_order, parts in ((rows, 1), (shuffled, 5))
    ]
    parts = build_checksum_parts(build_row_hash(MEASUREMENTS))
    first, second = (format_checksum(*frame.agg(*parts).collect()[0]) for frame in frames)
    assert first == second


def test_doubled_lost_and_added_rows_are_seen(spark: SparkSession) -> None:
    contents: dict[str, Rows] = {
        "as is": [ROW, SECOND_ROW],
        "doubled": [ROW, ROW, SECOND_ROW],
        "doubled twice": [ROW, ROW, ROW, SECOND_ROW],
        "all doubled": [ROW, ROW, SECOND_ROW, SECOND_ROW],
        "lost": [ROW],
    }
    assert len(set(compute_checksums(spark, contents).values())) == len(contents)


def test_changed_value_in_any_column_is_seen(spark: SparkSession) -> None:
    changed: dict[str, Any] = {
        "id": 9,
        "tiny": 9,
        "small": 9,
        "number": 9,
        "big": 9,
        "flag": False,
        "day": ROW["day"] + dt.timedelta(days=1),
        "at": ROW["at"] + dt.timedelta(microseconds=1),
        "single": 0.75,
        "double": 0.250001,
        "text": "JFK ",
        "other_text": "lga",
    }
    assert set(changed) == set(ROW)
    contents = {name: [{**ROW, name: value}, SECOND_ROW] for name, value in changed.items()}
    contents |= {f"{name} null": [{**ROW, name: None}, SECOND_ROW] for name in TYPES}
    contents["as is"] = [ROW, SECOND_ROW]
    assert len(set(compute_checksums(spark, contents).values())) == len(contents)


def test_values_swapped_between_rows_or_columns_are_seen(spark: SparkSession) -> None:
    contents: dict[str, Rows] = {
        "as is": [ROW, SECOND_ROW],
        "between rows": [{**ROW, "text": "EWR"}, {**SECOND_ROW, "text": "JFK"}],
        "between columns": [{**ROW, "text": "LGA", "other_text": "JFK"}, SECOND_ROW],
        "null on the left": [{**ROW, "text": None, "other_text": "x"}],
        "null on the right": [{**ROW, "text": "x", "other_text": None}],
        "null before": [{**ROW, "small": None, "number": 7}],
        "null behind": [{**ROW, "small": 7, "number": None}],
        "empty instead of null": [{**ROW, "text": "", "other_text": "x"}],
    }
    assert len(set(compute_checksums(spark, contents).values())) == len(contents)


def test_floats_differ_from_a_millionth_on(spark: SparkSession) -> None:
    contents: dict[str, Rows] = {
        f"{value!r}": [{**ROW, "double": value}]
        for value in (0.3, 0.1 + 0.2, 0.3000004, 0.3000006, 0.0, -0.0)
    }
    found = compute_checksums(spark, contents)
    assert found["0.3"] == found["0.30000000000000004"] == found["0.3000004"]
    assert found["0.3"] != found["0.3000006"]
    assert found["0.0"] == found["-0.0"]


def test_no_rows_have_the_checksum_zero() -> None:
    assert format_checksum(None, None) == format_checksum(0, 0) == "0" * 16


def test_sums_wrap_at_64_bits() -> None:
    assert format_checksum(2**32, 5) == f"{5:016x}"
    assert format_checksum(-1, 2**32 - 1) == "f" * 16
