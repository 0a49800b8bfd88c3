"""Rewrites a table with other names and types of its columns, in one Delta commit.

Delta could do either without a rewrite, by column mapping and by type widening: of the one delta-rs
reads nulls, and of the other nothing.
"""

from collections.abc import Sequence

from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F

from backfill_engine.errors import TableError
from backfill_engine.lake.commits import MigrationRecord
from backfill_engine.lake.delta_logs import shorten_cause
from backfill_engine.lake.reader import SPARK_ERRORS
from backfill_engine.lake.stored_declarations import (
    GRAIN_PROPERTY,
    INVARIANTS,
    MIGRATED,
    STATISTICS,
    ColumnChange,
    build_not_null,
    choose_statistics,
)
from backfill_engine.lake.table_log import TableLog


def rewrite_columns(
    spark: SparkSession, log: TableLog, changes: Sequence[ColumnChange], record: MigrationRecord
) -> TableLog:
    """Rewrites a table whose lock is held, all of it, as of the version of the log.

    Delta makes every column nullable when it overwrites a schema. Required ones stay so by a
    condition, which Delta demands of every row.

    Args:
        spark: the session.
        log: of the table.
        changes: of its columns.
        record: what the commit carries.

    Returns:
        The log up to the commit.

    Raises:
        TableError: if the commit can't be made; nothing was changed.
    """
    rows = spark.read.format("delta").option("versionAsOf", log.version).load(log.uri)
    folders = log.open_snapshot().metadata().partition_columns
    frame = rows.select(*_build_columns(log, changes))
    writer = (frame.repartition(*folders) if folders else frame).write.format("delta")
    writer = writer.mode("overwrite").option("overwriteSchema", "true").partitionBy(*folders)
    try:
        writer.option("userMetadata", record.to_json()).save(log.uri)
    except SPARK_ERRORS as error:
        raise TableError(
            f"{log.table.key}: the columns of {log.uri} were not migrated, as Spark could not "
            f"write ({shorten_cause(error)}): nothing was changed"
        ) from error
    newest = log.reread()
    made = (commit for commit in newest.list_commits_after(log.version) if commit.is_migration)
    return newest.as_of(next(made).version)


def _build_columns(log: TableLog, changes: Sequence[ColumnChange]) -> list[Column]:
    """Builds all columns that are stored, as they are to be stored."""
    by_name, columns = {change.name: change.column for change in changes}, list[Column]()
    for field in log.open_snapshot().schema().fields:
        declared, values, name = by_name.get(field.name), F.col(f"`{field.name}`"), field.name
        if declared is not None:
            values, name = values.cast(declared.parsed_type.of_values), declared.name
        properties = dict(field.metadata or {})
        if not field.nullable or INVARIANTS in properties:
            properties[INVARIANTS] = build_not_null(name)
        columns.append(values.alias(name, metadata=properties))
    return columns


def drop_statistics(
    spark: SparkSession, log: TableLog, changes: Sequence[ColumnChange]
) -> TableLog:
    """Lets a table choose no columns for statistics, if it chose any by a name that it loses."""
    chosen = log.properties.get(STATISTICS, "")
    if not any(f"`{change.name}`" in chosen for change in changes if change.renames):
        return log
    spark.sql(f"ALTER TABLE delta.`{log.uri}` UNSET TBLPROPERTIES ('{STATISTICS}')")
    return log.reread()


def settle_migration(spark: SparkSession, log: TableLog, version: int) -> str:
    """Notes that a migration was compared, and chooses columns for statistics where none are.

    Args:
        spark: the session.
        log: of the table.
        version: that the migration made.

    Returns:
        The columns for statistics, as of a new table of ours; empty if it chose none.
    """
    properties, chosen = {MIGRATED: str(version)}, ""
    if GRAIN_PROPERTY in log.properties and STATISTICS not in log.properties:
        chosen = choose_statistics(log.table).get(STATISTICS, "")
    if chosen:
        properties[STATISTICS] = chosen
    listed = ", ".join(f"'{name}' = '{value}'" for name, value in properties.items())
    spark.sql(f"ALTER TABLE delta.`{log.uri}` SET TBLPROPERTIES ({listed})")
    return chosen


def restore_version(spark: SparkSession, log: TableLog, record: MigrationRecord) -> None:
    """Puts the version before the migration, the log's newest commit, back; with its record."""
    conf = "spark.databricks.delta.commitInfo.userMetadata"
    spark.conf.set(conf, record.to_json())
    try:
        spark.sql(f"RESTORE TABLE delta.`{log.uri}` TO VERSION AS OF {log.version - 1}")
    finally:
        spark.conf.unset(conf)
