"""Orders are put together from whatever landed of them, each record counted once."""

import datetime as dt
import random
from collections import defaultdict
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from backfill_assets.tables.orders import LINE, ORDER, ORDER_BUCKETS, RAW_ORDERS, STAGING_ORDERS
from backfill_assets.transforms.staging_orders import build_counted_orders, build_staging_orders
from backfill_assets_tests.transforms.frames import build_frame, list_types
from backfill_engine.audit_columns import DUPLICATES, IDENTICAL

Record = dict[str, Any]

PROMISED = dt.date(1996, 2, 12)


def order(key: int, **changes: Any) -> Record:
    """A record of RAW_ORDERS."""
    fields = {
        "customer_key": 370,
        "order_status": "O",
        "total_cents": 1_000,
        "order_date": dt.date(1996, 1, 2),
        "order_priority": "5-LOW",
        "source_file": "orders/orders/a",
    }
    return _build_record(key, ORDER) | fields | changes


def line(key: int, number: int = 1, **changes: Any) -> Record:
    """A record of RAW_ORDERS: in time, not sent back, and without discount."""
    fields = {
        "line_number": number,
        "part_key": 155190,
        "supplier_key": 7706,
        "quantity": 17.0,
        "price_cents": 100,
        "discount_percent": 0,
        "tax_percent": 2,
        "return_flag": "N",
        "ship_date": dt.date(1996, 1, 13),
        "commit_date": PROMISED,
        "receipt_date": PROMISED,
        "source_file": "orders/lineitem/a",
    }
    return _build_record(key, LINE) | fields | changes


def _build_record(key: int, record: str) -> Record:
    nothing: Record = dict.fromkeys(RAW_ORDERS.column_names)
    bucket = key // ORDER_BUCKETS.step * ORDER_BUCKETS.step
    return nothing | {"order_bucket": bucket, "order_key": key, "record": record}


def build_raw(spark: SparkSession, *records: Record) -> DataFrame:
    return build_frame(spark, RAW_ORDERS, records)


def collect_orders(raw: DataFrame) -> dict[int, dict[str, Any]]:
    rows = build_staging_orders(raw).collect()
    orders = {row.order_key: row.asDict() for row in rows}
    assert len(orders) == len(rows)
    return orders


def stage(spark: SparkSession, *records: Record) -> dict[int, dict[str, Any]]:
    return collect_orders(build_raw(spark, *records))


def test_columns_are_those_of_the_table(spark: SparkSession) -> None:
    staged = build_staging_orders(build_raw(spark, order(1), line(1)))
    assert staged.dtypes == list_types(STAGING_ORDERS)


def test_order_is_one_row_with_its_lines_summed_up(spark: SparkSession) -> None:
    key = 2 * ORDER_BUCKETS.step + 3
    staged = stage(
        spark,
        order(key, customer_key=5, order_status="F", total_cents=3_172, order_priority="1-URGENT"),
        line(key, 1, price_cents=2_000, discount_percent=10),
        line(key, 2, price_cents=1_000, discount_percent=100),
        line(key, 3, price_cents=3_000_000_000, receipt_date=dt.date(1996, 3, 1)),
        order(1),
        line(1),
    )
    assert set(staged) == {1, key}
    assert staged[key] == {
        "order_bucket": 2 * ORDER_BUCKETS.step,
        "order_key": key,
        "customer_key": 5,
        "order_status": "F",
        "order_date": dt.date(1996, 1, 2),
        "order_priority": "1-URGENT",
        "total_cents": 3_172,
        "net_cents": 3_000_001_800,
        "lines": 3,
        "returned_lines": 0,
        "late_lines": 1,
        "records": 4,
    }


def test_records_that_landed_again_count_in_records_only(spark: SparkSession) -> None:
    late = {"receipt_date": PROMISED + dt.timedelta(days=1), "return_flag": "R"}
    once = [order(1), line(1, 1, **late), line(1, 2)]
    staged = stage(
        spark,
        *once,
        # Whole files that landed twice, under the same name and another.
        *once,
        *(record | {"source_file": "orders/b"} for record in once),
        line(1, 1, **late),
    )
    ((_, row),) = staged.items()
    assert (row["net_cents"], row["total_cents"], row["lines"]) == (200, 1_000, 2)
    assert (row["late_lines"], row["returned_lines"], row["records"]) == (1, 1, 10)


def test_records_that_landed_again_are_told_from_other_versions(spark: SparkSession) -> None:
    raw = build_raw(
        spark,
        *(order(1), order(1, source_file="orders/b"), order(1, order_status="P")),
        *(line(1, 1), line(1, 1), line(1, 2), line(1, 2, price_cents=99)),
    )
    (row,) = build_counted_orders(raw).collect()
    assert (row.records, row[DUPLICATES], row[IDENTICAL]) == (7, 4, 2)


def test_net_is_rounded_half_up_once_and_last(spark: SparkSession) -> None:
    # Price, discount in percent; net in cents.
    stories: list[tuple[list[tuple[int, int]], int]] = [
        ([(1, 51)], 0),  # 0.49
        ([(1, 50)], 1),  # 0.5
        ([(1, 49)], 1),  # 0.51
        ([(3, 50)], 2),  # 1.5
        ([(5, 50)], 3),  # 2.5, where half to even gives 2
        ([(33, 50)], 17),  # 16.5, as above
        ([(1, 100)], 0),
        ([(7, 0)], 7),
        ([(1, 50), (1, 50)], 1),  # 1.0, where each line rounded gives 2
        ([(1, 70), (1, 90)], 0),  # 0.4
        ([(1, 70), (1, 80)], 1),  # 0.5, where each line rounded gives 0
        ([(-160, 99)], -2),  # -1.6, where cutting off gives -1
        ([(-1, 50)], 0),  # -0.5
        ([(999_999_999_999_999, 50)], 500_000_000_000_000),
    ]
    records = []
    for key, (lines, _) in enumerate(stories):
        records.append(order(key))
        for number, (price, discount) in enumerate(lines, start=1):
            records.append(line(key, number, price_cents=price, discount_percent=discount))
    staged = stage(spark, *records)
    assert [staged[key]["net_cents"] for key in range(len(stories))] == [net for _, net in stories]


def test_an_order_with_a_line_without_price_has_no_net(spark: SparkSession) -> None:
    staged = stage(
        spark, order(1), line(1, 1, price_cents=10), line(1, 2, price_cents=None), order(2), line(2)
    )
    assert staged[1]["net_cents"] is None
    assert staged[2]["net_cents"] is not None


def draw_records() -> list[Record]:
    """Draws records of 60 orders in three buckets; orders repeat, change and lack records."""
    chosen = random.Random(19960102)
    records: list[Record] = []
    for number in range(60):
        key = number % 3 * ORDER_BUCKETS.step + number
        versions = chosen.choice([0, 1, 1, 1, 2, 3])
        records += [
            order(
                key,
                customer_key=chosen.randrange(3),
                order_status=chosen.choice("FOP"),
                total_cents=chosen.randrange(5),
                order_date=dt.date(1996, 1, chosen.randrange(1, 4)),
                source_file=chosen.choice("ab"),
            )
            for _ in range(versions)
        ]
        records += [
            line(
                key,
                line_number,
                part_key=chosen.randrange(2),
                price_cents=chosen.randrange(10_000),
                discount_percent=chosen.randrange(101),
                return_flag=chosen.choice("RAN"),
                receipt_date=PROMISED + dt.timedelta(days=chosen.randrange(-2, 3)),
                source_file=chosen.choice("ab"),
            )
            for line_number in range(1, chosen.choice([1, 2, 4, 8]))
            for _ in range(chosen.choice([1, 1, 2, 3]))
        ]
    return records


def compute_orders(records: list[Record]) -> dict[int, dict[str, Any]]:
    """Computes what staging holds of the records, order by order."""
    versions: dict[tuple[int, str, int | None], list[Record]] = defaultdict(list)
    for record in records:
        versions[record["order_key"], record["record"], record["line_number"]].append(record)
    # The columns of the key are equal, and so are the nulls.
    latest = {
        key: max(
            versions_of_key,
            key=lambda version: [value for value in version.values() if value is not None],
        )
        for key, versions_of_key in versions.items()
    }
    orders = {}
    for key, record, _ in versions:
        lines = [line for (of, kind, _), line in latest.items() if (of, kind) == (key, LINE)]
        if record != ORDER or not lines:
            continue
        head = latest[key, ORDER, None]
        orders[key] = {
            **{name: head[name] for name in STAGING_ORDERS.column_names if name in head},
            "net_cents": _round_half_up(
                sum(line["price_cents"] * (100 - line["discount_percent"]) for line in lines)
            ),
            "lines": len(lines),
            "returned_lines": sum(line["return_flag"] == "R" for line in lines),
            "late_lines": sum(line["receipt_date"] > line["commit_date"] for line in lines),
            "records": sum(landed_record["order_key"] == key for landed_record in records),
        }
    return orders


def _round_half_up(hundredths: int) -> int:
    return int((Decimal(hundredths) / 100).quantize(Decimal(1), ROUND_HALF_UP))


def test_rows_do_not_depend_on_order_or_split_of_the_records(spark: SparkSession) -> None:
    records = draw_records()
    expected = compute_orders(records)
    assert 20 < len(expected) < 60
    assert collect_orders(build_raw(spark, *records).repartition(1)) == expected
    random.Random(1).shuffle(records)
    assert collect_orders(build_raw(spark, *records).repartition(7)) == expected
    by_source = build_raw(spark, *reversed(records)).repartition(3, "source_file", "record")
    assert collect_orders(by_source) == expected
