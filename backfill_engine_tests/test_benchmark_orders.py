"""The benchmark of orders: what it compares, what it keeps of earlier runs, and its section."""

import datetime as dt
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from backfill_engine.grains.buckets import Buckets
from backfill_engine.lake.warehouse import Warehouse
from backfill_engine_tests.benchmark_results import MACHINE
from backfill_engine_tests.project import CUSTOMER_ORDERS
from benchmarks.contents import DifferentContentsError, check_same_checksums
from benchmarks.orders_report import (
    OrdersScale,
    merge_results,
    read_results,
    write_orders_report,
)
from benchmarks.sections import PAGE

_TABLE = replace(CUSTOMER_ORDERS, grain=Buckets(step=10, space=20))
_ONE = OrdersScale(
    scale=1,
    date="2013-01-01",
    landed_bytes=250_000_000,
    rows=7_500_000,
    buckets=60,
    commits={"raw/orders": 1, "staging/orders": 1, "features/customer_orders": 1},
    heap_mb=2048,
    alive_mb={"a": 300, "b": 400},
    seconds={"a": [100.0, 90.0, 110.0], "b": [119.0, 130.0, 110.0], "e": [4.0, 5.0, 6.0]},
)
_TEN = replace(
    _ONE,
    scale=10,
    seconds={"a": [1000.0], "b": [1500.0], "e": [4.0]},
    date="2013-01-02",
    rows=75_000_000,
)


def _write(root: Path, *rows: tuple[int, int, float]) -> Path:
    buckets, customers, shares = (list(column) for column in zip(*rows, strict=True))
    count = len(rows)
    columns = {
        **dict.fromkeys(("orders", "lines", "net_cents"), pa.array([1] * count, pa.int64())),
        **dict.fromkeys(
            ("first_order_date", "last_order_date"), pa.array([dt.date(1995, 1, 1)] * count)
        ),
        "order_bucket": pa.array(buckets, pa.int64()),
        "customer_key": pa.array(customers, pa.int64()),
        "late_share": pa.array(shares, pa.float64()),
        "returned_share": pa.array([0.5] * count, pa.float64()),
    }
    write_deltalake(
        Warehouse(str(root)).uri(_TABLE),
        pa.table({name: columns[name] for name in _TABLE.column_names}),
        partition_by=["order_bucket"],
    )
    return root


def test_equal_rows_in_another_order_have_the_same_checksums(tmp_path: Path):
    first = _write(tmp_path / "one", (0, 1, 0.1), (0, 2, 0.2), (10, 3, 0.3))
    second = _write(tmp_path / "other", (10, 3, 0.3), (0, 2, 0.2), (0, 1, 0.1))
    check_same_checksums([_TABLE], first, second, partitions=2)


def test_the_bucket_with_another_value_is_named(tmp_path: Path):
    first = _write(tmp_path / "one", (0, 1, 0.1), (0, 2, 0.2), (10, 3, 0.3))
    second = _write(tmp_path / "other", (0, 1, 0.1), (0, 2, 0.2), (10, 3, 0.4))
    with pytest.raises(DifferentContentsError, match=r"unequal checksums of 0000010$"):
        check_same_checksums([_TABLE], first, second, partitions=2)


def test_missing_buckets_fail_even_if_both_miss_them(tmp_path: Path):
    root = _write(tmp_path / "one", (0, 1, 0.1))
    with pytest.raises(DifferentContentsError, match="1 partitions of 2"):
        check_same_checksums([_TABLE], root, root, partitions=2)


def test_scales_are_added_to_those_of_the_same_machine(tmp_path: Path):
    folder = tmp_path / "benchmarks"
    page = tmp_path / PAGE
    page.write_text(
        "By hand.\n<!-- orders results: begin -->\nold\n<!-- orders results: end -->\nToo.\n",
        encoding="utf-8",
    )
    write_orders_report(merge_results(None, [_ONE], MACHINE, date="2013-01-01"), folder)
    added = merge_results(read_results(folder), [_TEN], MACHINE, date="2013-01-02")
    assert [scale["scale"] for scale in added["scales"]] == [1, 10]
    again = merge_results(added, [replace(_TEN, rows=7)], MACHINE, date="2013-01-02")
    assert [scale["rows"] for scale in again["scales"]] == [_ONE.rows, 7]
    write_orders_report(added, folder)
    text = page.read_text(encoding="utf-8")
    assert "- Scale 10: 75,000,000 raw rows; commits of b by layer: 1, 1, 1;" in text
    assert "Measured on 2013-01-02, 2 cores: " in text
    assert "(benchmarks/orders.json)" in text
    assert text.startswith("By hand.\n") and text.endswith("Too.\n") and "old" not in text
    elsewhere = merge_results(read_results(folder), [_TEN], {**MACHINE, "cores": 4}, date="")
    assert [scale["scale"] for scale in elsewhere["scales"]] == [10]
