"""Partitions of an input that are read from elsewhere, as if they had been published."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession

from backfill_engine.lake.partitions import build_table_predicate
from backfill_engine.lake.reader import read_table
from backfill_engine.lake.slices import Partition
from backfill_engine.lake.table_log import TableLog
from backfill_engine.tables.declarations import Table


@dataclass(frozen=True)
class Overlay(ABC):
    """What is read of some partitions instead of what the table itself holds.

    Attributes:
        partitions: which; at least one.
    """

    partitions: tuple[Partition, ...]

    @property
    @abstractmethod
    def table(self) -> Table:
        """The table that is overlaid."""

    @abstractmethod
    def read_rows(self, spark: SparkSession) -> DataFrame:
        """Reads the declared columns, of its partitions and maybe of others."""

    @abstractmethod
    def count_own(self) -> Mapping[str, int]:
        """Counts rows by partition key; one without any may be absent."""

    def read_over(self, spark: SparkSession, below: TableLog) -> DataFrame:
        """Reads the declared columns: of its partitions its own rows, of all others `below`'s."""
        mine = build_table_predicate(self.table, (partition.slice for partition in self.partitions))
        over = self.read_rows(spark).where(mine)
        if not below.exists:
            return over
        return read_table(spark, below).where(f"NOT ({mine})").unionByName(over)

    def count_over(self, counts: Mapping[str, int]) -> dict[str, int]:
        """Counts rows by partition key, where `counts` has those of the table itself."""
        own = self.count_own()
        return {**counts, **{one.key: own.get(one.key, 0) for one in self.partitions}}


@dataclass(frozen=True)
class WrittenOverlay(Overlay):
    """Partitions of another table of the same declaration.

    Attributes:
        log: of that table, at the version to read.
    """

    log: TableLog

    @property
    def table(self) -> Table:
        """The table that is overlaid."""
        return self.log.table

    def read_rows(self, spark: SparkSession) -> DataFrame:
        """Reads that table."""
        return read_table(spark, self.log)

    def count_own(self) -> Mapping[str, int]:
        """Counts its rows, by its log."""
        return self.log.count_rows()


@dataclass(frozen=True)
class ComputedOverlay(Overlay):
    """Partitions that are computed, and published nowhere yet.

    Attributes:
        declared: the table.
        rows: its columns, and maybe others.
        counts: rows by partition key.
    """

    declared: Table
    rows: DataFrame
    counts: Mapping[str, int]

    @property
    def table(self) -> Table:
        """The table that is overlaid."""
        return self.declared

    def read_rows(self, spark: SparkSession) -> DataFrame:
        """Selects the declared columns."""
        del spark  # The rows have theirs.
        return self.rows.select(*self.declared.column_names)

    def count_own(self) -> Mapping[str, int]:
        """The counts, as they were measured."""
        return self.counts
