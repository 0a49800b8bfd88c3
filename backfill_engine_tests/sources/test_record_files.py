"""Records of any format become lines of JSON; none is lost, and each has one partition."""

import datetime as dt
import gzip
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from backfill_engine.audit_columns import ELSEWHERE, LANDED_ELSEWHERE, REJECT_REASON
from backfill_engine.errors import DeclarationError
from backfill_engine.grains.buckets import Buckets
from backfill_engine.grains.dates import DAYS, Days
from backfill_engine.grains.grain import Grain
from backfill_engine.grains.timestamps import HOURS
from backfill_engine.lake.partitions import build_partitions
from backfill_engine.sources.pattern_files import (
    WHERE,
    PatternFiles,
    PatternListing,
    build_partition_value,
    read_partition_value,
)
from backfill_engine.sources.record_files import (
    Constant,
    CsvFiles,
    DatePart,
    JsonFiles,
    ParquetFiles,
)
from backfill_engine.tables.columns import Column
from backfill_engine.tables.declarations import Table, required
from backfill_engine.transforms.landed_rows import build_landed_rows
from backfill_engine_tests.sources.landed_tables import build_landed_table
from backfill_engine_tests.sources.test_pattern_files import list_days, write

FILES = CsvFiles(
    "old/{partition:%Y}/readings_{partition:%Y-%m}*.csv",
    fields=tuple(Column(name, "STRING", name) for name in ("id", "note", "month", "later")),
    where="on",
    origins=(("id", "Number"), ("note", Constant("old")), ("month", DatePart("on", "month"))),
)


def read(spark: SparkSession, listing: PatternListing) -> list[tuple[str, str, str]]:
    """Day, line and file of each record, sorted."""
    rows = listing.read(spark).collect()
    return sorted((str(row["day"]), row["value"], row["source_file"]) for row in rows)


def count(found: list[tuple[str, str, str]]) -> dict[str, int]:
    days = [day for day, _, _ in found]
    return {day: days.count(day) for day in days}


def test_declared_fields_are_mapped_and_what_cannot_be_stays_as_it_came(
    spark: SparkSession, tmp_path: Path
) -> None:
    january = "old/2011/readings_2011-01.csv"
    write(
        tmp_path,
        january,
        "number,on,Number\n"
        "x,2011-01-02,7\n"
        'x,2011-01-03,"say ""no"", twice"\n'
        "x,2011-01-03,\n"
        "x,2011-02-01,8\n"
        "x,2011-02-30,9\n"
        "x,2011-01-03\n"
        "x,2011-01-03,1,2\n"
        "\n",
    )
    # This file has its columns in another order.
    write(tmp_path, "old/2011/readings_2011-01_b.csv", "Number,on\n5,2011-01-02\n")
    listing = list_days(tmp_path, "2011-01-01", 31, FILES)
    found = read(spark, listing)
    of_day = {day: [value for date, value, _ in found if date == day] for day, _, _ in found}
    assert list(map(json.loads, of_day["2011-01-02"])) == [
        {"id": number, "note": "old", "month": "1", "later": None} for number in "57"
    ]
    good = [json.loads(value) for value in of_day["2011-01-03"] if value.startswith("{")]
    assert {record["id"] for record in good} == {'say "no", twice', None}
    # Broken lines as they are: no parser takes them for an object.
    assert {"x,2011-01-03", "x,2011-01-03,1,2"} <= {*of_day["2011-01-01"], *of_day["2011-01-03"]}
    # Records whose day is in another file, or invalid, get the first day of their own file.
    assert [json.loads(value) for value in of_day["2011-01-01"] if value.startswith("{")] == [
        {"id": "8", "note": "old", "month": "2", "later": None},
        {"number": "x", "on": "2011-02-30", "Number": "9"},
    ]
    assert {name for _, _, name in found} == {january, january.replace(".csv", "_b.csv")}
    counted = {key: number for key, number in listing.count_lines().items() if number}
    assert counted == count(found)
    assert sum(counted.values()) == 8


def test_a_day_reads_its_own_records_of_its_files(spark: SparkSession, tmp_path: Path) -> None:
    write(tmp_path, "old/2011/readings_2011-01.csv", "on,Number\n2011-01-01,1\n2011-01-02,2\n,3\n")
    assert count(read(spark, list_days(tmp_path, "2011-01-02", 1, FILES))) == {"2011-01-02": 1}
    assert count(read(spark, list_days(tmp_path, "2011-01-01", 1, FILES))) == {"2011-01-01": 2}
    assert read(spark, list_days(tmp_path, "2011-02-02", 1, FILES)) == []


def test_gzipped_files_and_options_of_the_reader(spark: SparkSession, tmp_path: Path) -> None:
    files = replace(
        FILES,
        path="old/{partition:%Y} [a]/{partition:%m}+.csv.gz",
        delimiter=";",
        null="NA",
    )
    text = "on;Number\n2011-01-01;1,5\n2011-01-02;NA\n"
    write(tmp_path, "old/2011 [a]/01+.csv.gz", gzip.compress(text.encode()))
    found = read(spark, list_days(tmp_path, "2011-01-01", 3, files))
    assert [(day, json.loads(value)["id"], name) for day, value, name in found] == [
        ("2011-01-01", "1,5", "old/2011 [a]/01+.csv.gz"),
        ("2011-01-02", None, "old/2011 [a]/01+.csv.gz"),
    ]


@pytest.mark.only_spark
def test_parquet_files_of_different_types_are_read_alike(
    spark: SparkSession, tmp_path: Path
) -> None:
    files = ParquetFiles(
        "old/{partition:%Y-%m}.parquet",
        fields=FILES.fields,
        where="on",
        origins=(("id", "Number"), ("later", "at"), ("month", DatePart("on", "month"))),
    )
    (tmp_path / "old").mkdir()
    at = dt.datetime(2011, 1, 2, 3, 4, 5, 600, tzinfo=dt.UTC)
    january = {
        "on": [dt.date(2011, 1, 31), None],
        "Number": pa.array([1, 2], "int32"),
        "at": [at] * 2,
    }
    february = {"on": ["2011-02-01", "?"], "Number": pa.array([3, 4], "int64"), "at": ["x", None]}
    pq.write_table(pa.table(january), tmp_path / "old/2011-01.parquet")
    pq.write_table(pa.table(february), tmp_path / "old/2011-02.parquet")
    listing = list_days(tmp_path, "2011-01-01", 32, files)
    found = read(spark, listing)
    lines = {day + value[:6]: json.loads(value) for day, value, _ in found}
    assert [(record["id"], record["later"]) for record in lines.values() if "id" in record] == [
        ("1", "2011-01-02T03:04:05.000600Z"),
        ("3", "x"),
    ]
    # Records without a date stay as they came, and get the first day of their file.
    assert [(record["Number"], record["on"]) for record in lines.values() if "on" in record] == [
        ("2", None),
        ("4", "?"),
    ]
    assert count(found) == {key: n for key, n in listing.count_lines().items() if n}


_TEXTS = st.one_of(
    st.dates(dt.date(2010, 12, 1), dt.date(2011, 3, 5)).map(str),
    st.sampled_from(
        ["", "2011-02-29", "2011-2-1", "2011", "20110101", "２011-01-01", " 2011-01-01"]
    ),
)


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(_TEXTS, st.sampled_from([",1", "", ",1,2", ',"a', ",'b"])), max_size=30))
def test_spark_and_python_agree_on_the_day_of_each_record(
    spark: SparkSession, tmp_path: Path, records: list[tuple[str, str]]
) -> None:
    lines = [f"{day}{rest}" for day, rest in records if day or rest]
    write(tmp_path, "old/2011/readings_2011-01.csv", "\n".join(["on,Number", *lines]))
    write(tmp_path, "old/2011/readings_2011-02.csv", "\n".join(["on,Number", *lines[::2]]))
    listing = list_days(tmp_path, "2011-01-01", 59, FILES)
    found = read(spark, listing)
    assert len(found) == len(lines) + len(lines[::2])
    assert count(found) == {key: n for key, n in listing.count_lines().items() if n}


HOURLY = build_landed_table(HOURS, by="at")
NUMBERS = (required("at", "TIMESTAMP", "When"), required("number", "INT", "Number"))


def write_csv(root: Path) -> PatternFiles:
    text = "at,number\n2024-01-31T10:05:00Z,1\n2024-01-31T11:00:00Z,2\n2002-12-31T23:00:00Z,3\n"
    write(root, "trips/2024-01-31.csv", b"\xef\xbb\xbf" + text.encode())
    return CsvFiles("trips/{partition:%Y-%m-%d}.csv", fields=NUMBERS, where="at")


def write_lines(root: Path) -> PatternFiles:
    lines = [
        '{"at": "2024-01-31T10:05:00Z", "number": 1}',
        '{"number": 2, "at": "2024-01-31T11:00:00Z"}',
        '{"at": "2002-12-31T23:00:00Z", "number": 3}',
    ]
    write(root, "trips/2024-01-31.json", "\n\n".join(lines))
    return JsonFiles("trips/{partition:%Y-%m-%d}.json", fields=NUMBERS, where="at")


def write_array(root: Path) -> PatternFiles:
    files = write_lines(root)
    path = root / "trips/2024-01-31.json"
    lines = [json.loads(line) for line in path.read_text().splitlines() if line]
    write(root, "trips/2024-01-31.json.gz", gzip.compress(json.dumps(lines, indent=2).encode()))
    path.unlink()
    return replace(files, path=f"{files.path}.gz")


def write_parquet(root: Path) -> PatternFiles:
    times = [(2024, 1, 31, 10, 5), (2024, 1, 31, 11), (2002, 12, 31, 23)]
    at = [dt.datetime(*time, tzinfo=dt.UTC) for time in times]
    (root / "trips").mkdir()
    pq.write_table(pa.table({"at": at, "number": [1, 2, 3]}), root / "trips/2024-01-31.parquet")
    return ParquetFiles("trips/{partition:%Y-%m-%d}.parquet", fields=NUMBERS, where="at")


@pytest.mark.parametrize("land", [write_csv, write_lines, write_array, write_parquet])
def test_hours_share_the_file_of_a_day_in_every_format(
    spark: SparkSession, tmp_path: Path, land: Callable[[Path], PatternFiles]
) -> None:
    files = land(tmp_path)
    files.refuse_table(HOURLY)
    keys = [f"2024-01-31-{hour:02}:00" for hour in range(24)]
    listing = files.list_files(str(tmp_path), HOURLY, build_partitions(HOURLY, keys))
    assert (listing.missing, listing.faults) == ((), [])
    rows = listing.read(spark).select("at", "value", LANDED_ELSEWHERE).collect()
    found = sorted((row[0].hour, json.loads(row[1])["number"], row[2]) for row in rows)
    # The record of 2002 is in the first hour of its file, where it is rejected.
    assert found == [(0, 3, True), (10, 1, False), (11, 2, False)]
    counted = {key: count for key, count in listing.count_lines().items() if count}
    assert counted == dict.fromkeys([keys[0], keys[10], keys[11]], 1)
    alone = listing.restrict(listing.partitions[10:11])
    assert [json.loads(row["value"])["number"] for row in alone.read(spark).collect()] == [1]


def test_what_says_no_partition_of_its_file_is_rejected_in_the_first(
    spark: SparkSession, tmp_path: Path
) -> None:
    table = Table("raw", "trips", "day", (required("day", "DATE", "Day"), *NUMBERS))
    write(
        tmp_path, "trips/2024-01.csv", "at,number\n2024-01-31 10:05:00,1\n2002-12-31 23:00:00,3\n"
    )
    files = CsvFiles("trips/{partition:%Y-%m}.csv", fields=NUMBERS, where="at")
    days = build_partitions(table, ["2024-01-01", "2024-01-31"])
    lines = files.list_files(str(tmp_path), table, days).read(spark)
    rows = build_landed_rows(lines, table, NUMBERS).collect()
    found = {str(row["day"]): (row["number"], row[REJECT_REASON]) for row in rows}
    assert found["2024-01-31"] == (1, None)
    assert found["2024-01-01"][1] == ELSEWHERE


AT_TEN = dt.datetime(2024, 1, 31, 10, tzinfo=dt.UTC)
LAST_OF_JANUARY = dt.date(2024, 1, 31)
ISO = {
    "2024-01-31": LAST_OF_JANUARY,
    "2024-01-31 25:00:00": LAST_OF_JANUARY,
    "2024-01-31T10:00:00.5Z": LAST_OF_JANUARY,
    "2024-01-31 23:30:00-05:00": dt.date(2024, 2, 1),
    "2024-02-01T00:30:00+01:00": LAST_OF_JANUARY,
    "2024-02-01T00:30+0100": None,
    "2024-01-31 00:30": LAST_OF_JANUARY,
    "2024-02-30": None,
    "31.01.2024": None,
    "2024-1-31": None,
    "": None,
}
VALUES: dict[Grain, dict[str, object]] = {
    DAYS: {**ISO, "20240131": None},
    Days("%Y%m%d"): {**ISO, "20240131": LAST_OF_JANUARY, "20240230": None, "2024013": None},
    Days("%Y%m%d", type="INT"): {**ISO, "20240131": LAST_OF_JANUARY, " 20240131": None},
    Days("%Y.%m.%d"): {**ISO, "2024.01.31": LAST_OF_JANUARY, "2024-01.31": None},
    Days(type="DATE", time_zone="America/New_York"): {
        "2024-01-31": LAST_OF_JANUARY,
        "2024-02-01T04:59:59Z": LAST_OF_JANUARY,
        "2024-02-01T05:00:00+00:00": dt.date(2024, 2, 1),
        "2024-02-01 03:00:00": dt.date(2024, 2, 1),
        "2024-02-30": None,
    },
    HOURS: {
        "2024-01-31T10:00:00Z": AT_TEN,
        "2024-01-31 10:00:00": AT_TEN,
        "2024-01-31 10:00": AT_TEN,
        "2024-01-31T10:00Z": None,
        "2024-01-31 10:00:00.000000000": AT_TEN,
        "2024-01-31T11:00:00+0100": AT_TEN,
        "2024-01-31T11:30:00.000001+01:30": AT_TEN.replace(microsecond=1),
        "2024-01-30 18:00:00-16:00": AT_TEN,
        "2024-01-31T10:00:00+18:30": None,
        "2024-01-31": None,
        "2024-01-31 25:00:00": None,
    },
    Buckets(10, 100): {"31": 31, "-31": -31, "3.1": None, "x": None},
}


@pytest.mark.parametrize("grain", VALUES, ids=str)
def test_text_says_a_partition_as_its_grain_writes_one(grain: Grain) -> None:
    assert {text: read_partition_value(text, grain) for text in VALUES[grain]} == VALUES[grain]


def test_spark_reads_the_same_of_texts(spark: SparkSession) -> None:
    for grain, values in VALUES.items():
        texts = spark.createDataFrame([(text,) for text in values], f"{WHERE} string")
        value = build_partition_value(WHERE, grain).cast("string")
        found = {row[0]: row[1] for row in texts.select(WHERE, value).collect()}
        written = {
            text: value and str(value).removesuffix("+00:00") for text, value in values.items()
        }
        assert found == written, grain


@pytest.mark.parametrize("type_", ["INT", "STRING"])
def test_days_that_are_written_as_integers_share_the_file_of_a_month(
    spark: SparkSession, tmp_path: Path, type_: str
) -> None:
    grain = Days("%Y%m%d", type=type_)  # type: ignore[arg-type]
    table = Table("raw", "trips", "ds", (required("ds", type_),), grain=grain)
    (tmp_path / "trips").mkdir()
    days = pa.array([20240131, 20240130, 20240131, 20021231], pa.int32())
    pq.write_table(pa.table({"on": days}), tmp_path / "trips/2024-01.parquet")
    fields = (required("on", "INT"),)
    files = ParquetFiles("trips/{partition:%Y-%m}.parquet", fields=fields, where="on")
    files.refuse_table(table)
    keys = [f"2024-01-{day:02}" for day in range(1, 32)]
    listing = files.list_files(str(tmp_path), table, build_partitions(table, keys))
    counted = {key: count for key, count in listing.count_lines().items() if count}
    assert counted == {"2024-01-01": 1, "2024-01-30": 1, "2024-01-31": 2}
    rows = listing.read(spark).select("ds", LANDED_ELSEWHERE).collect()
    found = sorted((int(row[0]), row[1]) for row in rows)
    last = (20240131, False)
    assert found == [(20240101, True), (20240130, False), last, last]


@pytest.mark.parametrize(
    ("grain", "type_", "message"),
    [
        (DAYS, "INT", "which is INT and says no partition by days: .* or partition by Days$"),
        (DAYS, "DOUBLE", "name a field of DATE, STRING, TIMESTAMP, TIMESTAMP_NTZ$"),
        (HOURS, "DATE", "which is DATE and says no partition by hours: name a field of STRING, "),
        (Buckets(10, 100), "DATE", "name a field of BIGINT, DECIMAL, INT, SMALLINT, STRING, TINYI"),
    ],
    ids=str,
)
def test_field_whose_type_says_no_partition_is_refused(
    grain: Grain, type_: str, message: str
) -> None:
    table = build_landed_table(grain, by="of")
    files = CsvFiles("trips/{partition}.csv", fields=(required("at", type_),), where="at")
    with pytest.raises(DeclarationError, match=message):
        files.refuse_table(table)


@pytest.mark.parametrize(
    ("grain", "key", "value", "fault"),
    [
        (DAYS, "2024-01-31", 20240131, "has at as int64, which says no partition by days: correct"),
        (Days("%Y%m%d"), "2024-01-31", 20240131, ""),
        (HOURS, "2024-01-31-00:00", LAST_OF_JANUARY, "has at as date32[day], which says no part"),
        (DAYS, "2024-01-31", LAST_OF_JANUARY, ""),
        (DAYS, "2024-01-31", None, ""),
        (Buckets(10, 100), "0000000", AT_TEN, "has at as timestamp[us, tz=UTC], which says no"),
    ],
    ids=str,
)
def test_column_of_a_file_that_says_no_partition_is_a_fault(
    tmp_path: Path, grain: Grain, key: str, value: object, fault: str
) -> None:
    table = build_landed_table(grain, by="of")
    files = ParquetFiles("a/{partition}.parquet", where="at")
    (tmp_path / "a").mkdir()
    pq.write_table(pa.table({"at": [value]}), tmp_path / f"a/{key}.parquet")
    listing = files.list_files(str(tmp_path), table, build_partitions(table, [key]))
    assert [found.fault[: len(fault)] for found in listing.faults] == ([fault] if fault else [])
