"""Orders, in buckets of their key: raw/orders → staging/orders → features/customer_orders."""

from pyspark.sql import DataFrame

from backfill_assets.tables.orders import (
    CUSTOMER_ORDERS,
    LANDED_LINE_FIELDS,
    LANDED_ORDER_FIELDS,
    RAW_ORDERS,
    STAGING_ORDERS,
)
from backfill_assets.transforms.customer_orders import build_customer_orders
from backfill_assets.transforms.raw_orders import build_raw_orders
from backfill_assets.transforms.staging_orders import build_counted_orders
from backfill_engine import InputWindow, ParquetLanding, Upstream, table_asset

_LANDING = ParquetLanding(
    "orders",
    keys=(("orders", "o_orderkey"), ("lineitem", "l_orderkey")),
    space_setting="BACKFILL_ORDER_KEY_SPACE",
    fields=(("orders", LANDED_ORDER_FIELDS), ("lineitem", LANDED_LINE_FIELDS)),
)


@table_asset(RAW_ORDERS, landing=_LANDING)
def raw_orders(window: InputWindow) -> DataFrame:
    """One row per landed record, an order or one of its lines; a partition is a bucket of keys.

    Everything that landed, typed; nothing is dropped, joined or deduplicated. A record without a
    key is rejected.
    """
    return build_raw_orders(window.read_landing("orders"), window.read_landing("lineitem"))


@table_asset(STAGING_ORDERS, inputs=[Upstream(RAW_ORDERS)])
def staging_orders(window: InputWindow) -> DataFrame:
    """One row per order with its lines summed up; a partition is a bucket of keys.

    A record that landed twice counts once. A line without its order holds the bucket back.
    """
    return build_counted_orders(window.read(RAW_ORDERS, column="order_bucket"))


@table_asset(CUSTOMER_ORDERS, inputs=[Upstream(STAGING_ORDERS)])
def customer_orders(window: InputWindow) -> DataFrame:
    """One row per customer and bucket of keys in which the customer ordered.

    Counts, sums, days of the first and the last order, and shares of lines late or sent back.
    """
    return build_customer_orders(window.read(STAGING_ORDERS, column="order_bucket"))
