"""`staging/orders` → `features/customer_orders`: what a customer ordered in a bucket."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from backfill_assets.tables.orders import CUSTOMER_ORDERS


def build_customer_orders(orders: DataFrame) -> DataFrame:
    """Aggregates the orders of each customer and bucket.

    Args:
        orders: columns of `STAGING_ORDERS`.

    Returns:
        The columns of `CUSTOMER_ORDERS`.
    """
    return (
        orders.groupBy("order_bucket", "customer_key")
        .agg(
            F.count("*").alias("orders"),
            F.sum("lines").alias("lines"),
            F.sum("net_cents").alias("net_cents"),
            F.min("order_date").alias("first_order_date"),
            F.max("order_date").alias("last_order_date"),
            _share_of_lines("late_lines").alias("late_share"),
            _share_of_lines("returned_lines").alias("returned_share"),
        )
        .select(*CUSTOMER_ORDERS.column_names)
    )


def _share_of_lines(counted: str) -> Column:
    return F.try_divide(F.sum(counted), F.sum("lines"))
