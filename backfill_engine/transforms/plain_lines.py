"""Finds the lines that Spark's typed reader reads as the careful one would, which most lines are.

The careful reader takes every value as marked text and goes over the line a second time for its
keys, which is most of what parsing costs. The typed one drops what no field declares, and of a
field that is there twice all but the last. That it did neither is told by counting: in JSON each
key is followed by a colon of its own, so where a line has as many colons outside of the values that
were read as it has keys, the first object has no other keys and nothing stands behind it. An escape
may stand for a colon; a line with one isn't plain. Nor is one with a value that is neither read as
its type nor a string: a number as text has lost what it was.
"""

from collections.abc import Sequence
from functools import reduce
from operator import add, and_

from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from backfill_engine.audit_columns import ENGINE_PREFIX, LANDED_LINE
from backfill_engine.tables.declarations import Column
from backfill_engine.transforms.json_values import MARK, is_string, mark_plain_line

IS_PLAIN = f"{ENGINE_PREFIX}is_plain"
HAS_ALL = f"{ENGINE_PREFIX}has_all"
KEYS = f"{ENGINE_PREFIX}keys"
_READ, _COLONS = f"{ENGINE_PREFIX}read", f"{ENGINE_PREFIX}colons"
_CORRUPT = "corrupt"

# Of these the typed reader takes what is written as one, and nothing else but words for infinities.
_TYPED = {
    "BOOLEAN": "BOOLEAN",
    "TINYINT": "INT",  # It would take a byte of 255 for -1.
    "SMALLINT": "INT",
    "INT": "INT",
    "BIGINT": "BIGINT",
    "DOUBLE": "DOUBLE",
}

_EXACT = ("BOOLEAN", "INT", "BIGINT")

READ_OPTIONS = {"allowSingleQuotes": "false", "allowNonNumericNumbers": "false"}
"""What isn't JSON isn't read."""


def read_plain_lines(lines: DataFrame, fields: Sequence[Column]) -> DataFrame:
    """Reads the lines by the types of `fields`, and says which of them are plain.

    Args:
        lines: `value` STRING; other columns are kept.
        fields: what a line may hold.

    Returns:
        The columns of `lines`; what `get_plain` takes values from; `IS_PLAIN` BOOLEAN; `HAS_ALL`
        BOOLEAN, whether a plain line has just `fields`, none of them null; and of all others
        `KEYS` ARRAY<STRING>, the keys of the line's first object: null if it is none.
    """
    types = ", ".join(f"`{field.name}`: {_TYPED.get(field.type, 'STRING')}" for field in fields)
    line = F.col(LANDED_LINE)
    read = F.from_json(
        # What stands behind the object is an error here; alone it would be dropped.
        F.concat(F.lit('{"line":'), mark_plain_line(line), F.lit(',"end":"."}')),
        f"line STRUCT<{types}>, end STRING, {_CORRUPT} STRING",
        {**READ_OPTIONS, "columnNameOfCorruptRecord": _CORRUPT},
    )
    values = [_get_read(field) for field in fields]
    texts = [_get_read(field) for field in fields if not is_read_typed(field)]
    is_read = reduce(
        and_,
        (_is_taken(field) for field in fields if field.type not in _EXACT),
        F.col(f"{_READ}.{_CORRUPT}").isNull()
        & F.col(f"{_READ}.end").isNotNull()
        & ~F.contains(line, F.lit("\\"))
        & ~F.contains(line, F.lit(MARK)),
    )
    colons = _count_colons(line) - _count_colons(F.concat_ws("", *texts))
    found = reduce(add, (value.isNotNull().cast("int") for value in values))
    has_all = (F.col(_COLONS) == len(fields)) & (found == len(fields))
    return (
        lines.withColumn(_READ, read)
        .withColumn(_COLONS, F.when(is_read, colons).otherwise(-1))
        .withColumn(HAS_ALL, has_all)
        .withColumn(KEYS, F.when(~F.col(HAS_ALL), F.json_object_keys(LANDED_LINE)))
        .withColumn(
            IS_PLAIN,
            F.col(HAS_ALL) | F.coalesce(F.col(_COLONS) == F.size(KEYS), F.expr("false")),
        )
    )


def get_plain(field: Column) -> SparkColumn:
    """Gets what was read of a field: a value if `is_read_typed`, else a marked text, or null."""
    read = _get_read(field)
    # Where it doesn't fit the line isn't plain.
    return read.try_cast(field.type) if field.type in ("TINYINT", "SMALLINT") else read


def is_read_typed(field: Column) -> bool:
    """Tells whether a field is read as a value of its type."""
    return field.type in _TYPED


def _get_read(field: Column) -> SparkColumn:
    return F.col(f"{_READ}.line").getField(field.name)


def _is_taken(field: Column) -> SparkColumn:
    """Builds a BOOLEAN: whether what was read is what was written."""
    read = _get_read(field)
    match field.type:
        case "DOUBLE":
            is_taken = F.abs(read) < float("inf")
        case "TINYINT" | "SMALLINT":
            is_taken = get_plain(field).isNotNull()
        case _:
            is_taken = is_string(read)
    return read.isNull() | is_taken


def _count_colons(text: SparkColumn) -> SparkColumn:
    return F.size(F.split(text, ":")) - 1
