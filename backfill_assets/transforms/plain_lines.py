"""Finds the lines that Spark's typed reader reads as the careful one would, which most lines are.

The careful reader takes every value as text and goes over the line a second time for its keys,
which is most of what parsing costs. The typed one drops what no field declares, and of a field that
is there twice all but the last. That it did neither is told by counting: in JSON each key is
followed by a colon of its own, so where a line has as many colons outside of the values that were
read as it has keys, the first object has no other keys and nothing stands behind it. An escape may
stand for a colon; a line with one isn't plain.
"""

from collections.abc import Sequence
from functools import reduce
from operator import add

from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from backfill_assets.tables.declarations import Column

IS_PLAIN = "_is_plain"
HAS_ALL = "_has_all"
KEYS = "_keys"
_READ, _COLONS = "_read", "_colons"
_CORRUPT = "_corrupt"

# Of these a typed value is what its text would be cast to. Others may have several spellings.
_TYPED = ("INT", "BIGINT", "BOOLEAN")


def read_plain_lines(lines: DataFrame, fields: Sequence[Column]) -> DataFrame:
    """Reads the lines by the types of `fields`, and says which of them are plain.

    Args:
        lines: `value` STRING; other columns are kept.
        fields: what a line may hold.

    Returns:
        The columns of `lines`; what `get_plain` takes values from; `_is_plain` BOOLEAN; `_has_all`
        BOOLEAN, whether a plain line has just `fields`, none of them null; and of all others
        `_keys` ARRAY<STRING>, the keys of the line's first object: null if it is none.
    """
    types = ", ".join(
        f"`{field.name}`: {field.type if is_read_typed(field) else 'STRING'}" for field in fields
    )
    read = F.from_json(
        # What stands behind the object is an error here; alone it would be dropped.
        F.concat(F.lit('{"line":'), "value", F.lit(',"end":"."}')),
        f"line STRUCT<{types}>, end STRING, {_CORRUPT} STRING",
        {"allowSingleQuotes": "false", "columnNameOfCorruptRecord": _CORRUPT},
    )
    values = [get_plain(field) for field in fields]
    texts = [get_plain(field) for field in fields if not is_read_typed(field)]
    is_read = (
        F.col(f"{_READ}.{_CORRUPT}").isNull()
        & F.col(f"{_READ}.end").isNotNull()
        & ~F.contains("value", F.lit("\\"))
    )
    colons = _count_colons(F.col("value")) - _count_colons(F.concat_ws("", *texts))
    found = reduce(add, (value.isNotNull().cast("int") for value in values))
    has_all = (F.col(_COLONS) == len(fields)) & (found == len(fields))
    return (
        lines.withColumn(_READ, read)
        .withColumn(_COLONS, F.when(is_read, colons).otherwise(-1))
        .withColumn(HAS_ALL, has_all)
        .withColumn(KEYS, F.when(~F.col(HAS_ALL), F.json_object_keys("value")))
        .withColumn(
            IS_PLAIN,
            F.col(HAS_ALL) | F.coalesce(F.col(_COLONS) == F.size(KEYS), F.expr("false")),
        )
    )


def get_plain(field: Column) -> SparkColumn:
    """Gets what was read of a field: a value if `is_read_typed`, else a text; null if absent."""
    return F.col(f"{_READ}.line").getField(field.name)


def is_read_typed(field: Column) -> bool:
    """Tells whether a field is read as a value of its type."""
    return field.type in _TYPED


def _count_colons(text: SparkColumn) -> SparkColumn:
    return F.size(F.split(text, ":")) - 1
