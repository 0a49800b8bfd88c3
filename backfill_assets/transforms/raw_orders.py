"""Landed orders and lines → `raw/orders`: everything that landed, in one table."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from backfill_assets.tables.orders import LINE, ORDER, RAW_ORDERS
from backfill_engine.audit_columns import REJECT_REASON, REJECTED_LINE


def build_raw_orders(orders: DataFrame, lines: DataFrame) -> DataFrame:
    """Builds one row for each landed record; nothing is joined, dropped or deduplicated.

    Args:
        orders: columns of TPC-H's ORDERS, `order_bucket` BIGINT and `source_file` STRING.
        lines: columns of TPC-H's LINEITEM, `order_bucket` and `source_file` likewise.

    Returns:
        The columns of `RAW_ORDERS`, and the audit columns `_reject_reason` and `_rejected_line`: a
        record without a key is rejected, and its line is the record as JSON. Amounts of money are
        cents and shares are percent: integers, so that no order of adding them up changes a sum.
    """
    of_orders = orders.select(
        "order_bucket",
        F.col("o_orderkey").alias("order_key"),
        F.lit(ORDER).alias("record"),
        F.col("o_custkey").alias("customer_key"),
        F.col("o_orderstatus").alias("order_status"),
        _hundredths("o_totalprice").alias("total_cents"),
        F.col("o_orderdate").alias("order_date"),
        F.col("o_orderpriority").alias("order_priority"),
        "source_file",
        *_reject_without_key(orders, "o_orderkey"),
    )
    of_lines = lines.select(
        "order_bucket",
        F.col("l_orderkey").alias("order_key"),
        F.lit(LINE).alias("record"),
        F.col("l_linenumber").alias("line_number"),
        F.col("l_partkey").alias("part_key"),
        F.col("l_suppkey").alias("supplier_key"),
        F.col("l_quantity").cast("double").alias("quantity"),
        _hundredths("l_extendedprice").alias("price_cents"),
        _hundredths("l_discount").cast("int").alias("discount_percent"),
        _hundredths("l_tax").cast("int").alias("tax_percent"),
        F.col("l_returnflag").alias("return_flag"),
        F.col("l_shipdate").alias("ship_date"),
        F.col("l_commitdate").alias("commit_date"),
        F.col("l_receiptdate").alias("receipt_date"),
        "source_file",
        *_reject_without_key(lines, "l_orderkey"),
    )
    records = of_orders.unionByName(of_lines, allowMissingColumns=True)
    return records.select(*RAW_ORDERS.column_names, REJECT_REASON, REJECTED_LINE)


def _reject_without_key(records: DataFrame, key: str) -> tuple[Column, Column]:
    is_without = F.col(key).isNull()
    record = F.to_json(F.struct(*records.columns), {"ignoreNullFields": "false"})
    return (
        F.when(is_without, f"`{key}` is null").alias(REJECT_REASON),
        F.when(is_without, record).alias(REJECTED_LINE),
    )


def _hundredths(amount: str) -> Column:
    """Converts a DECIMAL with two digits behind the point to exact hundredths."""
    return (F.col(amount) * 100).cast("bigint")
