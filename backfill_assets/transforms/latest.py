"""Which of several records of one thing counts."""

from collections.abc import Sequence

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from backfill_engine.audit_columns import DUPLICATES, ENGINE_PREFIX

_RANK = f"{ENGINE_PREFIX}rank"


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
    of_key = Window.partitionBy(*key)
    ranked = of_key.orderBy(*(F.col(name).desc_nulls_last() for name in (*order, *others)))
    return (
        records.withColumns(
            {_RANK: F.row_number().over(ranked), DUPLICATES: F.count("*").over(of_key) - 1}
        )
        .where(F.col(_RANK) == 1)
        .drop(_RANK)
    )
