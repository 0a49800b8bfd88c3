"""Writes the side tables; see `lake.side_tables`."""

import datetime as dt
from collections.abc import Sequence

from pyspark.sql import DataFrame, SparkSession

from backfill_engine.lake.ledger import enter_table
from backfill_engine.lake.locks import hold_lock
from backfill_engine.lake.partitions import build_table_predicate
from backfill_engine.lake.slices import Slice
from backfill_engine.lake.warehouse import Warehouse
from backfill_engine.lake.writer import retry_conflicts
from backfill_engine.tables.declarations import Table


def append_rows(frame: DataFrame, *, warehouse: Warehouse, table: Table) -> None:
    """Appends rows to a side table; columns that it lacks are added."""
    with hold_lock(warehouse, table.place) as lock:
        for attempt in retry_conflicts(lock):
            with attempt:
                frame.write.format("delta").mode("append").option("mergeSchema", "true").save(
                    warehouse.uri(table)
                )
        enter_table(warehouse, table.key)


def replace_rows(
    frame: DataFrame, *, warehouse: Warehouse, table: Table, slices: Sequence[Slice]
) -> None:
    """Replaces the rows of a side table in `slices` of its partition column."""
    with hold_lock(warehouse, table.place) as lock:
        for attempt in retry_conflicts(lock):
            with attempt:
                (
                    frame.select(*table.column_names)
                    .write.format("delta")
                    .mode("overwrite")
                    .option("replaceWhere", build_table_predicate(table, slices))
                    .save(warehouse.uri(table))
                )
        enter_table(warehouse, table.key)


def delete_rows_before(
    spark: SparkSession, warehouse: Warehouse, table: Table, column: str, day: dt.date
) -> None:
    """Deletes the rows of a side table whose `column` lies before `day`."""
    with hold_lock(warehouse, table.place) as lock:
        lock.check()
        spark.sql(
            f"DELETE FROM delta.`{warehouse.uri(table)}` WHERE `{column}` < DATE'{day.isoformat()}'"
        )
