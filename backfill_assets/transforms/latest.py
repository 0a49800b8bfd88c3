"""Which of several records of one thing counts."""

from collections.abc import Sequence

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from backfill_engine.audit_columns import DUPLICATES, ENGINE_PREFIX

_FOLLOWED = f"{ENGINE_PREFIX}followed"


def keep_latest(records: DataFrame, key: Sequence[str], order: Sequence[str]) -> DataFrame:
    """Keeps the greatest record of each key by `order`, then by its other columns in their order.

    So the outcome never depends on how the work happened to be split.

    Args:
        records: columns of `key` and `order`, and any others that have an order; of two records a
            null is the lesser.
        key: what the records of one thing share.
        order: what is compared first.

    Returns:
        The columns of `records`, and the audit column `_duplicates` BIGINT: how many records of the
        same key this one replaced.
    """
    others = [name for name in records.columns if name not in (*key, *order)]
    ascending = Window.partitionBy(*key).orderBy(
        *(F.col(name).asc_nulls_first() for name in (*order, *others))
    )
    return (
        records.withColumns(
            {
                # A number before it, in the same order, so that no engine holds all rows at once.
                DUPLICATES: F.row_number().over(ascending).cast("bigint") - 1,
                _FOLLOWED: F.lead(F.lit(1)).over(ascending),
            }
        )
        .where(F.col(_FOLLOWED).isNull())
        .drop(_FOLLOWED)
    )
