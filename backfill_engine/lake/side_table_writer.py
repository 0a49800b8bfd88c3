"""Writes the side tables, and moves the production watermark, forward only."""

import datetime as dt
from collections.abc import Iterable, Sequence

from pyspark.sql import DataFrame, SparkSession

from backfill_engine.engines.engine import NewTable
from backfill_engine.engines.sessions import find_engine
from backfill_engine.lake.locks import hold_lock
from backfill_engine.lake.partitions import Partition, Slice, build_table_predicate, merge_slices
from backfill_engine.lake.side_tables import enter_table
from backfill_engine.lake.warehouse import Warehouse
from backfill_engine.lake.watermarks import (
    WATERMARKS,
    Watermark,
    locate_watermarks,
    read_watermarks,
)
from backfill_engine.lake.writer import retry_conflicts
from backfill_engine.tables.declarations import Table


def write_rows(
    frame: DataFrame, *, warehouse: Warehouse, table: Table, slices: Sequence[Slice] = ()
) -> None:
    """Replaces the rows of a side table in `slices` of its partition column, all that it declares.

    Without slices it appends rows, and adds columns that the table lacks.
    """
    engine, uri = find_engine(frame.sparkSession), warehouse.uri(table)
    with hold_lock(warehouse, table.place) as lock:
        if slices:
            rows, replaced = frame.select(*table.column_names), build_table_predicate(table, slices)
            retry_conflicts(lock)(engine.overwrite, rows, uri, replaced)
        else:
            retry_conflicts(lock)(engine.append, frame, uri)
        enter_table(warehouse, table.key)


def delete_rows_before(
    spark: SparkSession, warehouse: Warehouse, table: Table, column: str, day: dt.date
) -> None:
    """Deletes the rows of a side table whose `column` lies before `day`."""
    with hold_lock(warehouse, table.place) as lock:
        lock.check()
        find_engine(spark).run_statement(
            spark,
            warehouse.uri(table),
            f"DELETE FROM {{table}} WHERE `{column}` < DATE'{day.isoformat()}'",
        )


def move_watermark(
    spark: SparkSession,
    warehouse: Warehouse,
    table: Table,
    done: Iterable[Partition],
    *,
    first: Partition,
    run_id: str,
    now: dt.datetime,
) -> Watermark | None:
    """Moves the watermark of a table over partitions that a run has published, forward only.

    Only if they reach on from where it stands: a partition in between that nobody has processed
    would be skipped for ever. Delta decides that, in the statement that moves it, so that of two
    runs that move it at once neither takes it back nor over a gap.

    Args:
        spark: the session.
        warehouse: where the watermarks are.
        table: the table.
        done: published partitions, complete ones only, in any order.
        first: the table's first partition, where the watermark of a new table stands.
        run_id: the run.
        now: UTC.

    Returns:
        Where it stands if it was moved; else None.
    """
    grain = table.grain
    standing = read_watermarks(warehouse).get(table.key)
    number = standing.number if standing else grain.find_number(first.slice.start)
    reached = [
        part
        for part in merge_slices(partition.slice for partition in done)
        if grain.find_number(part.start) <= number < grain.find_number(part.end)
    ]
    if not reached:
        return None
    (stretch,) = reached
    moved = Watermark(
        table.key, grain.find_key(stretch.end), grain.find_number(stretch.end), run_id, now
    )
    source = spark.createDataFrame(
        [
            (
                *(moved.table, moved.next_key, moved.number, moved.run_id, moved.moved_at),
                grain.find_number(stretch.start),
                grain.find_number(first.slice.start),
            )
        ],
        f"{_COLUMNS}, done_from bigint, first bigint",
    )
    with hold_lock(warehouse, WATERMARKS) as lock:
        retry_conflicts(lock)(_merge, spark, warehouse, source)
        enter_table(warehouse, WATERMARKS)
    after = read_watermarks(warehouse).get(table.key)
    return after if after == moved else None


_COLUMNS = "`table` string, next_key string, number bigint, run_id string, moved_at timestamp"


def _merge(spark: SparkSession, warehouse: Warehouse, source: DataFrame) -> None:
    uri = locate_watermarks(warehouse)
    engine = find_engine(spark)
    engine.create_table(spark, NewTable(uri, _COLUMNS))
    values = "`table`, next_key, number, run_id, moved_at"
    engine.run_statement(
        spark,
        uri,
        "MERGE INTO {table} AS standing USING {moved} AS moved "
        "ON standing.`table` = moved.`table` "
        "WHEN MATCHED AND standing.number >= moved.done_from AND standing.number < moved.number "
        "THEN UPDATE SET next_key = moved.next_key, number = moved.number, "
        "run_id = moved.run_id, moved_at = moved.moved_at "
        f"WHEN NOT MATCHED AND moved.done_from <= moved.first THEN INSERT ({values}) "
        f"VALUES ({', '.join(f'moved.{name.strip()}' for name in values.split(','))})",
        moved=source,
    )
