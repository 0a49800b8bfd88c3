"""What delta-rs and numpy make of a table's files is what Spark makes of them."""

import datetime as dt
import math
import random
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from pyspark.sql import DataFrame, SparkSession

from backfill_engine.contents.canonical_words import format_checksum
from backfill_engine.contents.checksums import build_checksum_parts, build_row_hash
from backfill_engine.contents.partition_contents import ReadBack, read_back
from backfill_engine.contents.rows import join_small
from backfill_engine.grains.timestamps import HOURS
from backfill_engine.lake.partitions import Partition, Slice, build_predicate
from backfill_engine.lake.reader import read_table
from backfill_engine.lake.table_log import read_log
from backfill_engine.lake.warehouse import Warehouse
from backfill_engine.lake.writer import build_record, create_table, overwrite_partitions
from backfill_engine.quality.measures import measure_partitions
from backfill_engine.tables.declarations import Column, Table, build_ddl, required
from backfill_engine_tests.contents.written_rows import EVENTS, WEEK, build_parts

EMPTY_DAY = WEEK[3]
NOTHING = ReadBack(0, "0" * 16)
UTC = dt.UTC
POOLS: dict[str, tuple[str, list[Any]]] = {
    "tiny": ("TINYINT", [-128, -1, 0, 127]),
    "small": ("SMALLINT", [-(2**15), 2**15 - 1]),
    "number": ("INT", [-(2**31), -1, 0, 2**31 - 1]),
    "Big": ("BIGINT", [-(2**63), -1, 0, 1, 2**63 - 1]),
    "flag": ("BOOLEAN", [True, False]),
    "date": ("DATE", [dt.date(1, 1, 1), dt.date(1969, 12, 31), dt.date(9999, 12, 31)]),
    "at": (
        "TIMESTAMP",
        [
            dt.datetime(1, 1, 1, tzinfo=UTC),
            dt.datetime(1582, 10, 4, tzinfo=UTC),
            dt.datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC),
            dt.datetime(2013, 3, 10, 2, 30, tzinfo=dt.timezone(-dt.timedelta(hours=5))),
            dt.datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC),
        ],
    ),
    "single": ("FLOAT", [0.1, -2.5, 3e38, -3e38, math.inf, -math.inf, math.nan]),
    "double": (
        "DOUBLE",
        [
            *(0.1 + 0.2, -0.0, -1e-7, 5e-324, 0.0000005, 123456.7890125, -1e12),
            # Around the limits of 64 bits after scaling, and beyond those of a double.
            *(9.2e12, 9.3e12, -9.2e12, -9.3e12, 2.0**63 / 1e6, -(2.0**63) / 1e6, 1e303, -1e303),
            *(math.inf, -math.inf, math.nan),
        ],
    ),
    "text": (
        "STRING",
        ["", " ", "a", "é", "日本語", "😀", "\0", "1.0", "x" * 7, "y" * 31, "z" * 32, "ü" * 40],
    ),
    "price": ("DECIMAL(12,3)", [Decimal("-0.001"), Decimal(0), Decimal("999999999.999")]),
    "huge": ("DECIMAL(38,10)", [Decimal(-(2**64)), Decimal("1E-10"), Decimal(10**27)]),
    "local": (
        "TIMESTAMP_NTZ",
        list(
            map(dt.datetime.fromisoformat, ("0001-01-01", "2013-03-10 02:30", "9999-12-31 23:59"))
        ),
    ),
    "bytes": ("BINARY", [b"", b"\0", b"\xff" * 33]),
    "tags": ("ARRAY<STRING>", [[], ["a"], [None, "", "a"]]),
    "stops": (
        "ARRAY<STRUCT<name: STRING, at: TIMESTAMP_NTZ, fares: MAP<STRING, DECIMAL(20,2)>>>",
        [
            [],
            [
                {
                    "name": "é",
                    "at": dt.datetime.fromisoformat("2013-01-01"),
                    "fares": {"a": Decimal(1), "b": None},
                }
            ],
            [None, {"name": None, "at": None, "fares": {}}, {"name": "", "at": None}],
        ],
    ),
    "counts": ("MAP<INT, ARRAY<DOUBLE>>", [{}, {2: [math.nan, None], 1: []}, {1: [-0.0]}]),
    "code": ("STRING", ["JFK", "LGA", "jfk", "4 byte 8 byte 12byte 32byte 36byte"]),
}
DAY = dt.date(2013, 1, 1)
EVERYTHING = Table(
    layer="raw",
    name="everything",
    partition_by="day",
    columns=(
        *(Column(name, type_, name) for name, (type_, _) in POOLS.items()),
        required("day", "DATE", "Not the first column, though Spark stores it first"),
        Column("last", "INT", "Last"),
    ),
)


def build_rows(days: Sequence[Partition]) -> list[dict[str, Any]]:
    """Each value once with all else null, each null once, and a hundred mixtures, all each day."""
    chosen = random.Random(20130701)
    values = [(name, value) for name, (_, pool) in POOLS.items() for value in pool]
    mixtures = [
        {name: chosen.choice([*pool, None]) for name, (_, pool) in POOLS.items()}
        | {"double": chosen.uniform(-1e6, 1e6), "last": chosen.randrange(-100, 100)}
        for _ in range(100)
    ]
    full = {name: pool[0] for name, (_, pool) in POOLS.items()}
    rows = [{name: value} for name, value in values]
    rows += [{**full, name: None} for name in POOLS]
    rows += mixtures
    return [
        dict.fromkeys(EVERYTHING.column_names) | row | {"day": day.slice.start}
        for number, day in enumerate(days)
        for row in rows[number:]
    ]


def publish(
    spark: SparkSession,
    warehouse: Warehouse,
    table: Table,
    partitions: Sequence[Partition],
    rows: Sequence[dict[str, Any]],
) -> int:
    """Writes `rows` as the contents of `partitions`, as several files each; returns the version."""
    create_table(spark, read_log(warehouse, table))
    frame = spark.createDataFrame(
        [tuple(row[name] for name in table.column_names) for row in rows],
        build_ddl(table.columns, constraints=False),
    )
    keys = [partition.key for partition in partitions]
    record = build_record(
        table,
        partitions,
        run_id="run-1",
        code_version="code-1",
        input_versions={},
        rows=dict.fromkeys(keys, 0),
        checksums=dict.fromkeys(keys, ""),
    )
    return overwrite_partitions(
        frame.repartition(3), read_log(warehouse, table), partitions, record
    )


def measure_with_spark(
    frame: DataFrame, table: Table, partitions: Sequence[Partition]
) -> dict[str, ReadBack]:
    measures = measure_partitions(frame, table, partitions)
    return {key: ReadBack(measured.rows, measured.checksum) for key, measured in measures.items()}


def write_events(warehouse: Warehouse, codes: dict[int, list[str]], **options: Any) -> int:
    """Appends to EVENTS with delta-rs, one file a part; returns the version."""
    rows = [(part, code) for part, letters in codes.items() for code in letters]
    parts, values = zip(*rows, strict=True)
    contents = pa.table({"part": pa.array(parts, pa.int32()), "code": pa.array(values)})
    write_deltalake(
        warehouse.uri(EVENTS), contents, mode="append", partition_by=["part"], **options
    )
    return warehouse.open(EVENTS).version()


def find_files(warehouse: Warehouse, table: Table, folder: str) -> list[Path]:
    return sorted(Path(warehouse.uri(table), folder).glob("*.parquet"))


@pytest.fixture
def events(warehouse: Warehouse) -> Warehouse:
    """A warehouse whose EVENTS have two rows in each of the parts 0 to 3, written by delta-rs."""
    write_events(warehouse, {part: ["a", "b"] for part in range(4)})
    return warehouse


@pytest.mark.only_spark
def test_agrees_with_spark_on_every_type(spark: SparkSession, warehouse: Warehouse) -> None:
    filled = [day for day in WEEK if day != EMPTY_DAY]
    rows = build_rows(filled)
    version = publish(spark, warehouse, EVERYTHING, WEEK, rows)
    assert len(warehouse.open(EVERYTHING).file_uris()) > 2 * len(filled)
    log = read_log(warehouse, EVERYTHING, version=version)
    found = read_back(log, WEEK)
    assert found == measure_with_spark(read_table(spark, log), EVERYTHING, WEEK)
    assert found[EMPTY_DAY.key] == NOTHING
    assert sum(contents.rows for contents in found.values()) == len(rows)
    assert len({contents.checksum for contents in found.values()}) == len(WEEK)


HOURLY = Table(
    "raw",
    "hourly",
    "at",
    (
        required("at", "TIMESTAMP", "When"),
        Column("code", "STRING", "Code"),
        required("day", "DATE", "Day"),
    ),
    grain=HOURS,
    folder_by="day",
)
HOUR = dt.timedelta(hours=1)
BIG_EVENTS = replace(
    EVENTS, partition_by="Part", columns=(required("Part", "BIGINT", "Part"), EVENTS.columns[1])
)


@pytest.mark.parametrize(
    ("table", "starts", "width"),
    [
        (HOURLY, [dt.datetime(2013, 1, 1, hour, tzinfo=UTC) for hour in range(4)], HOUR),
        (EVENTS, [-2, -1, 0, 1], 1),
        (BIG_EVENTS, [-(2**40), 0, 2**40, 2**41], 1),
    ],
    ids=["hours", "INT", "BIGINT"],
)
def test_hours_and_numbers_are_partitions_too(
    spark: SparkSession, warehouse: Warehouse, table: Table, starts: list[Any], width: Any
) -> None:
    by = table.partition_by
    partitions = [Partition(str(start), Slice(start, start + width)) for start in starts]
    rows = [
        {by: start, "code": code, "day": DAY}
        for start in starts
        for code in (str(start), None, "x")
    ]
    version = publish(spark, warehouse, table, partitions, rows)
    found = read_back(read_log(warehouse, table, version=version), partitions[::-1])
    assert list(found) == [partition.key for partition in partitions[::-1]]
    frame = read_table(spark, read_log(warehouse, table, version=version))
    parts = build_checksum_parts(build_row_hash(table))
    for partition in partitions:
        here = frame.where(build_predicate(by, [partition.slice]))
        assert found[partition.key] == ReadBack(3, format_checksum(*here.agg(*parts).collect()[0]))


def test_old_versions_stay_readable(events: Warehouse) -> None:
    parts, log = build_parts(0, 1), read_log(events, EVENTS)
    old = read_back(log, parts)
    write_events(events, {1: ["c"]})
    assert read_back(log, parts) == old
    assert read_back(read_log(events, EVENTS, version=log.version), parts) == old


def test_appended_row_is_seen_in_exactly_its_partition(events: Warehouse) -> None:
    parts = build_parts(0, 1, 2, 3)
    before = read_back(read_log(events, EVENTS), parts)
    write_events(events, {2: ["b"]})
    after = read_back(read_log(events, EVENTS), parts)
    assert {key: after[key].rows for key in after if after[key] != before[key]} == {"part 2": 3}
    assert before["part 2"].checksum != after["part 2"].checksum


def test_files_of_other_partitions_are_not_opened(events: Warehouse) -> None:
    log = read_log(events, EVENTS)
    before = read_back(log, build_parts(0, 3))
    for other in ("part=1", "part=2"):
        for file in find_files(events, EVENTS, other):
            file.unlink()
    assert read_back(log, build_parts(0, 3)) == before


def test_thousands_of_separate_partitions_are_read(warehouse: Warehouse) -> None:
    version = write_events(warehouse, {0: ["a"], 1: ["b"], 4_000: ["c", "c"]})
    log = read_log(warehouse, EVENTS, version=version)
    found = read_back(log, build_parts(*range(0, 4_001, 2)))
    filled = {key: contents.rows for key, contents in found.items() if contents != NOTHING}
    assert filled == {"part 0": 1, "part 4000": 2}


def test_no_partitions_are_nothing_to_read(warehouse: Warehouse) -> None:
    assert read_back(read_log(warehouse, EVENTS), []) == {}


def test_neither_spark_nor_dagster_is_imported() -> None:
    code = (
        "import sys, backfill_engine.contents.partition_contents as readback; "
        "print(readback.__name__, {'pyspark', 'py4j', 'dagster'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "backfill_engine.contents.partition_contents set()"


def test_small_files_are_read_as_few_batches_and_large_ones_as_they_are() -> None:
    sizes = [1, 2, 65_000, 600, 65_536, 1, 0, 3]
    numbers = iter(range(sum(sizes)))
    batches = [
        pa.record_batch({"n": pa.array([next(numbers) for _ in range(size)], pa.int64())})
        for size in sizes
    ]
    joined = list(join_small(batches))
    assert [batch.num_rows for batch in joined] == [65_003, 600, 65_536, 4]
    assert [n for batch in joined for n in batch["n"].to_pylist()] == list(range(sum(sizes)))
    assert list(join_small([])) == []
