"""`raw/orders` → `staging/orders`: one row an order, with its lines summed up."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from backfill_assets.tables.orders import LINE, ORDER, RAW_ORDERS, STAGING_ORDERS

_KEY = ("order_bucket", "order_key")
_RECORD_KEY = (*_KEY, "record", "line_number")


def build_staging_orders(raw: DataFrame) -> DataFrame:
    """Puts orders together; of a record that landed twice the greater by its columns counts.

    Args:
        raw: columns of `RAW_ORDERS`.

    Returns:
        The columns of `STAGING_ORDERS`. Lines without an order and orders without a line make no
        row: what they lack shows in the sum of `records`.
    """
    payload = [name for name in RAW_ORDERS.column_names if name not in _RECORD_KEY]
    records = (
        raw.groupBy(*_RECORD_KEY)
        .agg(F.max(F.struct(*payload)).alias("latest"), F.count("*").alias("landed"))
        .select(*_RECORD_KEY, "latest.*", "landed")
    )
    is_line = F.col("record") == LINE
    is_late = is_line & (F.col("receipt_date") > F.col("commit_date"))
    of_order = ("customer_key", "order_status", "order_date", "order_priority", "total_cents")
    net = F.when(is_line, F.col("price_cents") * (100 - F.col("discount_percent")))
    orders = records.groupBy(*_KEY).agg(
        F.max(F.when(F.col("record") == ORDER, F.struct(*of_order))).alias("order"),
        # Null if a price is, so that the order isn't published for less.
        F.when(F.count_if(is_line & net.isNull()) == 0, F.sum(net)).alias("net_hundredths"),
        F.count_if(is_line).alias("lines"),
        F.count_if(is_line & (F.col("return_flag") == "R")).alias("returned_lines"),
        F.count_if(is_late).alias("late_lines"),
        F.sum("landed").alias("records"),
    )
    # Summed up in hundredths of a cent and rounded last, half up.
    rounded = F.col("net_hundredths") + 50
    net_cents = F.call_function("div", rounded - F.pmod(rounded, F.lit(100)), F.lit(100))
    return (
        orders.where(F.col("order").isNotNull() & (F.col("lines") > 0))
        .select("*", "order.*", net_cents.alias("net_cents"))
        .select(*STAGING_ORDERS.column_names)
    )
