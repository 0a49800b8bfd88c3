"""Partitions of an input that are read from elsewhere, as if they had been published."""

from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession

from backfill_assets.lake.partitions import build_table_predicate
from backfill_assets.lake.reader import read_table
from backfill_assets.lake.slices import Partition
from backfill_assets.lake.table_log import TableLog


@dataclass(frozen=True)
class Overlay:
    """What another table of the same declaration holds of some partitions.

    Attributes:
        log: of that table, at the version to read.
        partitions: those that are read there, and not in the table itself; at least one.
    """

    log: TableLog
    partitions: tuple[Partition, ...]

    def read_over(self, spark: SparkSession, below: TableLog) -> DataFrame:
        """Reads the declared columns: of its partitions there, of all others of `below`."""
        table = self.log.table
        mine = build_table_predicate(table, (partition.slice for partition in self.partitions))
        over = read_table(spark, self.log).where(mine)
        if not below.exists:
            return over
        return read_table(spark, below).where(f"NOT ({mine})").unionByName(over)

    def count_over(self, counts: Mapping[str, int]) -> dict[str, int]:
        """Counts rows by partition key, where `counts` has those of the table itself."""
        own = self.log.count_rows()
        return {**counts, **{one.key: own.get(one.key, 0) for one in self.partitions}}
