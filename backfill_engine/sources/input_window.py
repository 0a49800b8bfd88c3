"""What a step may read: its inputs, pinned when the step began, cut to what its partitions need."""

import datetime as dt
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from operator import sub

from pyspark.sql import DataFrame, SparkSession

from backfill_engine.errors import LandingError, TableError
from backfill_engine.grains.overlaps import find_before, find_cover
from backfill_engine.lake.partitions import (
    Partition,
    Slice,
    build_partitions,
    build_predicate,
    build_table_predicate,
    widen_slices,
)
from backfill_engine.lake.reader import count_by, read_table
from backfill_engine.lake.stored_declarations import extend_table
from backfill_engine.lake.table_log import TableLog
from backfill_engine.sources.source import Listing
from backfill_engine.tables.declarations import Table


@dataclass(frozen=True)
class Overlay:
    """What is read of some partitions instead of what the table itself holds.

    Attributes:
        log: of a table of the same declaration.
        partitions: which; at least one.
        rows: of these and maybe of others, as declared; None for what the log's table holds.
        counts: of their rows, by partition key; None for what the log says.
    """

    log: TableLog
    partitions: tuple[Partition, ...]
    rows: DataFrame | None = None
    counts: Mapping[str, int] | None = None

    def read_over(self, spark: SparkSession, below: TableLog) -> DataFrame:
        """Reads the declared columns: of its partitions its own rows, of all others `below`'s."""
        own = build_table_predicate(
            self.log.table, (partition.slice for partition in self.partitions)
        )
        over = (read_table(spark, self.log) if self.rows is None else self.rows).where(own)
        if not below.exists:
            return over
        return read_table(spark, below).where(f"NOT ({own})").unionByName(over)

    def count_over(self, counts: Mapping[str, int]) -> dict[str, int]:
        """Counts rows by partition key, where `counts` has those of the table itself."""
        own = self.log.count_rows() if self.counts is None else self.counts
        return {
            **counts,
            **{partition.key: own.get(partition.key, 0) for partition in self.partitions},
        }


@dataclass(frozen=True)
class InputWindow:
    """The partitions of one table to compute, and the pinned inputs to compute them from.

    Attributes:
        spark: the session.
        target: log of the table whose partitions are computed, as it was when inputs were pinned.
        partitions: which, ascending; at least one.
        inputs: logs of the input tables at the versions to read, by table key.
        listing: files of the landing zone, for a table that reads it.
        extra_fields: fields of the source that the table has beyond its declaration.
        overlays: by table key, partitions of inputs that are read from elsewhere, as of a
            rehearsal.
        mapped: by table key, of inputs whose mapping doesn't go by values of partitions, the keys
            that each partition reads; None for all rows.
    """

    spark: SparkSession
    target: TableLog
    partitions: tuple[Partition, ...]
    inputs: Mapping[str, TableLog]
    listing: Listing | None = None
    extra_fields: tuple[str, ...] = ()
    overlays: Mapping[str, Overlay] = field(default_factory=dict)
    mapped: Mapping[str, Mapping[str, Sequence[str]] | None] = field(default_factory=dict)

    @property
    def table(self) -> Table:
        """The table whose partitions are computed."""
        return self.target.table

    @property
    def stored_table(self) -> Table:
        """The same with its extra fields, as it is in storage."""
        return extend_table(self.table, self.extra_fields)

    @property
    def slices(self) -> tuple[Slice, ...]:
        """What the partitions cover."""
        return tuple(partition.slice for partition in self.partitions)

    def find_begin(self) -> dt.date:
        """Finds the first day of the data of a table by days: of its calendar, or what it holds.

        So a record of a day that the table holds, or others read, stays one when the first day of
        the calendar moves on.
        """
        held = {*self.target.count_rows(), *self.target.publishes}
        calendar = self.table.calendar
        first_days = [calendar.first] if calendar else []
        return min([*first_days, *map(dt.date.fromisoformat, held)])

    def read(
        self, table: Table, *, column: str, days_before: int = 0, days_after: int = 0
    ) -> DataFrame:
        """Reads the rows of an input table whose `column` lies in the window.

        Args:
            table: one of the inputs that the asset declares.
            column: of the type of the partition column; the input's folder column, or one with
                tight file statistics, so that other files are skipped. What an input of another
                grain is partitioned by gives its partitions that hold any value of the window; and
                of an input with a mapping such as `LastPartitionMapping` those of the mapping.
            days_before: how far the window reaches back before each partition.
            days_after: how far it reaches on behind each.
        """
        rows = self.read_whole(table)
        read, grain = self._find_input(table)[0].table, self.table.grain
        is_of_partition = column in (read.partition_by, read.folder_by)
        if not self.table.partition_by or (is_of_partition and read.key in self.mapped):
            return rows
        if grain.is_named and (days_before or days_after or column != read.partition_by):
            raise TableError(
                f"{self.table.key} is partitioned by {grain}: read {read.key} by the column that "
                "it is partitioned by, without days before or after; nothing was written"
            )
        slices = widen_slices(
            self.slices,
            before=dt.timedelta(days=days_before),
            after=dt.timedelta(days=days_after),
        )
        if is_of_partition:
            covers = [find_cover(read.grain, slice_.start, slice_.end) for slice_ in slices]
            covered = slices if read.grain == grain else [Slice(*cover) for cover in covers]
            return rows.where(build_table_predicate(read, covered))
        types = {declared.name: declared.type for declared in read.columns}
        is_alike = types.get(column) in grain.column_types
        return rows.where(build_predicate(column, slices, grain if is_alike else None))

    def read_whole(self, table: Table) -> DataFrame:
        """Reads all rows of an input table, such as a dimension; of a mapping those that it gives.

        Args:
            table: one of the inputs that the asset declares, without partitions, or with a mapping
                such as `AllPartitionMapping`.
        """
        log, overlay = self._find_input(table)
        rows = overlay.read_over(self.spark, log) if overlay else read_table(self.spark, log)
        if (windows := self.mapped.get(log.table.key)) is None:
            return rows
        keys = {key for partition in self.partitions for key in windows.get(partition.key, ())}
        slices = [partition.slice for partition in build_partitions(log.table, keys)]
        return rows.where(build_table_predicate(log.table, slices) if slices else "false")

    def _find_input(self, table: Table) -> tuple[TableLog, Overlay | None]:
        """Finds an input by its declaration, which knows nothing of the keys of assets."""
        for key, log in self.inputs.items():
            if log.table.place == table.place:
                return log, self.overlays.get(key)
        raise TableError(
            f"{self.table.key} reads {table.place}, which isn't among its inputs: name it in "
            "`inputs` of @table_asset"
        )

    def read_landing(self, kind: str = "") -> DataFrame:
        """Reads the landed records that belong to the window, and where they are from.

        Args:
            kind: which files, of a source that has several kinds of them.

        Returns:
            What the source has of a record: of JSON `value` STRING, the line, and blank lines are
            no records; of Parquet the declared fields. Beside it the table's partition column (and
            its folder column); `source_file` STRING.

        Raises:
            LandingError: if a file can't be read: never less is read than there is.
        """
        return self._require_listing().read(self.spark, kind)

    def read_landed_rows(self) -> DataFrame | None:
        """Reads the landed records as typed columns, where their format has types; else None.

        Returns:
            As `Listing.read_rows`.

        Raises:
            LandingError: if a file can't be read.
        """
        return self._require_listing().read_rows(self.spark)

    def _require_listing(self) -> Listing:
        """Returns the listing; refuses faults, as who publishes leaves these partitions out."""
        if self.listing is None:
            raise LandingError(f"{self.table.key} declares no landing to read from")
        for fault in self.listing.faults:
            raise LandingError(f"{fault.name} {fault.fault}")
        return self.listing

    def list_partitions(self) -> DataFrame:
        """Lists the first value of each partition in the partition column, one row each."""
        by = self.table.partition_by
        types = {column.name: column.type for column in self.table.columns}
        return self.spark.createDataFrame(
            [(self.table.grain.find_stored(slice_.start),) for slice_ in self.slices],
            f"`{by}` {types[by]}",
        )

    def count_landing(self) -> dict[str, int]:
        """Counts the records that landed, by partition key, apart from whatever parses them."""
        return dict(self._require_listing().count(self.spark))

    def count_by(self, rows: DataFrame, column: str) -> dict[str, int]:
        """Counts rows by partition key, as `lake.reader.count_by` does; 0 where there are none."""
        return count_by(rows, column, self.table.grain, self.partitions)

    def count_input(self, table: Table, *, before: int = 0) -> dict[str, int]:
        """Counts the rows of an input's partitions that hold any value of each partition's window.

        They are counted from the log; of an input in `mapped` those of its mapping.

        Args:
            table: the input, as declared.
            before: how many partitions the window reaches back.
        """
        log, overlay = self._find_input(table)
        grain = log.table.grain
        counts = log.count_rows()
        counts = overlay.count_over(counts) if overlay else counts
        if log.table.key in self.mapped:
            keys = [partition.key for partition in self.partitions]
            windows = self.mapped[log.table.key] or dict.fromkeys(keys, tuple(counts))
            return {key: sum(counts.get(read, 0) for read in windows.get(key, ())) for key in keys}
        by_number = {grain.find_number(grain.find_start(key)): rows for key, rows in counts.items()}
        numbers = sorted(by_number)
        sums = [0, *accumulate(by_number[number] for number in numbers)]
        counted: dict[str, int] = {}
        for partition in self.partitions:
            start = partition.slice.start
            for _ in range(before):
                start = find_before(self.table.grain, start)
            first, end = map(grain.find_number, find_cover(grain, start, partition.slice.end))
            places = (bisect_left(numbers, number) for number in (end, first))
            counted[partition.key] = sub(*(sums[place] for place in places))
        return counted

    def keep_partitions(self, rows: DataFrame) -> DataFrame:
        """Keeps the rows that belong to the partitions, where a transform also makes others."""
        return rows.where(build_table_predicate(self.table, self.slices))
