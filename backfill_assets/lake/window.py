"""What a step may read: its inputs, pinned when the step began, cut to what its partitions need."""

import datetime as dt
import re
from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from backfill_assets.errors import LandingError
from backfill_assets.lake.history import count_rows
from backfill_assets.lake.landing import LandingListing
from backfill_assets.lake.reader import read_table
from backfill_assets.lake.slices import Partition, Slice, build_predicate, widen_slices
from backfill_assets.lake.warehouse import Warehouse
from backfill_assets.tables.declarations import Table


@dataclass(frozen=True)
class Window:
    """The partitions of one table to compute, and the pinned inputs to compute them from.

    Attributes:
        spark: the session.
        warehouse: where input tables are.
        table: the table whose partitions are computed.
        partitions: which, ascending; at least one.
        versions: Delta version to read, by the key of the input table.
        listing: files of the landing zone, for a table that reads it.
        extra_fields: fields of the source that the table has beyond its declaration.
    """

    spark: SparkSession
    warehouse: Warehouse
    table: Table
    partitions: tuple[Partition, ...]
    versions: Mapping[str, int]
    listing: LandingListing | None = None
    extra_fields: tuple[str, ...] = ()

    @property
    def slices(self) -> tuple[Slice, ...]:
        """What the partitions cover."""
        return tuple(partition.slice for partition in self.partitions)

    def read(self, table: Table, *, column: str, days_before: int = 0) -> DataFrame:
        """Rows of an input table whose `column` lies in the window.

        Args:
            table: one of the inputs that the asset declares.
            column: a DATE column; the partition column or one with tight file statistics, so that
                other files are skipped.
            days_before: how far the window reaches back before each partition.
        """
        slices = widen_slices(self.slices, before=dt.timedelta(days=days_before))
        rows = read_table(self.spark, self.warehouse, table, version=self.versions[table.key])
        return rows.where(build_predicate(column, slices))

    def read_landing(self) -> DataFrame:
        """Lines of the listed files: `value` STRING, `landing_date` DATE, `source_file` STRING.

        Blank lines are no records and left out.
        """
        if self.listing is None:
            raise LandingError(f"{self.table.key} declares no landing zone to read from")
        if not self.listing.files:
            schema = "value string, landing_date date, source_file string"
            return self.spark.createDataFrame([], schema)
        # The layout is fixed, so the last four segments are year=YYYY/month=MM/day=DD/NAME.
        below_dataset = F.substring_index("_metadata.file_path", "/", -4)
        year, month, day = (
            F.substring(below_dataset, at, width) for at, width in ((6, 4), (17, 2), (24, 2))
        )
        dataset = F.lit(self.listing.landing.dataset)
        return (
            self.spark.read.text([_escape(file.uri) for file in self.listing.files])
            .select(
                "value",
                F.to_date(F.concat_ws("-", year, month, day)).alias("landing_date"),
                F.concat_ws("/", dataset, _decode(below_dataset)).alias("source_file"),
            )
            .where(F.col("value").rlike(r"\S"))
        )

    def count_landing(self) -> dict[str, int]:
        """Lines that landed, by partition key; counted apart from whatever parses them."""
        return self.count_by(self.read_landing(), "landing_date")

    def count_by(self, rows: DataFrame, column: str) -> dict[str, int]:
        """Rows by partition key, for a column that holds the partitions' values; 0 where none."""
        counted = {row[0]: row[1] for row in rows.groupBy(column).count().collect()}
        return {one.key: counted.get(one.slice.start, 0) for one in self.partitions}

    def count_input(self, table: Table, *, days_before: int = 0) -> dict[str, int]:
        """Rows that an input partitioned by day holds in each partition's window, from the log."""
        counts = count_rows(self.warehouse, table, version=self.versions[table.key])
        by_day = {dt.date.fromisoformat(day): rows for day, rows in counts.items()}
        reach = [dt.timedelta(days=offset) for offset in range(days_before + 1)]
        return {
            one.key: sum(by_day.get(one.slice.start - back, 0) for back in reach)  # type: ignore[operator]
            for one in self.partitions
        }

    def keep_partitions(self, rows: DataFrame) -> DataFrame:
        """The rows that belong to the partitions, where a transform also makes others."""
        return rows.where(build_predicate(self.table.partition_by, self.slices))


def _escape(uri: str) -> str:
    """Spark takes paths for patterns; a file that is named like one must still be itself."""
    return re.sub(r"([\[\]{}*?\\])", r"\\\1", uri)


def _decode(path: Column) -> Column:
    """Undoes the percent-encoding of `_metadata`; a plus sign is itself there."""
    decoded = F.url_decode(F.regexp_replace(path, r"\+", "%2B"))
    return F.when(path.contains("%"), decoded).otherwise(path)  # seldom, and dear
