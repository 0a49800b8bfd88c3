"""Parses JSON lines by a declared schema, losing nothing and guessing nothing."""

from collections.abc import Sequence

from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from backfill_assets.tables.declarations import Column
from backfill_assets.quality.audit_columns import REJECT_REASON, UNKNOWN_FIELDS


def parse_json_lines(lines: DataFrame, fields: Sequence[Column]) -> DataFrame:
    """Turns each line into one row.

    A value that isn't of its declared type, a missing required field, and a line that isn't exactly
    one JSON object each give a reason; the row stays, so that whoever calls can count it.

    Args:
        lines: `value` STRING, the line, not blank; other columns are kept.
        fields: what a line may hold.

    Returns:
        The other columns of `lines`, `fields`, `_reject_reason` STRING and `_unknown_fields`
        ARRAY<STRING>.
    """
    # All as text, so that a value of another type is seen instead of nulled. As an array, a second
    # object or garbage behind the first is seen too; alone it would be dropped.
    text_fields = ", ".join(f"`{field.name}`: string" for field in fields)
    objects = F.from_json(
        F.concat(F.lit("["), "value", F.lit("]")), f"array<struct<{text_fields}>>"
    )
    parsed = lines.withColumn("_objects", objects).withColumn(
        "_fields", F.when(F.size("_objects") == 1, F.get("_objects", F.lit(0)))
    )
    declared = F.array(*(F.lit(field.name) for field in fields))
    unknown = F.array_except(F.json_object_keys("value"), declared)
    return parsed.select(
        *(name for name in lines.columns if name != "value"),
        *(_typed(field).alias(field.name) for field in fields),
        F.when(F.col("_fields").isNull(), "the line is not one JSON object")
        .otherwise(F.coalesce(*(_reject_reason(field) for field in fields)))
        .alias(REJECT_REASON),
        F.coalesce(unknown, F.array().cast("array<string>")).alias(UNKNOWN_FIELDS),
    )


def _text(field: Column) -> SparkColumn:
    return F.col("_fields").getField(field.name)


def _typed(field: Column) -> SparkColumn:
    return _text(field) if field.type == "STRING" else _text(field).try_cast(field.type)


def _reject_reason(field: Column) -> SparkColumn:
    missing = F.when(_text(field).isNull(), f"`{field.name}` is missing")
    if field.type == "STRING":
        return F.lit(None).cast("string") if field.nullable else missing
    wrong = F.when(
        _text(field).isNotNull() & _typed(field).isNull(),
        F.concat(F.lit(f"`{field.name}` is not {field.type}: "), F.left(_text(field), F.lit(40))),
    )
    return wrong if field.nullable else F.coalesce(missing, wrong)
