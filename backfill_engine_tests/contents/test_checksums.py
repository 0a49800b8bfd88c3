"""The checksum sees every change of contents, and anyone can compute it from its description."""

import datetime as dt
import math
import random
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
import xxhash
from pyspark.sql import SparkSession

from backfill_engine.contents.checksums import (
    build_checksum_parts,
    build_row_hash,
    format_checksum,
)
from backfill_engine.grains.buckets import Buckets
from backfill_engine.tables.declarations import Column, Table, build_ddl, required

EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
DAY, MOMENT = dt.date(2013, 7, 1), dt.datetime(2013, 7, 1, 4, 5, 6, 789, tzinfo=dt.UTC)
COLUMNS: dict[str, tuple[str, Any, Any]] = {
    "tiny": ("TINYINT", 1, 9),
    "small": ("SMALLINT", 2, 9),
    "number": ("INT", 3, 9),
    "big": ("BIGINT", 4, 9),
    "flag": ("BOOLEAN", True, False),
    "day": ("DATE", DAY, DAY + dt.timedelta(days=1)),
    "at": ("TIMESTAMP", MOMENT, MOMENT + dt.timedelta(microseconds=1)),
    "single": ("FLOAT", 0.5, 0.75),
    "double": ("DOUBLE", 0.25, 0.250001),
    "text": ("STRING", "JFK", "JFK "),
    "other_text": ("STRING", "LGA", "lga"),
}
"""By column beside the number of the row: its type, a value, and another one."""

MEASUREMENTS = Table(
    layer="raw",
    name="measurements",
    partition_by="id",
    grain=Buckets(1, 1000),
    columns=(
        required("id", "INT", "Row number"),
        *(Column(name, type_, name) for name, (type_, _, _) in COLUMNS.items()),
    ),
)
ROW = {"id": 1, **{name: value for name, (_, value, _) in COLUMNS.items()}}
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
        null = 42 if COLUMNS.get(name, ("INT",))[0] == "STRING" else int.from_bytes(b"null")
        word = (null if row[name] is None else _canonical(row[name])) % 2**64
        chained = xxhash.xxh64_intdigest(word.to_bytes(8, "little"), chained)
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
            return xxhash.xxh64_intdigest(value.encode(), 42)
        case _:
            raise TypeError(value)


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
    rows += [{**ROW, name: None} for name in COLUMNS]
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


DIFFERENT: dict[str, dict[str, Rows]] = {
    "rows": {
        "doubled": [ROW, ROW, SECOND_ROW],
        "doubled twice": [ROW, ROW, ROW, SECOND_ROW],
        "all doubled": [ROW, ROW, SECOND_ROW, SECOND_ROW],
        "lost": [ROW],
    },
    "values": {
        **{name: [{**ROW, name: other}, SECOND_ROW] for name, (*_, other) in COLUMNS.items()},
        **{f"{name} null": [{**ROW, name: None}, SECOND_ROW] for name in COLUMNS},
        "id": [{**ROW, "id": 9}, SECOND_ROW],
    },
    "places of values": {
        "between rows": [{**ROW, "text": "EWR"}, {**SECOND_ROW, "text": "JFK"}],
        "between columns": [{**ROW, "text": "LGA", "other_text": "JFK"}, SECOND_ROW],
        "null on the left": [{**ROW, "text": None, "other_text": "x"}],
        "null on the right": [{**ROW, "text": "x", "other_text": None}],
        "null before": [{**ROW, "small": None, "number": 7}],
        "null behind": [{**ROW, "small": 7, "number": None}],
        "empty instead of null": [{**ROW, "text": "", "other_text": "x"}],
    },
}


@pytest.mark.parametrize("what", DIFFERENT)
def test_contents_that_differ_have_checksums_that_differ(spark: SparkSession, what: str) -> None:
    contents = {"as is": [ROW, SECOND_ROW], **DIFFERENT[what]}
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
