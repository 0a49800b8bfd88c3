"""What a write mode can decide, and the modes that need no more than a page.

`WriteMode` as it stands publishes nothing but what was computed.
"""

from collections.abc import Mapping, Sequence
from typing import ClassVar

from pyspark.sql import Column, DataFrame
from pyspark.sql import Window as SparkWindow
from pyspark.sql import functions as F

from backfill_engine.audit_columns import ENGINE_PREFIX, FILTERED_OUT, KEPT
from backfill_engine.errors import SettingsError
from backfill_engine.filters.row_filters import build_condition, parse_filter
from backfill_engine.lake.partitions import Partition
from backfill_engine.lake.reader import build_number, read_table
from backfill_engine.publishing.inputs import PinnedInputs
from backfill_engine.publishing.results import PartitionResult
from backfill_engine.publishing.write_modes.options import TAKE_BACK, WriteOptions
from backfill_engine.quality.measures import is_row
from backfill_engine.sources.input_window import InputWindow
from backfill_engine.tables.declarations import Table


class WriteMode:
    """One way to get computed rows together with published ones.

    Attributes:
        name: as runs are told it, and as commits carry it.
        takes: the `WriteOptions` that it understands, beside its name; with the message for a run
            that gives one to another mode.
        restores: whether its rows are of an earlier version, and not computed from inputs.
        keeps_rows: whether published rows of a partition may stay.
        writes: whether it writes rows, and doesn't only record those that are there.
    """

    name: ClassVar[str]
    takes: ClassVar[Mapping[str, str]] = {}
    restores: ClassVar[bool] = False
    keeps_rows: ClassVar[bool] = False
    writes: ClassVar[bool] = True

    def refuse_table(self, table: Table) -> None:
        """Raises SettingsError if the mode can't be used on the table."""

    def add_rules(self, table: Table, *, is_landed: bool) -> Table:
        """Adds the rules that the mode itself needs; none by default.

        Args:
            table: the table.
            is_landed: whether it is computed from the landing zone.
        """
        return table

    def combine(self, computed: DataFrame, window: InputWindow, options: WriteOptions) -> DataFrame:
        """Builds the contents of the window's partitions after the run.

        Args:
            computed: columns of the window's table (with its extra fields), and any audit columns;
                rows that a filter leaves out are marked already.
            window: the partitions.
            options: of the run.

        Returns:
            The columns of `computed`; and, where published rows stay, the audit column `_kept`.
        """
        return computed

    def find_repeated(
        self, partitions: Sequence[Partition], pinned: PinnedInputs, options: WriteOptions
    ) -> list[PartitionResult]:
        """Finds results of partitions that hold already what the run would add.

        There are none by default.
        """
        return []

    def name_batches(
        self, partitions: Sequence[Partition], pinned: PinnedInputs, options: WriteOptions
    ) -> dict[str, str]:
        """Names the batch that is added to each partition, by key; none by default."""
        return {}


def mark_filtered_out(computed: DataFrame, window: InputWindow, options: WriteOptions) -> DataFrame:
    """Adds the audit column `_filtered_out` where the table or the run has a row filter."""
    row_filter = options.find_row_filter(window.table)
    if row_filter is None:
        return computed
    included = F.coalesce(build_condition(row_filter, window.table), F.expr("false"))
    filtered_out = F.when(is_row(computed) & ~included, F.expr("true"))
    return computed.withColumn(FILTERED_OUT, filtered_out)


def read_published(window: InputWindow) -> DataFrame:
    """Reads the published rows of the window's partitions, and marks them as kept.

    The table must exist.
    """
    stored = read_table(window.spark, window.target, window.stored_table)
    return window.keep_partitions(stored).withColumn(KEPT, F.expr("true"))


class Overwrite(WriteMode):
    """Replaces a partition by what was computed from its inputs."""

    name = "overwrite"


class Rollback(WriteMode):
    """A person took partitions back to an earlier version."""

    name = "rollback"
    restores = True


class Accept(Rollback):
    """A person accepted partitions as another program left them: their files stay."""

    name = "accept"
    writes = False


class Revert(Rollback):
    """A run took back what it had just published and could not read as it was audited."""

    name = TAKE_BACK


RESTORING = frozenset({Rollback.name, Accept.name, Revert.name})
"""Names of the modes whose commits put a version back: the one of the table among their inputs."""


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
