"""What a step may read: its inputs, pinned when the step began, cut to what its partitions need."""

import datetime as dt
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import reduce

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from backfill_engine.errors import LandingError, TableError
from backfill_engine.grains.grain import Grain
from backfill_engine.lake.evolution import extend_table
from backfill_engine.lake.landing import Listing
from backfill_engine.lake.overlays import Overlay
from backfill_engine.lake.partitions import build_table_predicate
from backfill_engine.lake.placement import add_folder, build_number
from backfill_engine.lake.reader import read_table
from backfill_engine.lake.slices import Partition, Slice, build_predicate, widen_slices
from backfill_engine.lake.table_log import TableLog
from backfill_engine.sources.joined_listing import list_parts
from backfill_engine.sources.json_landing import JsonListing
from backfill_engine.sources.landed_lines import UNREADABLE
from backfill_engine.sources.landing_names import (
    build_source_file,
    find_path_below_dataset,
    plan_reads,
)
from backfill_engine.sources.once_landing import OnceListing, read_lines
from backfill_engine.sources.parquet_landing import ParquetListing, count_records, read_records
from backfill_engine.tables.declarations import Table
from backfill_engine.uris import is_local

_SOON_READ_BYTES = 32 * 2**20
"""Of landed files, most of them compressed; a second or so."""

_EXAMPLE = dt.datetime(2013, 1, 1, tzinfo=dt.UTC)


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
    """

    spark: SparkSession
    target: TableLog
    partitions: tuple[Partition, ...]
    inputs: Mapping[str, TableLog]
    listing: Listing | None = None
    extra_fields: tuple[str, ...] = ()
    overlays: Mapping[str, Overlay] = field(default_factory=dict)

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
                tight file statistics, so that other files are skipped.
            days_before: how far the window reaches back before each partition.
            days_after: how far it reaches on behind each.
        """
        slices = widen_slices(
            self.slices,
            before=dt.timedelta(days=days_before),
            after=dt.timedelta(days=days_after),
        )
        log, overlay = self._find_input(table)
        rows = overlay.read_over(self.spark, log) if overlay else read_table(self.spark, log)
        return rows.where(build_predicate(column, slices))

    def _find_input(self, table: Table) -> tuple[TableLog, Overlay | None]:
        """Finds an input by its declaration, which knows nothing of the keys of assets."""
        for key, log in self.inputs.items():
            if log.table.place == table.place:
                return log, self.overlays.get(key)
        raise TableError(
            f"{self.table.key} reads {table.place}, which isn't among its inputs: name it in "
            "`inputs` of @table_asset"
        )

    def read_landing(self) -> DataFrame:
        """Reads the lines of the listed files, and where they are from.

        Blank lines are no records, left out. Those of a once-flow are made of its records.

        Returns:
            `value` STRING, the line; the table's partition column (and its folder column), as its
            folder says; `source_file` STRING.
        """
        lines = [
            read_lines(self.spark, part, self.table.partition_by)
            if isinstance(part, OnceListing)
            else self._read_json(part)
            for part in self._list_line_parts()
        ]
        return reduce(DataFrame.unionByName, lines)

    def _list_line_parts(self) -> list[JsonListing | OnceListing]:
        """Lists the sources of lines; refuses to read less than there is."""
        parts = [
            part for part in list_parts(self.listing) if isinstance(part, JsonListing | OnceListing)
        ]
        if self.listing is None or not parts:
            raise LandingError(f"{self.table.key} declares no JSON landing to read from")
        self._refuse_faults(self.listing)
        return parts

    def _read_json(self, listing: JsonListing) -> DataFrame:
        by, grain = self.table.partition_by, self.table.grain
        if not listing.files:
            schema = f"value string, `{by}` {grain.column_types[0]}, source_file string"
            return add_folder(self.spark.createDataFrame([], schema), self.table)
        levels = grain.landing_format.count("/") + 1
        below_dataset = find_path_below_dataset(levels)
        source_file = build_source_file(listing.dataset, levels)
        frames = [
            self.spark.read.options(**options)
            .text(paths)
            .where(F.col("value").rlike(r"\S"))
            .select("value", source_file.alias("source_file"), below_dataset.alias("_path"))
            for options, paths in plan_reads(listing.root, (file.uri for _, file in listing.files))
        ]
        rows = (
            reduce(DataFrame.unionByName, frames)
            .withColumns(_cut_folder("_path", grain))
            .select("value", F.expr(grain.landing_start).alias(by), "source_file")
        )
        return add_folder(rows, self.table)

    def read_parquet(self, name: str) -> DataFrame:
        """Reads the landed records of one kind that belong to the window.

        One without a key belongs to the partition of the smallest key of its file.

        Returns:
            The declared fields; the table's partition column; `source_file` STRING.
        """
        if not isinstance(self.listing, ParquetListing):
            raise LandingError(f"{self.table.key} declares no Parquet landing to read from")
        self._refuse_faults(self.listing)
        return read_records(self.spark, self.listing, name, self.table, self.partitions)

    def _refuse_faults(self, listing: Listing) -> None:
        """Refuses to read less than there is; who publishes leaves these partitions out."""
        for fault in listing.faults:
            raise LandingError(f"{fault.name} {fault.fault}")

    def list_partitions(self) -> DataFrame:
        """Lists the first value of each partition in the partition column, one row each."""
        by = self.table.partition_by
        types = {column.name: column.type for column in self.table.columns}
        return self.spark.createDataFrame(
            [(partition.slice.start,) for partition in self.partitions], f"`{by}` {types[by]}"
        )

    def count_landing(self) -> dict[str, int]:
        """Counts the records that landed, by partition key, apart from whatever parses them.

        Of Parquet it is what the files' footers say that they hold. Of JSON it is the lines: of not
        much on a local disk by Python, as Spark takes longer to open files than to count lines.
        """
        if isinstance(self.listing, ParquetListing):
            return count_records(self.spark, self.listing, self.partitions)
        parts = self._list_line_parts()
        if all(map(_is_soon_read, parts)):
            # Where this reader gives up, Spark's decides.
            with suppress(*UNREADABLE):
                return {key: count for part in parts for key, count in part.count_lines().items()}
        return self.count_by(self.read_landing(), self.table.partition_by)

    def count_by(self, rows: DataFrame, column: str) -> dict[str, int]:
        """Counts rows by partition key; 0 where none.

        `column` is one with values as the partition column's. For a raw key of a
        bucket, any integer will do.
        """
        grain = self.table.grain
        numbers = rows.groupBy(build_number(grain, column).alias("number")).count().collect()
        counted = {row[0]: row[1] for row in numbers}
        return {
            partition.key: counted.get(grain.find_number(partition.slice.start), 0)
            for partition in self.partitions
        }

    def count_input(self, table: Table, *, before: int = 0) -> dict[str, int]:
        """Counts the rows of an input of the same grain in each partition's window.

        They are counted from the log.

        Args:
            table: the input, as declared.
            before: how many partitions the window reaches back.
        """
        grain = self.table.grain
        log, overlay = self._find_input(table)
        counts = log.count_rows()
        counts = overlay.count_over(counts) if overlay else counts
        by_number = {grain.find_number(grain.find_start(key)): rows for key, rows in counts.items()}
        return {
            partition.key: sum(
                by_number.get(grain.find_number(partition.slice.start) - back, 0)
                for back in range(before + 1)
            )
            for partition in self.partitions
        }

    def keep_partitions(self, rows: DataFrame) -> DataFrame:
        """Keeps the rows that belong to the partitions, where a transform also makes others."""
        return rows.where(build_table_predicate(self.table, self.slices))


def _is_soon_read(listing: JsonListing | OnceListing) -> bool:
    return is_local(listing.root) and sum(listing.measure_bytes().values()) <= _SOON_READ_BYTES


def _cut_folder(path: str, grain: Grain) -> dict[str, Column]:
    """Cuts out the integers that a landing folder is named by.

    `year=2013/month=01` gives `year`, `month`. They are found by their offsets, which the grain's
    format fixes: Spark's own discovery of partitions takes a fifth longer where there are thousands
    of folders.
    """
    offset, cut = 1, dict[str, Column]()
    for level in _EXAMPLE.strftime(grain.landing_format).split("/"):
        name, _, digits = level.partition("=")
        cut[name] = F.substring(path, offset + len(name) + 1, len(digits)).cast("int")
        offset += len(level) + 1
    return cut
