"""Landed orders and lines become one table, record by record and to the cent."""

import datetime as dt
import json
from collections import Counter
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from backfill_assets.tables.orders import LINE, ORDER, RAW_ORDERS
from backfill_assets.transforms.raw_orders import build_raw_orders
from backfill_assets_tests.transforms.frames import list_types
from backfill_engine.audit_columns import REJECT_REASON, REJECTED_LINE

ORDER_COLUMNS = (
    "o_orderkey bigint, o_custkey bigint, o_orderstatus string, o_totalprice decimal(15,2), "
    "o_orderdate date, o_orderpriority string, o_clerk string, o_shippriority int, "
    "o_comment string, source_file string"
)
LINE_COLUMNS = (
    "l_orderkey bigint, l_partkey bigint, l_suppkey bigint, l_linenumber int, "
    "l_quantity decimal(15,2), l_extendedprice decimal(15,2), l_discount decimal(15,2), "
    "l_tax decimal(15,2), l_returnflag string, l_linestatus string, l_shipdate date, "
    "l_commitdate date, l_receiptdate date, l_shipinstruct string, l_shipmode string, "
    "l_comment string, source_file string"
)
STEP = 30_000


def landed_order(key: int = 7, *, total: str = "1.00", file: str = "orders/a") -> tuple[Any, ...]:
    date = dt.date(1996, 1, 2)
    return (key, 370, "O", Decimal(total), date, "5-LOW", "Clerk#1", 0, "a comment", file)


def landed_line(
    key: int = 7,
    number: int = 1,
    *,
    price: str = "1.00",
    discount: str = "0.04",
    tax: str = "0.02",
    file: str = "orders/b",
) -> tuple[Any, ...]:
    parts = (key, 155190, 7706, number, Decimal("17.00"))
    amounts = (Decimal(price), Decimal(discount), Decimal(tax))
    dates = (dt.date(1996, 3, 13), dt.date(1996, 2, 12), dt.date(1996, 3, 22))
    return (*parts, *amounts, "N", "O", *dates, "NONE", "TRUCK", "a comment", file)


def build_raw(
    spark: SparkSession, orders: Sequence[tuple[Any, ...]], lines: Sequence[tuple[Any, ...]]
) -> DataFrame:
    return build_raw_orders(
        place(spark.createDataFrame(orders, ORDER_COLUMNS), "o_orderkey"),
        place(spark.createDataFrame(lines, LINE_COLUMNS), "l_orderkey"),
    )


def place(records: DataFrame, key: str) -> DataFrame:
    """Adds the bucket, as whoever reads the files does."""
    bucket = f"CASE WHEN {key} IS NULL THEN 0 ELSE {key} div {STEP} * {STEP} END"
    return records.selectExpr("*", f"{bucket} AS order_bucket")


@pytest.mark.only_spark
def test_columns_are_those_of_the_table(spark: SparkSession) -> None:
    audit = [(REJECT_REASON, "string"), (REJECTED_LINE, "string")]
    raw = build_raw(spark, [landed_order()], [landed_line()])
    assert raw.dtypes == [*list_types(RAW_ORDERS), *audit]


def test_order_and_line_become_rows_with_nulls_for_what_the_other_has(spark: SparkSession) -> None:
    key = 3 * STEP + 5
    order = landed_order(key, total="173665.47")
    line = landed_line(key, 2, price="21168.23")
    rows = {row.record: row.asDict() for row in build_raw(spark, [order], [line]).collect()}
    nothing = dict.fromkeys((*RAW_ORDERS.column_names, REJECT_REASON, REJECTED_LINE))
    assert rows == {
        ORDER: nothing
        | {
            "order_bucket": 3 * STEP,
            "order_key": key,
            "record": ORDER,
            "customer_key": 370,
            "order_status": "O",
            "total_cents": 17_366_547,
            "order_date": dt.date(1996, 1, 2),
            "order_priority": "5-LOW",
            "source_file": "orders/a",
        },
        LINE: nothing
        | {
            "order_bucket": 3 * STEP,
            "order_key": key,
            "record": LINE,
            "line_number": 2,
            "part_key": 155190,
            "supplier_key": 7706,
            "quantity": 17.0,
            "price_cents": 2_116_823,
            "discount_percent": 4,
            "tax_percent": 2,
            "return_flag": "N",
            "ship_date": dt.date(1996, 3, 13),
            "commit_date": dt.date(1996, 2, 12),
            "receipt_date": dt.date(1996, 3, 22),
            "source_file": "orders/b",
        },
    }


def test_amounts_are_exact_to_the_hundredth(spark: SparkSession) -> None:
    # As doubles, times 100, many of these end just below the integer: 0.29, 1.13, 4.35.
    amounts = [f"{cents // 100}.{cents % 100:02}" for cents in range(1_000)]
    amounts += ["173665.47", "555285.16", "7071992547409.93", "9999999999999.99"]
    orders = [landed_order(n, total=amount) for n, amount in enumerate(amounts)]
    lines = [
        landed_line(
            n, price=amount, discount=f"{n % 101 / 100:.2f}", tax=f"{(n + 7) % 101 / 100:.2f}"
        )
        for n, amount in enumerate(amounts)
    ]
    rows = build_raw(spark, orders, lines).collect()
    cents = {n: int(amount.replace(".", "")) for n, amount in enumerate(amounts)}
    assert {row.order_key: row.total_cents for row in rows if row.record == ORDER} == cents
    assert {
        row.order_key: (row.price_cents, row.discount_percent, row.tax_percent)
        for row in rows
        if row.record == LINE
    } == {n: (value, n % 101, (n + 7) % 101) for n, value in cents.items()}


@pytest.mark.only_spark
def test_a_record_without_a_key_is_rejected_as_it_came(spark: SparkSession) -> None:
    without = (None, *landed_line(5, 3)[1:])
    rows = build_raw(spark, [landed_order(5)], [landed_line(5, 2), without]).collect()
    (rejected,) = (row for row in rows if row[REJECT_REASON])
    assert rejected[REJECT_REASON] == "`l_orderkey` is null"
    assert (
        json.loads(rejected[REJECTED_LINE]).items()
        >= {"l_orderkey": None, "l_linenumber": 3}.items()
    )
    assert (rejected.order_bucket, rejected.source_file) == (0, "orders/b")
    assert [row[REJECTED_LINE] for row in rows if row is not rejected] == [None, None]


def test_nothing_is_dropped_or_deduplicated(spark: SparkSession) -> None:
    orders = [
        *(landed_order(1) for _ in range(3)),
        landed_order(1, file="orders/z"),
        landed_order(2),  # has no lines
    ]
    lines = [
        *(landed_line(1, 1) for _ in range(2)),
        landed_line(1, 2),
        landed_line(1, 2, price="2.00"),
        landed_line(3, 1),  # has no order
    ]
    rows = build_raw(spark, orders, lines).collect()
    landed = Counter(
        (row.order_key, row.record, row.line_number, row.price_cents, row.source_file)
        for row in rows
    )
    assert landed == {
        (1, ORDER, None, None, "orders/a"): 3,
        (1, ORDER, None, None, "orders/z"): 1,
        (2, ORDER, None, None, "orders/a"): 1,
        (1, LINE, 1, 100, "orders/b"): 2,
        (1, LINE, 2, 100, "orders/b"): 1,
        (1, LINE, 2, 200, "orders/b"): 1,
        (3, LINE, 1, 100, "orders/b"): 1,
    }
