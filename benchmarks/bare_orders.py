"""The orders pipeline as a bare PySpark script, the yardstick for the project's range runs.

As `bare_script` for flights: the landed Parquet read by Spark, the project's own transforms and
settings, one `replaceWhere` write a layer over all buckets. No Dagster, no audit, no persisted
frame, no row for each partition, no locks.
"""

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from backfill_assets.tables.orders import LANDED_LINE_FIELDS, LANDED_ORDER_FIELDS
from backfill_assets.transforms.customer_orders import build_customer_orders
from backfill_assets.transforms.raw_orders import build_raw_orders
from backfill_assets.transforms.staging_orders import build_staging_orders
from backfill_engine.tables.declarations import Column, build_ddl
from backfill_engine_tests.project import CUSTOMER_ORDERS, RAW_ORDERS, STAGING_ORDERS
from benchmarks.bare_tables import BareTables, start_session


class BareOrders:
    """All buckets of `step` keys each, from key 0 to below `end`."""

    def __init__(self, tables: BareTables, landing: Path, *, step: int, end: int) -> None:
        self._tables = tables
        self._landing = landing
        self._step = step
        self._end = end
        self._buckets = f"`order_bucket` >= 0 AND `order_bucket` < {end}"

    def write_raw(self) -> None:
        """Every landed order and line."""
        orders = self._read_landed("orders", "o_orderkey", LANDED_ORDER_FIELDS)
        lines = self._read_landed("lineitem", "l_orderkey", LANDED_LINE_FIELDS)
        self._tables.overwrite(RAW_ORDERS, build_raw_orders(orders, lines), self._buckets)

    def write_staging(self) -> None:
        """Whole orders."""
        raw = self._tables.read(RAW_ORDERS, self._buckets)
        self._tables.overwrite(STAGING_ORDERS, build_staging_orders(raw), self._buckets)

    def write_features(self) -> None:
        """What customers ordered, by bucket."""
        orders = self._tables.read(STAGING_ORDERS, self._buckets)
        self._tables.overwrite(CUSTOMER_ORDERS, build_customer_orders(orders), self._buckets)

    def _read_landed(self, kind: str, key: str, fields: Sequence[Column]) -> DataFrame:
        """Reads `fields`, `order_bucket` BIGINT and `source_file` STRING of one kind of file."""
        name = F.substring_index("_metadata.file_path", "/", -2)  # KIND/NAME
        return (
            self._tables.spark.read.schema(build_ddl(fields, constraints=False))
            .parquet(str(self._landing / "orders" / kind))
            .withColumn("source_file", F.concat(F.lit("orders/"), name))
            .where(f"`{key}` >= 0 AND `{key}` < {self._end}")
            .withColumn("order_bucket", F.col(key) - F.pmod(F.col(key), F.lit(self._step)))
        )


def main() -> None:
    """Creates the three tables in an absent warehouse and fills all buckets."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("step", type=int, help="order keys in a bucket")
    parser.add_argument("end", type=int, help="the key after the last one")
    parser.add_argument("--landing", type=Path, required=True)
    parser.add_argument("--warehouse", type=Path, required=True)
    parser.add_argument("--spark-conf", type=json.loads, default={}, help="settings, as JSON")
    options = parser.parse_args()

    tables = BareTables(start_session(options.spark_conf), options.warehouse)
    script = BareOrders(tables, options.landing, step=options.step, end=options.end)
    for table in (RAW_ORDERS, STAGING_ORDERS, CUSTOMER_ORDERS):
        tables.create(table)
    script.write_raw()
    script.write_staging()
    script.write_features()
    tables.spark.stop()


if __name__ == "__main__":
    main()
