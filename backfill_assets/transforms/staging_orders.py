"""`raw/orders` → `staging/orders`: one row an order, with its lines summed up."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from backfill_assets.tables.orders import LINE, ORDER, RAW_ORDERS, STAGING_ORDERS
from backfill_assets.transforms.latest import keep_latest
from backfill_engine.audit_columns import DUPLICATES, IDENTICAL

_KEY = ("order_bucket", "order_key")
_RECORD_KEY = (*_KEY, "record", "line_number")


def build_staging_orders(raw: DataFrame) -> DataFrame:
    """Builds the columns of `STAGING_ORDERS` only, as `build_counted_orders` does."""
    return build_counted_orders(raw).select(*STAGING_ORDERS.column_names)


def build_counted_orders(raw: DataFrame) -> DataFrame:
    """Puts orders together; of a record that landed twice the greater by its columns counts.

    Args:
        raw: columns of `RAW_ORDERS`.

    Returns:
        The columns of `STAGING_ORDERS`, and the audit columns `_duplicates` and `_identical`. Lines
        without an order and orders without a line make no row: what they lack shows in the sum of
        `records`.
    """
    records = keep_latest(raw.select(*RAW_ORDERS.column_names), _RECORD_KEY, ())
    is_order, is_line = F.col("record") == ORDER, F.col("record") == LINE
    is_late = is_line & (F.col("receipt_date") > F.col("commit_date"))
    of_order = ("customer_key", "order_status", "order_date", "order_priority", "total_cents")
    net = F.when(is_line, F.col("price_cents") * (100 - F.col("discount_percent")))
    orders = records.groupBy(*_KEY).agg(
        # A record of the order, of which there is one now, has these, and its lines have none.
        *(F.max(F.when(is_order, F.col(name))).alias(name) for name in of_order),
        F.count_if(is_order).alias("orders"),
        # Null if a price is, so that the order isn't published for less.
        F.when(F.count_if(is_line & net.isNull()) == 0, F.sum(net)).alias("net_hundredths"),
        F.count_if(is_line).alias("lines"),
        F.count_if(is_line & (F.col("return_flag") == "R")).alias("returned_lines"),
        F.count_if(is_late).alias("late_lines"),
        F.sum(F.col(DUPLICATES) + 1).alias("records"),
        *(F.sum(name).alias(name) for name in (DUPLICATES, IDENTICAL)),
    )
    # Summed up in hundredths of a cent and rounded last, half up.
    rounded = F.col("net_hundredths") + 50
    net_cents = F.call_function("div", rounded - F.pmod(rounded, F.lit(100)), F.lit(100))
    return (
        orders.where((F.col("orders") > 0) & (F.col("lines") > 0))
        .withColumn("net_cents", net_cents)
        .select(*STAGING_ORDERS.column_names, DUPLICATES, IDENTICAL)
    )
