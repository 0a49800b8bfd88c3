"""A source made of two functions of a project's own, for whatever no other source reads."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import TypeAlias

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from backfill_engine.audit_columns import LANDED_FILE
from backfill_engine.errors import DeclarationError, LandingError
from backfill_engine.lake.partitions import Partition, sort_partitions
from backfill_engine.lake.reader import add_folder, build_number
from backfill_engine.sources.evidence import EvidenceListing
from backfill_engine.sources.source import Source
from backfill_engine.tables.declarations import Table

ReadRows: TypeAlias = Callable[[SparkSession, Sequence[Partition]], DataFrame]
FindFingerprints: TypeAlias = Callable[[Sequence[Partition]], Mapping[str, str]]


@dataclass(frozen=True)
class FunctionSource(Source):
    """What two functions read: `FunctionSource("rates", read=…, fingerprint=…)`.

    Attributes:
        dataset: what it is called.
        read: reads the rows of partitions by a session: a frame with the table's partition column.
            Rows of other partitions are refused.
        fingerprint: tells by partition key a text that changes with the rows, without Spark; a
            partition without a text isn't there. Who looks at what changed asks it: it is to be
            quick, and to tell no secret.

    Raises:
        DeclarationError: when it is made, if it can't be as it is declared.
    """

    dataset: str
    _: KW_ONLY
    read: ReadRows
    # No part of the code version: it decides no row.
    fingerprint: FindFingerprints = field(repr=False)

    def __post_init__(self) -> None:
        if not self.dataset or not callable(self.read) or not callable(self.fingerprint):
            raise DeclarationError(
                f"source `{self.dataset}`: give it a name, and two functions as `read` and "
                "`fingerprint`"
            )

    def refuse_table(self, table: Table) -> None:
        """Refuses none."""

    def describe_place(self, table: Table) -> tuple[str, str]:
        """Describes it."""
        return "python", "read()"

    def locate(self, root: str) -> str:
        """Says what it is called: it has no place."""
        return self.dataset

    def list_files(
        self, root: str, table: Table, partitions: Iterable[Partition]
    ) -> "FunctionListing":
        """Asks for the fingerprints of partitions.

        Raises:
            LandingError: if they can't be had.
        """
        wanted = sort_partitions(partitions)
        return FunctionListing(self, root, table, wanted, self._find_evidence(wanted))

    def _find_evidence(self, partitions: Sequence[Partition]) -> dict[str, str]:
        if not partitions:
            return {}
        owner = f"`fingerprint` of {self.dataset}"
        try:
            found = self.fingerprint(partitions)
        except Exception as error:  # Of any kind: it is of this source alone, and sensors go on.
            raise LandingError(
                f"{owner} failed: {type(error).__name__}: {error}; nothing was written"
            ) from error
        if not isinstance(found, Mapping) or not all(isinstance(t, str) for t in found.values()):
            raise LandingError(
                f"{owner} returned {found!r:.100}: return a dict of texts by partition key; "
                "nothing was written"
            )
        return {part.key: found[part.key] for part in partitions if found.get(part.key)}


@dataclass(frozen=True)
class FunctionListing(EvidenceListing):
    """A `Listing` of what two functions read, by partition, ascending."""

    source: FunctionSource
    _read: list[tuple[DataFrame, dict[str, int]]] = field(
        default_factory=list, init=False, repr=False, compare=False
    )
    """The rows and their counts, once they are read."""

    def read(self, spark: SparkSession, kind: str = "") -> DataFrame:
        """Reads the rows of the listed partitions.

        Returns:
            What the function has of a row, the table's partition column (and its folder column);
            `source_file` STRING, the name of the source where the function has no such column.

        Raises:
            LandingError: if a row is of no listed partition, or a kind of files is asked for.
        """
        self.refuse_kind(kind)
        return self._read_once(spark)[0]

    def count(self, spark: SparkSession) -> Mapping[str, int]:
        """Counts the rows of all listed partitions, by key."""
        return self._read_once(spark)[1]

    def _read_once(self, spark: SparkSession) -> tuple[DataFrame, dict[str, int]]:
        if not self._read:
            rows, by = self.source.read(spark, self.partitions), self.table.partition_by
            if by not in rows.columns:
                raise LandingError(
                    f"`read` of {self.dataset} returned no column `{by}`, which says the "
                    "partition: select it; nothing was written"
                )
            counts = self._count(rows)
            if LANDED_FILE not in rows.columns:
                rows = rows.withColumn(LANDED_FILE, F.lit(self.dataset))
            self._read.append((add_folder(rows, self.table), counts))
        return self._read[0]

    def _count(self, rows: DataFrame) -> dict[str, int]:
        """Counts rows by partition key; refuses those of no listed partition."""
        grain, by = self.table.grain, self.table.partition_by
        keys = {grain.find_number(part.slice.start): part.key for part in self.partitions}
        number = build_number(grain, by).alias("number")
        counted = rows.groupBy(number).agg(F.count("*"), F.min(by)).collect()
        if strays := [found for found in counted if found[0] not in keys]:
            raise LandingError(
                f"`read` of {self.dataset} returned {sum(found[1] for found in strays):,} rows of "
                f"no partition that it was asked for, such as `{by}` {strays[0][2]}: nothing was "
                "written; return the rows of these partitions alone"
            )
        found = {keys[row[0]]: row[1] for row in counted}
        return {key: found.get(key, 0) for key in keys.values()}
