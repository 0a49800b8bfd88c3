"""Parses JSON lines by a declared schema, losing nothing and guessing nothing."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from backfill_engine.audit_columns import (
    ENGINE_PREFIX,
    FIELD_SEPARATOR,
    FIELDS_SEEN,
    LANDED_LINE,
    REJECT_REASON,
    REJECTED_LINE,
)
from backfill_engine.engines.sessions import find_engine
from backfill_engine.tables.declarations import Column, build_ddl
from backfill_engine.transforms.json_values import (
    LIKE_A_VALUE,
    build_value,
    has_lone_surrogate,
    is_string,
    is_wrong,
    mark_line,
    remove_marks,
)
from backfill_engine.transforms.line_parser import LineParser
from backfill_engine.transforms.plain_lines import (
    HAS_ALL,
    IS_PLAIN,
    KEYS,
    READ_OPTIONS,
    get_plain,
    is_read_typed,
    read_plain_lines,
)

_LINE, _END = f"{ENGINE_PREFIX}line", f"{ENGINE_PREFIX}end"
_OBJECTS, _FIELDS = f"{ENGINE_PREFIX}objects", f"{ENGINE_PREFIX}fields"
_FAULT = f"{ENGINE_PREFIX}fault"


def parse_json_lines(
    lines: DataFrame,
    fields: Sequence[Column],
    *,
    declared: int | None = None,
    max_new_fields: int | None = None,
) -> DataFrame:
    """Turns each line into one row.

    A value that isn't of its declared type, a missing required field, a field that is there twice,
    too many that aren't declared, and a line that isn't exactly one JSON object in UTF-8 each give
    a reason; the row stays, so that whoever calls can count it.

    Args:
        lines: `value` STRING, the line, not blank; other columns are kept.
        fields: what a line may hold.
        declared: how many of `fields` are declared, the first ones; None for all. Of the others
            any value is taken, as text.
        max_new_fields: most fields of a line beyond these; None for any number.

    Returns:
        The other columns of `lines`, `fields`, and the audit columns `_reject_reason`,
        `_rejected_line` and `_fields_seen`.
    """
    others = [name for name in lines.columns if name != LANDED_LINE]
    names = [field.name for field in fields[:declared]]
    fields = [field if field.name in names else replace(field, lenient=True) for field in fields]
    if not find_engine(lines.sparkSession).tells_mistyped_json:
        return _parse_in_python(lines, others, LineParser(fields, len(names), max_new_fields))
    # Columns of their own, so that a line is read once, for its fields and for its end.
    read = (
        read_plain_lines(lines, fields)
        .withColumn(_OBJECTS, F.when(~F.col(IS_PLAIN), _read_carefully(fields)))
        .withColumn(_FIELDS, F.when(_is_one_object(_OBJECTS), F.get(_OBJECTS, F.lit(0))))
        .withColumnRenamed(LANDED_LINE, _LINE)
    )
    # Selects of their own, so that each text is cast once, for its value and for its reason.
    typed = read.select(
        "*", *(_choose_text(field).alias(_text_name(field)) for field in fields)
    ).select("*", *(_choose_value(field).alias(field.name) for field in fields))
    # And once more, so that the text of one field is shown, and not of each.
    typed = typed.withColumn(_FAULT, F.coalesce(*map(_find_fault, fields)))
    reason = (
        F.when(~F.is_valid_utf8(_LINE), "the line is not UTF-8")
        .when(
            ~F.col(IS_PLAIN) & (F.col(_FIELDS).isNull() | F.col(KEYS).isNull()),
            "the line is not one JSON object",
        )
        .when(~F.col(IS_PLAIN) & has_lone_surrogate(F.col(_LINE)), "a character is half there")
        .when(F.size(F.array_distinct(KEYS)) < F.size(KEYS), "a field is there twice")
        .otherwise(
            F.coalesce(
                _find_too_many(KEYS, names, max_new_fields),
                F.concat(f"{_FAULT}.why", F.coalesce(_show(F.col(f"{_FAULT}.text")), F.lit(""))),
            )
        )
    )
    all_names = FIELD_SEPARATOR.join(field.name for field in fields)
    return typed.select(
        _LINE,
        *others,
        *(field.name for field in fields),
        reason.alias(REJECT_REASON),
        F.when(F.col(HAS_ALL), all_names)
        .when(F.col(IS_PLAIN), F.concat_ws(FIELD_SEPARATOR, KEYS))
        .otherwise(F.concat_ws(FIELD_SEPARATOR, F.transform(KEYS, _blank_separators)))
        .alias(FIELDS_SEEN),
    ).withColumnRenamed(_LINE, REJECTED_LINE)


def _parse_in_python(lines: DataFrame, others: Sequence[str], parser: LineParser) -> DataFrame:
    fields = build_ddl(parser.fields, constraints=False)
    audit = ", ".join(f"`{name}` STRING" for name in (REJECT_REASON, FIELDS_SEEN))
    nothing = lines.sparkSession.createDataFrame([], f"`{REJECTED_LINE}` STRING, {fields}, {audit}")
    parsed = nothing.schema.fields
    kept = [field for field in lines.schema.fields if field.name in others]
    schema = StructType([parsed[0], *kept, *parsed[1:]])
    arrow = to_arrow_schema(schema, timezone="UTC")
    return lines.mapInArrow(partial(parser.parse_batches, schema=arrow), schema)


def _read_carefully(fields: Sequence[Column]) -> SparkColumn:
    """Reads a line's objects, with fields as marked texts, and behind them an end of our own."""
    # All as text, so that a value of another type is seen instead of nulled. As an array with an
    # end, whatever stands behind the object is seen too; alone it would be dropped.
    text_fields = ", ".join(f"`{name}`: string" for name in (*(f.name for f in fields), _END))
    return F.from_json(
        F.concat(F.lit("["), mark_line(F.col(LANDED_LINE)), F.lit(f',{{"{_END}":"."}}]')),
        f"array<struct<{text_fields}>>",
        READ_OPTIONS,
    )


def _is_one_object(objects: str) -> SparkColumn:
    return (F.size(objects) == 2) & F.get(objects, F.lit(1)).getField(_END).isNotNull()


def _blank_separators(key: SparkColumn) -> SparkColumn:
    return F.replace(key, F.lit(FIELD_SEPARATOR), F.lit(" "))


def _find_too_many(keys: str, declared: Sequence[str], most: int | None) -> SparkColumn:
    if most is None:
        return F.lit(None).cast("string")
    # Names are compared only where there are more than could be too many.
    new = F.size(F.filter(F.array_distinct(keys), lambda key: ~key.isin(*declared)))
    return F.when(
        F.size(keys) > most,
        F.when(
            new > most,
            F.concat(F.lit(f"more than {most} fields that no schema declares: "), new),
        ),
    )


def _text_name(field: Column) -> str:
    return f"{ENGINE_PREFIX}text_of_{field.name}"


def _choose_text(field: Column) -> SparkColumn:
    """A field's marked text; null where it was read as a value."""
    text = F.col(_FIELDS).getField(field.name)
    return (
        text if is_read_typed(field) else F.when(F.col(IS_PLAIN), get_plain(field)).otherwise(text)
    )


def _choose_value(field: Column) -> SparkColumn:
    value = build_value(F.col(_text_name(field)), field.parsed_type, lenient=field.lenient)
    if not is_read_typed(field):
        return value
    return F.when(F.col(IS_PLAIN), get_plain(field)).otherwise(value)


def _find_fault(field: Column) -> SparkColumn:
    """Builds a STRUCT: `why` a field is refused, and the marked `text` that was there, if any."""
    text, value = F.col(_text_name(field)), F.col(field.name)
    is_missing = text.isNull() & value.isNull() if not field.nullable else F.expr("false")
    is_refused = (
        is_wrong(text, field.parsed_type, lenient=field.lenient)
        if field.parsed_type.parts
        else text.isNotNull() & value.isNull()
    )
    why = F.lit(f"`{field.name}` is not {field.type}: ").alias("why")
    missing = F.lit(f"`{field.name}` is missing").alias("why")
    nothing = F.lit(None).cast("string").alias("text")
    return F.when(is_missing, F.struct(missing, nothing)).when(
        is_refused, F.struct(why, text.alias("text"))
    )


def _show(text: SparkColumn) -> SparkColumn:
    shown = remove_marks(text)
    is_quoted = is_string(text) & F.lower(shown).rlike(LIKE_A_VALUE)
    return F.concat(F.left(shown, F.lit(40)), F.when(is_quoted, " (a string)").otherwise(""))
