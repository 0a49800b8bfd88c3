"""The sample's orders as the pipeline's tables hold them, made with pandas."""

import functools
import tempfile
from pathlib import Path

import pandas as pd
import pyarrow.parquet as pq

from backfill_assets.samples.orders import land_orders

SCALE, STEP = 0.02, 10_000
"""30,000 orders with keys up to 120,000: twelve buckets, and one order of a thirteenth."""

_ORDERS = {
    "o_orderkey": "order_key",
    "o_custkey": "customer_key",
    "o_totalprice": "total_cents",
    "o_orderdate": "order_date",
}


@functools.cache
def build_orders() -> pd.DataFrame:
    """`staging/orders`: a row an order."""
    with tempfile.TemporaryDirectory() as root:
        land_orders(root, scale=SCALE)
        folder = Path(root) / "orders"
        orders = pq.read_table(folder / "orders", columns=list(_ORDERS)).to_pandas()
        lines = pq.read_table(folder / "lineitem").to_pandas()
    price, discount = (lines[f"l_{name}"].astype(float) for name in ("extendedprice", "discount"))
    sums = (
        lines.assign(
            net_cents=price * 100 * (1 - discount),
            late_lines=lines["l_receiptdate"] > lines["l_commitdate"],
            returned_lines=lines["l_returnflag"] == "R",
            lines=1,
        )
        .groupby("l_orderkey")[["net_cents", "lines", "late_lines", "returned_lines"]]
        .sum()
    )
    both = orders.rename(columns=_ORDERS).join(sums, on="order_key")
    return both.assign(
        total_cents=both["total_cents"].astype(float) * 100,
        net_cents=both["net_cents"].round(),
        records=1 + both["lines"],
        order_bucket=(both["order_key"] // STEP * STEP).map("{:07}".format),
    )


@functools.cache
def build_customers() -> pd.DataFrame:
    """`features/customer_orders`: a row a customer and bucket."""
    customers = (
        build_orders()
        .groupby(["order_bucket", "customer_key"])
        .agg(
            orders=("lines", "size"),
            lines=("lines", "sum"),
            net_cents=("net_cents", "sum"),
            first_order_date=("order_date", "min"),
            last_order_date=("order_date", "max"),
            late_lines=("late_lines", "sum"),
            returned_lines=("returned_lines", "sum"),
        )
        .reset_index()
    )
    return customers.assign(
        late_share=customers["late_lines"] / customers["lines"],
        returned_share=customers["returned_lines"] / customers["lines"],
    )
