"""Landed Parquet records get to their buckets, and are counted as the footers have them."""

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from backfill_engine.errors import LandingError
from backfill_engine.grains.buckets import Buckets
from backfill_engine.lake.partitions import build_partitions
from backfill_engine.lake.table_log import read_log
from backfill_engine.lake.warehouse import Warehouse
from backfill_engine.sources.input_window import InputWindow
from backfill_engine.sources.parquet_landing import ParquetLanding
from backfill_engine.tables.declarations import Column, Table, required

GRAIN = Buckets(100, 1000)
THINGS = Table(
    layer="raw",
    name="things",
    partition_by="bucket",
    grain=GRAIN,
    columns=(required("bucket", "BIGINT", "First id"), required("id", "BIGINT", "Id")),
)
FIELDS = (required("id", "BIGINT", "Id"), Column("note", "STRING", "Note"))
FIRST, SECOND, THIRD = "0000000", "0000100", "0000200"


def land(root: Path, name: str, ids: Sequence[int | None], kind: str = "a") -> None:
    path = root / "things" / kind / name
    path.parent.mkdir(parents=True, exist_ok=True)
    table = pa.table({"id": pa.array(ids, pa.int32()), "note": [str(number) for number in ids]})
    pq.write_table(table, path)


def open_window(
    spark: SparkSession, root: Path, *keys: str, fields: tuple[Column, ...] = FIELDS
) -> InputWindow:
    partitions = build_partitions(THINGS, keys)
    kinds = (("a", "id"), ("b", "id"))
    declared = (("a", fields), ("b", fields)) if fields else ()
    landing = ParquetLanding("things", kinds, "SPACE", declared)
    log = read_log(Warehouse(str(root / "warehouse")), THINGS)
    listing = landing.list_files(str(root), THINGS, partitions)
    return InputWindow(spark, log, partitions, {}, listing)


def read(window: InputWindow, kind: str = "a") -> list[tuple[int, int | None, str]]:
    rows = window.read_landing(kind).collect()
    return sorted(((row.bucket, row.id, row.source_file) for row in rows), key=str)


@pytest.mark.parametrize("fields", [FIELDS, ()], ids=["declared", "not declared"])
def test_bucket_begins_with_its_first_key_and_ends_before_the_next(
    spark: SparkSession, tmp_path: Path, fields: tuple[Column, ...]
) -> None:
    land(tmp_path, "x y+%.parquet", [0, 1, 99, 100, 199, 200, 201])
    window = open_window(spark, tmp_path, FIRST, THIRD, fields=fields)
    name = "things/a/x y+%.parquet"
    assert read(window) == [(0, key, name) for key in (0, 1, 99)] + [
        (200, key, name) for key in (200, 201)
    ]


def test_records_without_a_key_go_to_the_bucket_of_their_files_smallest_key(
    spark: SparkSession, tmp_path: Path
) -> None:
    land(tmp_path, "x.parquet", [None, 250, 150, None])
    land(tmp_path, "y.parquet", [150, 151])
    first, second, third = "things/a/x.parquet", "things/a/y.parquet", "things/a/x.parquet"
    assert read(open_window(spark, tmp_path, SECOND)) == [
        (100, 150, first),
        (100, 150, second),
        (100, 151, second),
        (100, None, first),
        (100, None, first),
    ]
    assert read(open_window(spark, tmp_path, THIRD)) == [(200, 250, third)]


def test_records_are_counted_as_the_footers_have_them(spark: SparkSession, tmp_path: Path) -> None:
    land(tmp_path, "one.parquet", [5, None, 7])
    land(tmp_path, "two.parquet", [250, None, 150, None, 151])
    land(tmp_path, "three.parquet", [99, 100], kind="b")
    for keys, expected in (
        ((FIRST, SECOND, THIRD), {FIRST: 4, SECOND: 5, THIRD: 1}),
        ((FIRST,), {FIRST: 4}),
        ((THIRD, "0000900"), {THIRD: 1, "0000900": 0}),
    ):
        assert open_window(spark, tmp_path, *keys).count_landing() == expected


def test_a_kind_without_a_file_of_the_window_has_no_rows(
    spark: SparkSession, tmp_path: Path
) -> None:
    land(tmp_path, "x.parquet", [5])
    land(tmp_path, "x.parquet", [150], kind="b")
    window = open_window(spark, tmp_path, FIRST)
    assert read(window, "b") == []
    assert window.read_landing("b").dtypes == window.read_landing("a").dtypes


def test_a_file_with_a_fault_is_not_left_out_in_silence(
    spark: SparkSession, tmp_path: Path
) -> None:
    land(tmp_path, "x.parquet", [5])
    fields = (*FIELDS, Column("weight", "DOUBLE", "Weight"))
    window = open_window(spark, tmp_path, FIRST, fields=fields)
    with pytest.raises(LandingError, match=r"things/a/x.parquet lacks the column weight: land it"):
        window.read_landing("a")
