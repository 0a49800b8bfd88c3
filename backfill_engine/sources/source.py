"""A source: what lands for a table, declared; and how a listing of it is had."""

import datetime as dt
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import ClassVar, Self

from pyspark.sql import DataFrame, SparkSession

from backfill_engine.errors import LandingError
from backfill_engine.lake.landing import (
    FileFault,
    LandedFiles,
    LandingFile,
    refuse_changes,
    relative_name,
    summarize_files,
)
from backfill_engine.lake.partitions import Partition
from backfill_engine.lake.reader import count_by
from backfill_engine.rules.measured import Landed
from backfill_engine.sources.landed_lines import (
    UNREADABLE,
    Pairs,
    find_broken_files,
    is_soon_read,
)
from backfill_engine.tables.columns import Column
from backfill_engine.tables.declarations import Table
from backfill_engine.uris import join_uri


@dataclass(frozen=True)
class Listing(ABC):
    """What was in the landing zone when it was listed, pinned: only these files are read.

    A subclass is a frozen dataclass.

    Attributes:
        source: what lands there.
        root: of the landing zone.
        table: that is computed from the files.
        partitions: those that are listed, ascending.
    """

    source: "Source"
    root: str
    table: Table
    partitions: tuple[Partition, ...]

    @property
    def dataset(self) -> str:
        """Its folder below the root."""
        return self.source.dataset

    @property
    @abstractmethod
    def missing(self) -> Sequence[Partition]:
        """Listed partitions of which nothing is there."""

    @property
    @abstractmethod
    def faults(self) -> Sequence[FileFault]:
        """What is known to be unreadable before any record is read."""

    @property
    def unfinished(self) -> Mapping[str, str]:
        """By partition key, why more of it is yet to land, in words; of none if all is over."""
        return {}

    def restrict(self, partitions: Collection[Partition]) -> Self:
        """Returns the part of the listing that is about `partitions`."""
        kept = set(partitions)
        return replace(
            self, partitions=tuple(partition for partition in self.partitions if partition in kept)
        )

    @abstractmethod
    def fingerprint(self) -> str:
        """Hashes the files' names, sizes and modification times: the version of this input."""

    @abstractmethod
    def list_landed(self) -> Mapping[str, Sequence[LandingFile]]:
        """Lists the files that listed partitions are computed from, by key, if from files."""

    def list_evidence(self) -> Mapping[str, str]:
        """Lists what a source without files says of listed partitions, by key."""
        return {}

    def describe_files(self) -> dict[str, LandedFiles]:
        """Describes the files that `list_landed` lists; those of several partitions once."""
        landed = {key: tuple(files) for key, files in self.list_landed().items()}
        summaries = {files: summarize_files(files, self.root) for files in set(landed.values())}
        return {key: summaries[files] for key, files in landed.items()}

    def name_file(self, file: LandingFile) -> str:
        """Names a file below the root, the same wherever the landing zone is mounted."""
        return relative_name(file.uri, self.root)

    @abstractmethod
    def count_records(self) -> Mapping[str, int]:
        """Counts the records that landed, by partition key; without Spark.

        Absent are partitions of which that can't be told: a file can't be read, or it holds
        records of other partitions too and only its footer is.
        """

    @abstractmethod
    def measure_bytes(self) -> Mapping[str, int]:
        """Measures bytes to read by partition key, as near as is known without reading them."""

    @abstractmethod
    def describe_landed(self) -> Mapping[str, Landed]:
        """Describes what is there, by the key of each listed partition."""

    @property
    def is_counted_by_reading(self) -> bool:
        """Whether `count_records` reads the files whole."""
        return True

    def count_known(self) -> int | None:
        """Counts the records that landed as far as listing told; None where it didn't."""
        return None

    @abstractmethod
    def read(self, spark: SparkSession, kind: str) -> DataFrame:
        """Reads the records of the listed partitions.

        Args:
            spark: the session.
            kind: which files, where a source has several kinds of them; else empty.

        Returns:
            What the format has of a record; the table's partition column (and its folder column);
            `source_file` STRING, below the landing root.

        Raises:
            LandingError: if there are none of that kind.
        """

    def read_rows(self, spark: SparkSession) -> DataFrame | None:
        """Reads the records as typed columns, where the format has types; else None.

        Returns:
            Fields; the table's partition column; `source_file` STRING; and the audit columns
            `_reject_reason` and `_rejected_line`.
        """
        return None

    def refuse_kind(self, kind: str) -> None:
        """Refuses a kind of files, where there are no kinds.

        Raises:
            LandingError: if it isn't empty.
        """
        if kind:
            raise LandingError(
                f"{self.dataset} has no kind of file called `{kind}`: what lands there is of one "
                "kind; read it by `window.read_landing()`"
            )

    @abstractmethod
    def count(self, spark: SparkSession) -> Mapping[str, int]:
        """Counts the records of all listed partitions, by key; apart from whatever parses them."""

    def check_unchanged(self) -> None:
        """Lists again and compares, for after the files have been read.

        Raises:
            LandingError: if a file appeared, vanished or was rewritten meanwhile.
        """
        again = self.source.list_files(self.root, self.table, self.partitions).describe_files()
        refuse_changes({key for key, now in self.describe_files().items() if now != again[key]})

    def find_broken(self, error: str) -> Sequence[FileFault]:
        """Finds the files that can't be read, each with the partitions that it may hold.

        Reads all files: for after a failure. `error`, Spark's message, may name one that is
        readable here and that Spark can't read.
        """
        files = {file for landed in self.list_landed().values() for file in landed}
        return self.list_faults(find_broken_files(files, error))

    def list_faults(self, faults: Mapping[LandingFile, str]) -> list[FileFault]:
        """Lists the faults of files with each partition that is computed from them."""
        landed = self.list_landed()
        return [
            FileFault(partition, self.name_file(file), faults[file])
            for partition in self.partitions
            for file in landed[partition.key]
            if file in faults
        ]


class LineListing(Listing):
    """A listing whose records are read as lines of JSON, and whose files are of one kind."""

    @abstractmethod
    def read_lines(self, spark: SparkSession) -> DataFrame:
        """Reads the lines, and where they are from."""

    @abstractmethod
    def count_lines(self) -> Mapping[str, int]:
        """Counts the records by partition key, by reading the files whole; without Spark.

        Raises:
            OSError, EOFError, zlib.error: if a file can't be read; see `UNREADABLE`.
        """

    def read(self, spark: SparkSession, kind: str = "") -> DataFrame:
        """Reads the lines, and where they are from.

        Raises:
            LandingError: if a kind of files is asked for.
        """
        self.refuse_kind(kind)
        return self.read_lines(spark)

    def count(self, spark: SparkSession) -> Mapping[str, int]:
        """Counts the records of each partition, apart from what parses them.

        Of not much on a local disk by Python: Spark takes longer to open files than to count lines.
        """
        if is_soon_read(self.root, self.measure_bytes().values()):
            with suppress(*UNREADABLE):  # Where this reader gives up, Spark's decides.
                return self.count_lines()
        by = self.table.partition_by
        return count_by(self.read_lines(spark), by, self.table.grain, self.partitions)

    def describe_copies(self, copies: Pairs) -> tuple[str, ...]:
        """Says in words which files hold the same as an earlier one."""
        return tuple(
            f"{self.name_file(file)} holds the same as {self.name_file(earlier)}"
            for file, earlier in copies
        )


class Source(ABC):
    """What lands for a table, in one format. A subclass is a frozen dataclass.

    What is declared of it is part of the table's code version. What is there is found by
    `list_files`: the listing that it returns is pinned, tells the evidence and the fingerprint of
    each partition, and reads and counts its records.

    Attributes:
        dataset: its folder below the root of the landing zone, or what it is called elsewhere.
        record_fields: what a record may hold, where records are parsed by these and may have more.
        takes_new_fields: whether a field that nobody declared becomes a column of the table.
        reads_lines: whether a record is read as a line of JSON, in a column `value`. A table may
            have historical loads then: their records become such lines, with its `record_fields`.
    """

    dataset: str
    record_fields: tuple[Column, ...] = ()
    takes_new_fields: ClassVar[bool] = False
    reads_lines: ClassVar[bool] = False

    @property
    def columns(self) -> Iterable[Column]:
        """All that is declared of the records; no name of the table's partition may be among it."""
        return self.record_fields

    @abstractmethod
    def refuse_table(self, table: Table) -> None:
        """Refuses a table that can't be computed from it.

        Raises:
            DeclarationError: naming the cure.
        """

    @abstractmethod
    def describe_place(self, table: Table) -> tuple[str, str]:
        """Describes what lands: the kind of its files, and the path of one below the dataset."""

    def locate(self, root: str) -> str:
        """Says where it is, below the root of the landing zone or elsewhere, without secrets."""
        return join_uri(root, self.dataset)

    @abstractmethod
    def list_files(self, root: str, table: Table, partitions: Iterable[Partition]) -> Listing:
        """Lists what is there for partitions of a table, and pins it.

        Args:
            root: of the landing zone.
            table: that is computed from it.
            partitions: of the table.

        Raises:
            LandingNotFoundError: if the dataset isn't there.
            LandingError: if it can't be listed.
        """

    def list_landed_from(self, root: str, table: Table, begin: dt.date) -> Sequence[str]:
        """Lists the keys, ascending, of what landed from a day on; empty where times don't tell.

        Raises:
            LandingError: if it can't be listed.
        """
        return ()
