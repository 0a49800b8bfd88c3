"""Keeps what isn't published: withheld partitions and rejected records, in tables of their own."""

import datetime as dt
from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from backfill_engine.audit_columns import (
    AUDIT_COLUMNS,
    ENGINE_PREFIX,
    LANDED_FILE,
    REJECT_REASON,
    REJECTED_FILE,
    REJECTED_LINE,
)
from backfill_engine.lake.landing import FileFault
from backfill_engine.lake.partitions import build_table_predicate, find_folder
from backfill_engine.lake.reader import add_folder, build_number
from backfill_engine.lake.side_table_writer import (
    delete_rows_before,
    write_rows,
)
from backfill_engine.lake.side_tables import (
    REJECTED_ON,
    WITHHELD_ON,
    build_quarantine_table,
    build_withheld_table,
    name_withheld,
)
from backfill_engine.lake.table_log import read_log
from backfill_engine.lake.writer import create_table
from backfill_engine.publishing.results import PartitionResult, Run, describe_failures
from backfill_engine.sources.input_window import InputWindow
from backfill_engine.tables.columns import Column, build_ddl

_NUMBER = f"{ENGINE_PREFIX}number"
_REJECTED = tuple(Column(name, "STRING", "") for name in (LANDED_FILE, "reason", "line"))


def keep_withheld_rows(
    rows: DataFrame,
    window: InputWindow,
    results: Sequence[PartitionResult],
    run: Run,
    *,
    retention_days: int,
) -> None:
    """Appends the rows of withheld partitions with run and reason; drops what is too old.

    Args:
        rows: columns of the window's table and maybe audit columns, of the withheld partitions and
            maybe others.
        window: says which table and session.
        results: the withheld partitions.
        run: the run.
        retention_days: for how many days withheld rows are kept.
    """
    side_table = build_withheld_table(window.table)
    warehouse, today = window.target.warehouse, run.started_at.date()
    by_key = {partition.key: partition for partition in window.partitions}
    withheld = [by_key[result.key] for result in results if result.measures.rows]
    if not withheld:
        return
    grain = window.table.grain
    reasons = window.spark.createDataFrame(
        [
            (
                grain.find_number(by_key[result.key].slice.start),
                result.key,
                describe_failures(result.verdict),
            )
            for result in results
        ],
        f"{_NUMBER} bigint, partition_key string, reason string",
    )
    create_table(window.spark, read_log(warehouse, side_table))
    write_rows(
        rows.where(build_table_predicate(window.table, (partition.slice for partition in withheld)))
        .drop(*AUDIT_COLUMNS)
        .withColumn(_NUMBER, build_number(grain, window.table.partition_by))
        .withColumnsRenamed(name_withheld(rows.columns))
        .join(F.broadcast(reasons), _NUMBER, "inner")
        .drop(_NUMBER)
        .withColumns({WITHHELD_ON: F.lit(today), "run_id": F.lit(run.run_id)}),
        warehouse=warehouse,
        table=side_table,
    )
    oldest = today - dt.timedelta(days=retention_days)
    delete_rows_before(window.spark, warehouse, side_table, WITHHELD_ON, oldest)


def keep_rejected_records(
    frame: DataFrame,
    window: InputWindow,
    results: Sequence[PartitionResult],
    broken_files: Sequence[FileFault],
    run: Run,
) -> None:
    """Replaces the quarantined records of the window's partitions by those of this run.

    Nothing is written where there are none and were none.
    """
    side_table = build_quarantine_table(window.table)
    warehouse, today = window.target.warehouse, run.started_at.date()
    before = read_log(warehouse, side_table).count_folder_rows()
    rejecting = {result.key for result in results if result.measures.rejects}
    rejecting |= {broken.partition.key for broken in broken_files}
    touched = [
        partition
        for partition in window.partitions
        if partition.key in rejecting or before.get(find_folder(side_table, partition))
    ]
    if not touched:
        return
    by = [column for column in side_table.columns if column.name == side_table.partition_by]
    find_stored = window.table.grain.find_stored
    records = window.spark.createDataFrame(
        [
            (
                find_stored(broken.partition.slice.start),
                broken.name,
                f"the file {broken.fault}",
                None,
            )
            for broken in broken_files
        ],
        build_ddl((*by, *_REJECTED), constraints=False),
    )
    if REJECT_REASON in frame.columns:
        names = [name for name in (LANDED_FILE, REJECTED_FILE) if name in frame.columns]
        file = F.col(names[0]) if names else F.lit("")
        rejected = frame.where(F.col(REJECT_REASON).isNotNull()).select(
            *(column.name for column in by),
            file.alias(LANDED_FILE),
            F.col(REJECT_REASON).alias("reason"),
            F.col(REJECTED_LINE).alias("line"),
        )
        records = rejected.unionByName(records)
    records = records.withColumns({REJECTED_ON: F.lit(today), "run_id": F.lit(run.run_id)})
    slices = [partition.slice for partition in touched]
    create_table(window.spark, read_log(warehouse, side_table))
    write_rows(
        add_folder(records, side_table).where(build_table_predicate(side_table, slices)),
        warehouse=warehouse,
        table=side_table,
        slices=slices,
    )
