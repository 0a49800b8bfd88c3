"""The orders pipeline: what lands of orders and their lines, whole orders, and customers' features.

Partitions are buckets of the order key, a number that the source only counts up.
"""

from backfill_assets.tables.order_buckets import ORDER_BUCKETS as ORDER_BUCKETS
from backfill_assets.tables.owners import OWNERS
from backfill_engine import Column, Table, required
from backfill_engine.rules import (
    Agreement,
    Drift,
    Nulls,
    Reconciled,
    Rejects,
    RowCount,
    Values,
    Variation,
)

ORDER, LINE = "order", "line"
"""Values of `raw/orders.record`."""

TOTAL_EDGES = (5_000_000, 10_000_000, 15_000_000, 20_000_000, 30_000_000)
"""Cents: sixths of TPC-H's orders, roughly."""

LATE_EDGES, RETURNED_EDGES = (0.2,), (0.95,)
"""Shares that a few lines reach as well as many."""

_LEAST_CENTS, _MOST_CENTS = 80_000, 10_500_000
"""Of a line less its discount: 1 to 50 units of a part for 900 to 2,100 dollars, up to 10 % off."""

_BUCKET = required("order_bucket", "BIGINT", "First order key of the bucket that the order is in")
_ORDER_FIELDS = (
    Column("customer_key", "BIGINT", "Customer; null for a line"),
    Column("order_status", "STRING", "F filled, O open, P in part; null for a line"),
    Column("total_cents", "BIGINT", "Price of the order with discounts and taxes; null for a line"),
    Column("order_date", "DATE", "Day of the order; null for a line"),
    Column("order_priority", "STRING", "From 1-URGENT to 5-LOW; null for a line"),
)
_LINE_FIELDS = (
    Column("line_number", "INT", "Position in the order, from 1; null for an order"),
    Column("part_key", "BIGINT", "Part; null for an order"),
    Column("supplier_key", "BIGINT", "Supplier; null for an order"),
    Column("quantity", "DOUBLE", "Units; null for an order"),
    Column("price_cents", "BIGINT", "Price before discount and tax; null for an order"),
    Column("discount_percent", "INT", "0 to 100; null for an order"),
    Column("tax_percent", "INT", "0 to 100; null for an order"),
    Column("return_flag", "STRING", "R returned, A accepted, N neither; null for an order"),
    Column("ship_date", "DATE", "Day of shipment; null for an order"),
    Column("commit_date", "DATE", "Day by which it was promised; null for an order"),
    Column("receipt_date", "DATE", "Day on which it arrived; null for an order"),
)

LANDED_ORDER_FIELDS = (
    required("o_orderkey", "BIGINT", "The order"),
    Column("o_custkey", "BIGINT", "Customer"),
    Column("o_orderstatus", "STRING", "F filled, O open, P in part"),
    Column("o_totalprice", "DECIMAL(15,2)", "Price with discounts and taxes"),
    Column("o_orderdate", "DATE", "Day of the order"),
    Column("o_orderpriority", "STRING", "From 1-URGENT to 5-LOW"),
)
"""The columns of a landed file of orders that `raw/orders` is made of."""

LANDED_LINE_FIELDS = (
    required("l_orderkey", "BIGINT", "The order"),
    Column("l_linenumber", "INT", "Position in the order, from 1"),
    Column("l_partkey", "BIGINT", "Part"),
    Column("l_suppkey", "BIGINT", "Supplier"),
    Column("l_quantity", "DECIMAL(15,2)", "Units"),
    Column("l_extendedprice", "DECIMAL(15,2)", "Price before discount and tax"),
    Column("l_discount", "DECIMAL(15,2)", "Share, 0 to 1"),
    Column("l_tax", "DECIMAL(15,2)", "Share, 0 to 1"),
    Column("l_returnflag", "STRING", "R returned, A accepted, N neither"),
    Column("l_shipdate", "DATE", "Day of shipment"),
    Column("l_commitdate", "DATE", "Day by which it was promised"),
    Column("l_receiptdate", "DATE", "Day on which it arrived"),
)
"""The columns of a landed file of lines, likewise."""

RAW_ORDERS = Table(
    owners=OWNERS,
    layer="raw",
    name="orders",
    partition_by="order_bucket",
    grain=ORDER_BUCKETS,
    columns=(
        _BUCKET,
        required("order_key", "BIGINT", "The order, also of a line"),
        required("record", "STRING", f"`{ORDER}` or `{LINE}`"),
        *_ORDER_FIELDS,
        *_LINE_FIELDS,
        required("source_file", "STRING", "Landing file, below the landing root"),
    ),
    rules=(
        # Of the newest bucket, which is still being filled, few rows are no warning.
        RowCount(ratio=(0.5, 2.0)),
        Reconciled(),
        Rejects(at_most=0.01),
        Values("discount_percent", 0, 100),
        Values("tax_percent", 0, 100),
        Values("line_number", 1, 7),
    ),
)

STAGING_ORDERS = Table(
    owners=OWNERS,
    layer="staging",
    name="orders",
    partition_by="order_bucket",
    grain=ORDER_BUCKETS,
    columns=(
        _BUCKET,
        required("order_key", "BIGINT", "The order"),
        required("customer_key", "BIGINT", "Who ordered"),
        required("order_status", "STRING", "F filled, O open, P in part"),
        required("order_date", "DATE", "Day of the order"),
        required("order_priority", "STRING", "From 1-URGENT to 5-LOW"),
        required("total_cents", "BIGINT", "Price with discounts and taxes, as the order says"),
        required("net_cents", "BIGINT", "Prices of the lines less their discounts"),
        required("lines", "BIGINT", "Lines of the order"),
        required("returned_lines", "BIGINT", "Lines that were sent back"),
        required("late_lines", "BIGINT", "Lines that arrived after the day that was promised"),
        required("records", "BIGINT", "Landed records that this row is of"),
    ),
    natural_key=("order_key",),
    rules=(
        RowCount(ratio=(0.5, 2.0), ratio_only_warns="a bucket fills for days"),
        # A line whose order never landed is in no row, and so holds its bucket back.
        Reconciled(total_of="records"),
        Values("lines", 1, 7),
        Values("net_cents", 0, 100_000_000),
        Drift("total_cents", TOTAL_EDGES),
    ),
)

CUSTOMER_ORDERS = Table(
    owners=OWNERS,
    layer="features",
    name="customer_orders",
    partition_by="order_bucket",
    grain=ORDER_BUCKETS,
    columns=(
        _BUCKET,
        required("customer_key", "BIGINT", "The customer"),
        required("orders", "BIGINT", "Orders in the bucket"),
        required("lines", "BIGINT", "Lines of these"),
        required("net_cents", "BIGINT", "Their prices less discounts"),
        required("first_order_date", "DATE", "Earliest day of these orders"),
        required("last_order_date", "DATE", "Latest day of these orders"),
        Column("late_share", "DOUBLE", "Share of the lines that arrived late"),
        Column("returned_share", "DOUBLE", "Share of the lines that were sent back"),
    ),
    natural_key=("customer_key",),
    rules=(
        RowCount(ratio=(0.8, 1.25), ratio_only_warns="a bucket fills for days"),
        Reconciled(total_of="orders"),
        Nulls("late_share", at_most=0.0),
        Nulls("returned_share", at_most=0.0),
        Values("late_share", 0, 1),
        Values("returned_share", 0, 1),
        Agreement("lines", "lines BETWEEN orders AND 7 * orders"),
        Agreement(
            "net_cents", f"net_cents BETWEEN {_LEAST_CENTS} * lines AND {_MOST_CENTS} * lines"
        ),
        Agreement("last_order_date", "last_order_date >= first_order_date"),
        *(Variation(column) for column in ("net_cents", "first_order_date", "last_order_date")),
        # Sums of a customer grow as a bucket is filled; these shares hardly move: 0.08.
        Drift("late_share", LATE_EDGES, only_warns="shares move as a bucket fills"),
        Drift("returned_share", RETURNED_EDGES, only_warns="shares move as a bucket fills"),
    ),
)
