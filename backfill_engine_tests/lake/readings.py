"""A tiny table, and what tests do with it."""

import datetime as dt
from collections.abc import Iterable, Sequence
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from backfill_engine.lake.commits import CommitRecord
from backfill_engine.lake.partitions import Partition
from backfill_engine.lake.table_log import read_log
from backfill_engine.lake.warehouse import Warehouse
from backfill_engine.lake.writer import build_record, overwrite_partitions
from backfill_engine.tables.declarations import Column, Table, build_ddl, required

READINGS = Table(
    layer="raw",
    name="readings",
    partition_by="day",
    columns=(
        required("day", "DATE", "Day of the reading"),
        required("id", "INT", "Number of the sensor"),
        Column("value", "STRING", "What the sensor's display said"),
    ),
    natural_key=("day", "id"),
)

ReadingRow = tuple[dt.date, int | None, str | None]


def build_rows(days: Sequence[Partition], value: str, *, ids: int = 2) -> list[ReadingRow]:
    """`ids` rows for each day, all with one value."""
    starts = (day.slice.start for day in days)
    return [(start, number, value) for start in starts for number in range(ids)]  # type: ignore[misc]


def build_frame(spark: SparkSession, rows: Iterable[ReadingRow]) -> DataFrame:
    """The rows as a frame with the columns of READINGS, one file for each partition."""
    frame = spark.createDataFrame(list(rows), build_ddl(READINGS.columns, constraints=False))
    return frame.repartition("day")


def overwrite_readings(
    spark: SparkSession,
    warehouse: Warehouse,
    days: Sequence[Partition],
    rows: list[ReadingRow],
    *,
    run_id: str = "run-1",
    base_version: int | None = None,
) -> int:
    """Publishes `rows` as the contents of `days`, by default computed from the newest version.

    Returns:
        The version of the commit.
    """
    counts = {day.key: sum(row[0].isoformat() == day.key for row in rows) for day in days}
    checksums = {key: f"{count:016x}" for key, count in counts.items()}
    return overwrite_partitions(
        build_frame(spark, rows),
        read_log(warehouse, READINGS, version=base_version),
        days,
        build_readings_record(days, run_id=run_id, rows=counts, checksums=checksums),
    )


def build_readings_record(days: Sequence[Partition], **content: Any) -> CommitRecord:
    """The record of a commit to READINGS; `content` are fields of it, of which most have a default.

    Rows and checksums have none.
    """
    defaults = {
        "run_id": "run-1",
        "code_version": "code-1",
        "input_versions": {"raw/source": 3},
    }
    return build_record(READINGS, days, **{**defaults, **content})


def read_rows(warehouse: Warehouse, *, version: int | None = None) -> list[ReadingRow]:
    """All rows, sorted, through delta-rs: a reader that shares no code with the writer."""
    rows = warehouse.open(READINGS, version=version).to_pyarrow_table().to_pylist()
    return sorted((row["day"], row["id"], row["value"]) for row in rows)


def read_files_by_day(warehouse: Warehouse) -> dict[str, list[str]]:
    """Names of the data files that the newest version consists of, by day."""
    found: dict[str, list[str]] = {}
    for day, path in read_log(warehouse, READINGS).list_files("path"):
        found.setdefault(day, []).append(path)
    return {day: sorted(paths) for day, paths in found.items()}
