"""The production watermark: forward only, over no gap, whoever moves it and when."""

import datetime as dt
from concurrent.futures import ThreadPoolExecutor

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from backfill_engine.lake.partitions import Partition
from backfill_engine.lake.side_table_writer import move_watermark
from backfill_engine.lake.warehouse import Warehouse
from backfill_engine.lake.watermarks import read_watermarks
from backfill_engine_tests.lake.readings import READINGS
from backfill_engine_tests.shared_fixtures import build_days

DAYS = build_days("2013-01-01", 12)
NOW = dt.datetime(2013, 2, 1, 12, 30, tzinfo=dt.UTC)


def move(
    spark: SparkSession, warehouse: Warehouse, *days: Partition, run_id: str = "run"
) -> str | None:
    """The day on which it stands if it was moved."""
    moved = move_watermark(spark, warehouse, READINGS, days, first=DAYS[0], run_id=run_id, now=NOW)
    return moved.next_key if moved else None


def read(warehouse: Warehouse) -> str | None:
    found = read_watermarks(warehouse)
    return found[READINGS.key].next_key if found else None


def test_it_follows_what_was_done_and_stays_at_a_gap(
    spark: SparkSession, warehouse: Warehouse
) -> None:
    assert read(warehouse) is None
    assert move(spark, warehouse, *DAYS[1:3]) is None, "the first day was never processed"
    assert read(warehouse) is None
    assert move(spark, warehouse, *DAYS[:2], DAYS[3], run_id="first") == "2013-01-03"
    assert move(spark, warehouse, *DAYS[4:6]) is None, "day 3 would be skipped"
    assert move(spark, warehouse, DAYS[0]) is None, "never back"
    assert move(spark, warehouse) is None
    assert read_watermarks(warehouse)[READINGS.key].run_id == "first"
    assert move(spark, warehouse, *DAYS[1:5], run_id="second") == "2013-01-06"
    (standing,) = read_watermarks(warehouse).values()
    assert (standing.table, standing.run_id, standing.moved_at) == (READINGS.key, "second", NOW)


def test_moves_at_the_same_time_neither_take_it_back_nor_over_a_gap(
    spark: SparkSession, warehouse: Warehouse
) -> None:
    move(spark, warehouse, DAYS[0])
    stretches = [DAYS[1:4], DAYS[1:7], DAYS[8:10], DAYS[2:5]]
    seen: list[str | None] = []

    def move_and_look(stretch: tuple[Partition, ...]) -> None:
        move(spark, warehouse, *stretch)
        seen.append(read(warehouse))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(move_and_look, stretches))
    assert read(warehouse) == "2013-01-08", "up to day 7; day 8 was done by nobody"
    assert None not in seen
    table, numbers = DeltaTable(f"{warehouse.root}/watermarks"), list[int]()
    for version in range(table.version() + 1):
        table.load_as_version(version)
        rows = table.to_pyarrow_table().to_pylist()
        numbers.append(max([row["number"] for row in rows], default=0))
    assert numbers == sorted(numbers)


def test_a_move_from_an_old_reading_changes_nothing(
    spark: SparkSession, warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was read before the statement may be old: the statement decides."""
    move(spark, warehouse, DAYS[0])
    old = read_watermarks(warehouse)
    move(spark, warehouse, *DAYS[1:6])
    with monkeypatch.context() as patched:
        patched.setattr("backfill_engine.lake.side_table_writer.read_watermarks", lambda _: old)
        assert move(spark, warehouse, *DAYS[1:3], run_id="slow") is None
    assert read(warehouse) == "2013-01-07"
