"""Gets computed rows together with those that are published, as the run's write mode says.

Whatever the mode, what comes out is the whole contents of the partitions, audited and published by
one replaceWhere. A MERGE statement would rewrite files of other partitions, and publish before the
audit.
"""

from pyspark.sql import Column, DataFrame
from pyspark.sql import Window as SparkWindow
from pyspark.sql import functions as F

from backfill_assets.filters.row_filters import build_condition, parse_filter
from backfill_assets.lake.commits import WriteMode
from backfill_assets.lake.numbering import build_number
from backfill_assets.lake.reader import read_table_as_it_was
from backfill_assets.lake.window import Window
from backfill_assets.publishing.evolution import extend_table
from backfill_assets.publishing.write_options import WriteOptions
from backfill_assets.quality.audit_columns import KEPT, LEFT_OUT
from backfill_assets.quality.measures import is_row

_NUMBER, _REPLACED = "_partition_number", "_replaced"


def combine_rows(
    computed: DataFrame, window: Window, options: WriteOptions, *, base_version: int
) -> DataFrame:
    """The contents of the window's partitions after the run.

    Args:
        computed: columns of the window's table (with its extra fields), and any audit columns.
        window: the partitions.
        options: of the run.
        base_version: the table's version to which the rows are added; -1 if it had none.

    Returns:
        The columns of `computed`; and, where rows stay or are left out, the audit columns `_kept`
        and `_left_out`.
    """
    row_filter = options.find_row_filter(window.table)
    if row_filter is not None:
        included = F.coalesce(build_condition(row_filter, window.table), F.expr("false"))
        left_out = F.when(is_row(computed) & ~included, F.expr("true"))
        computed = computed.withColumn(LEFT_OUT, left_out)
    if options.mode not in (WriteMode.MERGE, WriteMode.APPEND_ONCE) or base_version < 0:
        return computed
    stored = read_table_as_it_was(
        window.spark,
        window.warehouse,
        extend_table(window.table, window.extra_fields),
        version=base_version,
    )
    stored = window.keep_partitions(stored).withColumn(KEPT, F.expr("true"))
    if options.delete_missing:
        stored = stored.where(_outside(options, window))
    together = computed.unionByName(stored, allowMissingColumns=True)
    if options.mode is WriteMode.APPEND_ONCE:
        return together
    return _drop_replaced(together, window)


def _outside(options: WriteOptions, window: Window) -> Column:
    """True for published rows that the run's filter is not about, and so can't call missing."""
    if not options.row_filter:
        return F.expr("false")
    about = build_condition(parse_filter(options.row_filter, window.table), window.table)
    return ~F.coalesce(about, F.expr("false"))


def _drop_replaced(together: DataFrame, window: Window) -> DataFrame:
    """Without the published rows whose natural key was computed: in one pass, computed once."""
    table = window.table
    is_new = F.col(KEPT).isNull() & is_row(together)
    same_row = SparkWindow.partitionBy(_NUMBER, *table.natural_key)
    replaced = F.max(is_new).over(same_row)
    return (
        together.withColumn(_NUMBER, build_number(table.grain, table.partition_by))
        .withColumn(_REPLACED, replaced)
        .where(F.col(KEPT).isNull() | ~F.col(_REPLACED))
        .drop(_NUMBER, _REPLACED)
    )
