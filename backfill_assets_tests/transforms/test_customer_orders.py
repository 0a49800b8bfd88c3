"""Customers' features against sums that Python makes order by order."""

import datetime as dt
import random
from typing import NamedTuple

from pyspark.sql import DataFrame, SparkSession

from backfill_assets.tables.orders import CUSTOMER_ORDERS, ORDER_BUCKETS, STAGING_ORDERS
from backfill_assets.transforms.customer_orders import build_customer_orders
from backfill_assets_tests.transforms.frames import build_frame, list_types

STEP = ORDER_BUCKETS.step
DAY = dt.date(1996, 1, 2)


class Order(NamedTuple):
    """What the features are made of; the other columns of STAGING_ORDERS don't matter."""

    order_key: int
    customer_key: int = 370
    order_date: dt.date = DAY
    net_cents: int = 100
    lines: int = 1
    returned_lines: int = 0
    late_lines: int = 0

    @property
    def order_bucket(self) -> int:
        """The bucket of the order, as `raw/orders` has it."""
        return self.order_key // STEP * STEP


class Features(NamedTuple):
    """A row of CUSTOMER_ORDERS without its key."""

    orders: int
    lines: int
    net_cents: int
    first_order_date: dt.date
    last_order_date: dt.date
    late_share: float | None
    returned_share: float | None


Key = tuple[int, int]


def build_orders(spark: SparkSession, *orders: Order) -> DataFrame:
    others = {"order_status": "O", "order_priority": "5-LOW", "total_cents": -1, "records": 99}
    rows = (others | order._asdict() | {"order_bucket": order.order_bucket} for order in orders)
    return build_frame(spark, STAGING_ORDERS, rows)


def collect_features(orders: DataFrame) -> dict[Key, Features]:
    rows = build_customer_orders(orders).collect()
    features = {
        (row.order_bucket, row.customer_key): Features(*(row[name] for name in Features._fields))
        for row in rows
    }
    assert len(features) == len(rows)
    return features


def after(days: int) -> dt.date:
    return DAY + dt.timedelta(days=days)


def test_columns_are_those_of_the_table(spark: SparkSession) -> None:
    features = build_customer_orders(build_orders(spark, Order(1)))
    assert features.dtypes == list_types(CUSTOMER_ORDERS)


def test_customer_has_one_row_in_each_bucket_with_orders(spark: SparkSession) -> None:
    features = collect_features(
        build_orders(
            spark,
            Order(1, 5, after(3), 3_000_000_000, lines=4, returned_lines=1, late_lines=2),
            Order(2, 5, after(-400), 3_000_000_000, lines=3, returned_lines=0, late_lines=3),
            Order(STEP - 1, 5, after(1), 1, lines=2, returned_lines=1, late_lines=0),
            Order(STEP, 5, after(9), 7, lines=7, returned_lines=7),
            Order(3, 6, after(0), 0, lines=1, late_lines=1),
        )
    )
    assert features == {
        (0, 5): Features(3, 9, 6_000_000_001, after(-400), after(3), 5 / 9, 2 / 9),
        (STEP, 5): Features(1, 7, 7, after(9), after(9), 0.0, 1.0),
        (0, 6): Features(1, 1, 0, DAY, DAY, 1.0, 0.0),
    }


def test_shares_of_no_lines_are_null(spark: SparkSession) -> None:
    features = collect_features(build_orders(spark, Order(1, lines=0), Order(2, lines=0)))
    assert features == {(0, 370): Features(2, 0, 200, DAY, DAY, None, None)}


def draw_orders(count: int) -> list[Order]:
    chosen = random.Random(19960102)
    orders = []
    for number in range(count):
        lines = chosen.randrange(1, 8)
        orders.append(
            Order(
                order_key=chosen.randrange(3) * STEP + number,
                customer_key=chosen.randrange(25),
                order_date=after(chosen.randrange(2_400)),
                net_cents=chosen.randrange(50_000_000),
                lines=lines,
                returned_lines=chosen.randrange(lines + 1),
                late_lines=chosen.randrange(lines + 1),
            )
        )
    return orders


def compute_features(orders: list[Order]) -> Features:
    dates = sorted(order.order_date for order in orders)
    lines = sum(order.lines for order in orders)
    return Features(
        orders=len(orders),
        lines=lines,
        net_cents=sum(order.net_cents for order in orders),
        first_order_date=dates[0],
        last_order_date=dates[-1],
        late_share=sum(order.late_lines for order in orders) / lines,
        returned_share=sum(order.returned_lines for order in orders) / lines,
    )


def test_features_are_exact_however_the_work_is_split(spark: SparkSession) -> None:
    orders = draw_orders(200)
    keys = {(order.order_bucket, order.customer_key) for order in orders}
    assert 50 < len(keys) < 75
    expected = {
        key: compute_features([o for o in orders if (o.order_bucket, o.customer_key) == key])
        for key in keys
    }
    assert collect_features(build_orders(spark, *orders).repartition(1)) == expected
    random.Random(1).shuffle(orders)
    assert collect_features(build_orders(spark, *orders).repartition(7, "lines")) == expected
