"""`merge`: computed rows replace those of the same natural key, the others stay."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import Window as SparkWindow
from pyspark.sql import functions as F

from backfill_engine.audit_columns import ENGINE_PREFIX, KEPT
from backfill_engine.errors import SettingsError
from backfill_engine.filters.row_filters import build_condition, parse_filter
from backfill_engine.lake.reader import build_number
from backfill_engine.publishing.write_modes.mode import WriteMode, read_published
from backfill_engine.publishing.write_modes.options import WriteOptions
from backfill_engine.quality.measures import is_row
from backfill_engine.sources.input_window import InputWindow
from backfill_engine.tables.declarations import Table

_NUMBER, _REPLACED = f"{ENGINE_PREFIX}number", f"{ENGINE_PREFIX}replaced"


class Merge(WriteMode):
    """Upserts on the natural key; with `delete_missing`, rows that were not computed go."""

    name = "merge"
    keeps_rows = True
    takes = {  # noqa: RUF012 (a class variable of the base)
        "row_filter": "a run with a filter would {mode} whole partitions with part of their rows: "
        "set write_mode to merge, or leave the filter out",
        "delete_missing": "delete_missing is for write_mode merge, not {mode}",
    }

    def refuse_table(self, table: Table) -> None:
        """Raises SettingsError if the table has no natural key."""
        if not table.natural_key:
            raise SettingsError(
                f"{table.key} can't merge: it declares no natural key that would tell which row "
                "replaces which; use overwrite"
            )

    def combine(self, computed: DataFrame, window: InputWindow, options: WriteOptions) -> DataFrame:
        """Adds to the computed rows the published ones of whose key no row was computed."""
        if not window.target.exists:
            return computed
        published = read_published(window)
        if options.delete_missing:
            published = published.where(_is_outside(options, window))
        together = computed.unionByName(published, allowMissingColumns=True)
        return _drop_replaced(together, window)


def _is_outside(options: WriteOptions, window: InputWindow) -> Column:
    """Builds a BOOLEAN: true for published rows that the run's filter is not about.

    These it can't call missing.
    """
    if not options.row_filter:
        return F.expr("false")
    about = build_condition(parse_filter(options.row_filter, window.table), window.table)
    return ~F.coalesce(about, F.expr("false"))


def _drop_replaced(together: DataFrame, window: InputWindow) -> DataFrame:
    """Drops the published rows whose natural key was computed: in one pass, computed once."""
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
