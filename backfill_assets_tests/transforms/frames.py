"""Rows of a declared table, for a transform to read."""

from collections.abc import Iterable, Mapping
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from backfill_engine.tables.declarations import Table, build_ddl


def build_frame(spark: SparkSession, table: Table, rows: Iterable[Mapping[str, Any]]) -> DataFrame:
    """Rows by column name; what a row lacks is null."""
    values = [tuple(row.get(name) for name in table.column_names) for row in rows]
    return spark.createDataFrame(values, build_ddl(table.columns, constraints=False))


def list_types(table: Table) -> list[tuple[str, str]]:
    """The declared columns, as a frame says its own."""
    return [(column.name, column.type.lower()) for column in table.columns]
