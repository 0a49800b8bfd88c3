"""Measures all partitions of a range in one grouped pass."""

from collections.abc import Sequence
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from backfill_engine.audit_columns import (
    BEFORE_FIRST_PARTITION,
    DUPLICATES,
    ENGINE_PREFIX,
    FIELD_SEPARATOR,
    FIELDS_SEEN,
    FILTERED_OUT,
    IDENTICAL,
    KEPT,
    REJECT_REASON,
)
from backfill_engine.contents.checksums import build_checksum_parts, build_row_hash, format_checksum
from backfill_engine.engines.sessions import find_engine
from backfill_engine.errors import TableError
from backfill_engine.lake.partitions import Partition
from backfill_engine.lake.reader import build_number
from backfill_engine.rules.measured import PartitionMeasures
from backfill_engine.rules.rule import RowConditions
from backfill_engine.tables.declarations import Table

_NUMBER, _ROWS = f"{ENGINE_PREFIX}number", f"{ENGINE_PREFIX}rows"
_OTHERS = f"{ENGINE_PREFIX}records_with_other_fields"
_COUNTS = {
    "rejects": (REJECT_REASON, f"count({REJECT_REASON})"),
    "rejects_before_first": (
        REJECT_REASON,
        f"count_if(startswith({REJECT_REASON}, '{BEFORE_FIRST_PARTITION}'))",
    ),
    "kept": (KEPT, f"count_if({KEPT})"),
    "filtered_out": (FILTERED_OUT, f"count_if({FILTERED_OUT})"),
    "duplicates_dropped": (DUPLICATES, f"sum({DUPLICATES})"),
    "identical_dropped": (IDENTICAL, f"sum({IDENTICAL})"),
}
"""By field of `PartitionMeasures`: the audit column that it takes, and its SQL."""


def measure_partitions(
    frame: DataFrame,
    table: Table,
    partitions: Sequence[Partition],
    *,
    fields: Sequence[str] = (),
) -> dict[str, PartitionMeasures]:
    """Aggregates all numbers in one grouped pass; natural keys are counted apart.

    So are fields seen, where any record has others than `fields`. They are apart because beside
    distinct values or texts Spark aggregates all numbers the slow way: for each distinct value, or
    after sorting. What comes to the driver is one row a partition each.

    Args:
        frame: columns of `table`, and any of the audit columns; rejected rows have null table
            columns but for the partition column.
        table: its declaration, with the rules that say what to measure of each partition.
        partitions: all partitions that `frame` may hold.
        fields: what each parsed record should have, in order; empty if nothing is known of that.

    Returns:
        Measures per partition key, for each of `partitions`.

    Raises:
        TableError: if `frame` has rows of other partitions.
        EngineError: if the engine hashes values of a column otherwise than its readers do.
    """
    for column in table.columns:
        if column.parsed_type.has_wide_decimal:
            find_engine(frame.sparkSession).require(f"a checksum of `{column.name}` {column.type}")
    keys = {
        table.grain.find_number(partition.slice.start): partition.key for partition in partitions
    }
    frame = frame.withColumn(_NUMBER, build_number(table.grain, table.partition_by))
    conditions, present = _find_conditions(frame), set(frame.columns)
    counts = {name: sql for name, (column, sql) in _COUNTS.items() if column in present}
    counts["rows"] = f"count_if({conditions.to_publish})"
    figures = {
        figure: sql
        for rule in table.all_rules
        for figure, sql in rule.build_aggregates(conditions).items()
    }
    upper, lower = build_checksum_parts(F.when(is_row(frame), build_row_hash(table)))
    rows = frame.groupBy(_NUMBER).agg(
        upper,
        lower,
        _count_others(frame, fields),
        *(F.expr(sql).alias(name) for name, sql in counts.items()),
        *(F.expr(sql).alias(" ".join(figure)) for figure, sql in figures.items()),
    )
    found = {row[_NUMBER]: row for row in rows.collect()}
    if outside := found.keys() - keys:
        raise TableError(
            f"{table.key}: computed rows of partitions that were not asked for, such as number "
            f"{min(outside, key=str)} of its {table.grain}"
        )
    duplicates = _count_key_duplicates(frame, table)
    fields_seen = None
    if FIELDS_SEEN in present:
        have_all = fields and not any(row[_OTHERS] for row in found.values())
        fields_seen = (
            {number: frozenset(fields) for number, row in found.items() if row["rows"]}
            if have_all
            else _find_fields_seen(frame)
        )
    measures = {key: PartitionMeasures() for key in keys.values()}
    for number, row in found.items():
        counted: dict[str, Any] = {name: row[name] or 0 for name in counts}
        measures[keys[number]] = PartitionMeasures(
            **counted,
            checksum=format_checksum(row[1], row[2]),
            key_duplicates=duplicates.get(number, 0),
            figures={figure: _read_figure(row[" ".join(figure)]) for figure in figures},
            fields_seen=None if fields_seen is None else fields_seen.get(number, frozenset()),
        )
    return measures


def keep_rows(frame: DataFrame) -> DataFrame:
    """Keeps the rows to publish, which are neither rejected nor left out."""
    return frame.where(is_row(frame))


def is_row(frame: DataFrame) -> Column:
    """Builds a BOOLEAN: whether a row is to be published, so neither rejected nor left out."""
    return F.expr(_find_conditions(frame).to_publish)


def _find_conditions(frame: DataFrame) -> RowConditions:
    """Finds how the audit columns that the frame has tell rows apart."""
    present = set(frame.columns)
    marks = [f"{name} IS NULL" for name in (REJECT_REASON, FILTERED_OUT) if name in present]
    return RowConditions(
        to_publish=f"({' AND '.join(marks) or 'true'})",
        computed=f"({KEPT} IS NULL)" if KEPT in present else "true",
    )


def _count_key_duplicates(frame: DataFrame, table: Table) -> dict[int, int]:
    """Counts rows beyond the first of their natural key, by partition number.

    A partition without any is absent.
    """
    if not table.natural_key:
        return {}
    # By folder, too, as the rows of each are together already: so Spark doesn't move them again.
    folder = [table.folder_column] if table.folder_column else []
    key = (*folder, _NUMBER, F.xxhash64(*table.natural_key))
    repeated = keep_rows(frame).groupBy(*key).agg(F.count("*").alias(_ROWS)).where(f"{_ROWS} > 1")
    counted = repeated.groupBy(_NUMBER).agg(F.sum(F.col(_ROWS) - 1))
    return {row[0]: row[1] for row in counted.collect()}


def _count_others(frame: DataFrame, fields: Sequence[str]) -> Column:
    """Counts the good records that don't have just `fields`; none where those aren't known."""
    if not fields or FIELDS_SEEN not in frame.columns:
        return F.lit(0).alias(_OTHERS)
    others = F.col(FIELDS_SEEN) != FIELD_SEPARATOR.join(fields)
    return F.count_if(is_row(frame) & others).alias(_OTHERS)


def _find_fields_seen(frame: DataFrame) -> dict[int, frozenset[str]]:
    """Finds the fields of any good record, by partition number."""
    combinations = keep_rows(frame).select(_NUMBER, FIELDS_SEEN).distinct()
    names = F.explode(F.split(FIELDS_SEEN, FIELD_SEPARATOR)).alias("name")
    seen = (
        combinations.select(_NUMBER, names)
        .where("name <> ''")
        .groupBy(_NUMBER)
        .agg(F.collect_set("name"))
    )
    return {row[0]: frozenset(row[1]) for row in seen.collect()}


def _read_figure(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value or 0
