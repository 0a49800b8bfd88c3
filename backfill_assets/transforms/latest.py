"""Which of several records of one thing counts."""

from collections.abc import Sequence

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from backfill_engine.audit_columns import DUPLICATES, ENGINE_PREFIX, IDENTICAL, LANDED_FILE

_CONTENT, _NEXT, _COUNTED = (f"{ENGINE_PREFIX}{name}" for name in ("content", "next", "counted"))


def keep_latest(records: DataFrame, key: Sequence[str], order: Sequence[str]) -> DataFrame:
    """Keeps the greatest record of each key by `order`, then by its other columns in their order.

    So the outcome never depends on how the work happened to be split.

    Args:
        records: columns of `key` and `order`, and any others that have an order; of two records a
            null is the lesser.
        key: what the records of one thing share.
        order: what is compared first.

    Returns:
        The columns of `records`, and two audit columns BIGINT: `_duplicates`, how many records of
        the same key this one replaced, and `_identical`, how many of these say the same as the
        record after them, but for `key`, `order` and the landed file.
    """
    others = [name for name in records.columns if name not in (*key, *order)]
    values = [name for name in others if name != LANDED_FILE]
    # Beside each value whether there is one, as the hash skips nulls.
    content = F.xxhash64(*(part for name in values for part in (F.col(name), F.col(name).isNull())))
    ascending = Window.partitionBy(*key).orderBy(
        *(F.col(name).asc_nulls_first() for name in (*order, *others))
    )
    up_to_row = ascending.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    # Both counts in one sum, as each further window would cost as much again: the records so far
    # below, and in the upper 32 bits those that the next one repeats. Both windows go up, so that
    # no engine holds all rows at once.
    repeated = F.when(F.col(_NEXT) == F.col(_CONTENT), F.lit(1 << 32)).otherwise(F.lit(0))
    return (
        records.withColumn(_CONTENT, content)
        .withColumn(_NEXT, F.lead(_CONTENT).over(ascending))
        .withColumn(_COUNTED, F.sum(repeated + 1).over(up_to_row))
        .where(F.col(_NEXT).isNull())
        .withColumns(
            {
                DUPLICATES: F.col(_COUNTED).bitwiseAND(F.lit(0xFFFFFFFF)) - 1,
                IDENTICAL: F.shiftright(_COUNTED, 32),
            }
        )
        .drop(_CONTENT, _NEXT, _COUNTED)
    )
