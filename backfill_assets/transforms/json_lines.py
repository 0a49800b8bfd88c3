"""Parses JSON lines by a declared schema, losing nothing and guessing nothing."""

from collections.abc import Sequence

from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from backfill_assets.tables.audit_columns import (
    FIELD_SEPARATOR,
    FIELDS_SEEN,
    REJECT_REASON,
    REJECTED_LINE,
)
from backfill_assets.tables.declarations import Column

_END = "_line_ends_here"
_NUMBER = r"^-?\d+(\.\d*)?([eE][+-]?\d+)?$"


def parse_json_lines(lines: DataFrame, fields: Sequence[Column]) -> DataFrame:
    """Turns each line into one row.

    A value that isn't of its declared type, a missing required field, and a line that isn't exactly
    one JSON object each give a reason; the row stays, so that whoever calls can count it.

    Args:
        lines: `value` STRING, the line, not blank; other columns are kept.
        fields: what a line may hold.

    Returns:
        The other columns of `lines`, `fields`, and the audit columns `_reject_reason`,
        `_rejected_line` and `_fields_seen`.
    """
    # All as text, so that a value of another type is seen instead of nulled. As an array with an
    # end of our own, whatever stands behind the object is seen too; alone it would be dropped.
    text_fields = ", ".join(f"`{name}`: string" for name in (*(f.name for f in fields), _END))
    objects = F.from_json(
        F.concat(F.lit("["), "value", F.lit(f',{{"{_END}":"."}}]')),
        f"array<struct<{text_fields}>>",
        {"allowSingleQuotes": "false"},
    )
    is_one_object = (F.size("_objects") == 2) & F.get("_objects", F.lit(1)).getField(
        _END
    ).isNotNull()
    parsed = lines.withColumn("_objects", objects).withColumn(
        "_fields", F.when(is_one_object, F.get("_objects", F.lit(0)))
    )
    others = [name for name in lines.columns if name != "value"]
    # A select of their own, so that each text is cast once, for its value and for its reason.
    typed = parsed.select(
        "value", "_fields", *others, *(_typed(field).alias(field.name) for field in fields)
    )
    reason = F.when(F.col("_fields").isNull(), "the line is not one JSON object").otherwise(
        F.coalesce(*(_reject_reason(field) for field in fields))
    )
    return typed.select(
        "value",
        *others,
        *(field.name for field in fields),
        reason.alias(REJECT_REASON),
        F.concat_ws(FIELD_SEPARATOR, F.json_object_keys("value")).alias(FIELDS_SEEN),
    ).withColumnRenamed("value", REJECTED_LINE)


def _text(field: Column) -> SparkColumn:
    return F.col("_fields").getField(field.name)


def _typed(field: Column) -> SparkColumn:
    text = _text(field)
    if field.type == "STRING":
        return text
    typed = text.try_cast(field.type)
    if field.type in ("FLOAT", "DOUBLE"):
        # Spark reads "NaN", "1d" and 1e400 as numbers too, which JSON's are not.
        is_number = text.rlike(_NUMBER) & (F.abs(typed) < float("inf"))
        return F.when(is_number, typed)
    return typed


def _reject_reason(field: Column) -> SparkColumn:
    missing = F.when(_text(field).isNull(), f"`{field.name}` is missing")
    if field.type == "STRING":
        return F.lit(None).cast("string") if field.nullable else missing
    wrong = F.when(
        _text(field).isNotNull() & F.col(field.name).isNull(),
        F.concat(F.lit(f"`{field.name}` is not {field.type}: "), F.left(_text(field), F.lit(40))),
    )
    return wrong if field.nullable else F.coalesce(missing, wrong)
