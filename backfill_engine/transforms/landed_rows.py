"""Landed JSON lines → a raw table: everything that landed, typed, and nothing else."""

from collections.abc import Mapping, Sequence

from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from backfill_engine.audit_columns import (
    ELSEWHERE,
    FIELDS_SEEN,
    LANDED_ELSEWHERE,
    REJECT_REASON,
    REJECTED_LINE,
)
from backfill_engine.tables.declarations import Column, Table
from backfill_engine.transforms.json_lines import parse_json_lines


def build_landed_rows(
    lines: DataFrame,
    table: Table,
    fields: Sequence[Column],
    *,
    extra_fields: Sequence[str] = (),
    derived: Mapping[str, SparkColumn] | None = None,
    fault: SparkColumn | None = None,
) -> DataFrame:
    """Builds one row for each landed line; duplicates stay.

    Args:
        lines: `value` STRING, the line; and columns that say where it landed.
        table: the raw table.
        fields: what a line may hold.
        extra_fields: fields to keep, as text, beyond the declared ones.
        derived: columns of the table that are computed from the fields.
        fault: STRING: why a line whose fields are right can't become a row all the same; null for a
            good one.

    Returns:
        The columns of `table`, `extra_fields` as STRING, and the audit columns `_reject_reason`,
        `_rejected_line` and `_fields_seen`.
    """
    extra = [Column(name, "STRING", "A field that no schema declares") for name in extra_fields]
    rows = parse_json_lines(
        lines, (*fields, *extra), declared=len(fields), max_new_fields=table.max_new_fields
    ).select("*", *(column.alias(name) for name, column in (derived or {}).items()))
    if LANDED_ELSEWHERE in lines.columns:
        elsewhere = F.when(F.col(LANDED_ELSEWHERE), F.lit(ELSEWHERE))
        fault = elsewhere if fault is None else F.coalesce(elsewhere, fault)
    if fault is not None:
        rows = rows.withColumn(REJECT_REASON, F.coalesce(REJECT_REASON, fault))
    # The line of a good row goes once all reasons to reject it are known: it is bulky.
    is_rejected = F.col(REJECT_REASON).isNotNull()
    line = F.make_valid_utf8(REJECTED_LINE)
    rows = rows.withColumn(REJECTED_LINE, F.when(is_rejected, line))
    audit_columns = (REJECT_REASON, REJECTED_LINE, FIELDS_SEEN)
    return rows.select(*table.column_names, *extra_fields, *audit_columns)
