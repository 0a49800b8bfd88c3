"""The feed of a table and the historical loads of the days before, listed as one."""

import datetime as dt
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import chain
from typing import TypeVar

from pyspark.sql import DataFrame, SparkSession

from backfill_engine.lake.landing import FileFault, LandedFiles, LandingFile
from backfill_engine.lake.partitions import Partition, sort_partitions
from backfill_engine.rules.measured import Landed
from backfill_engine.sources.historical_loads import HistoricalLoad
from backfill_engine.sources.source import Listing, Source
from backfill_engine.tables.declarations import Table

Content = TypeVar("Content")


@dataclass(frozen=True)
class History:
    """The feed of a table by days, and the historical loads that fill the days before.

    Attributes:
        feed: what lands day by day.
        flows: those that are active, ascending; with the feed they leave no day out.
        end: the first day of the feed; whatever a flow has from it on isn't read.
    """

    feed: Source
    flows: tuple[HistoricalLoad, ...]
    end: dt.date

    @property
    def begin(self) -> dt.date:
        """The first day of all."""
        return self.flows[0].begin

    def find_flow(self, day: dt.date) -> HistoricalLoad | None:
        """Finds the flow that fills a day; None for a day of the feed."""
        flows = self.flows if day < self.end else ()
        return next((flow for flow in flows if flow.holds(day)), None)

    def list_files(self, root: str, table: Table, partitions: Iterable[Partition]) -> Listing:
        """Lists the files of days: by the historical load that fills a day, or by the feed."""
        partitions = sort_partitions(partitions)
        by_flow: dict[HistoricalLoad | None, list[Partition]] = {}
        for partition in partitions:
            day = partition.slice.start
            assert isinstance(day, dt.date)
            by_flow.setdefault(self.find_flow(day), []).append(partition)
        feed = by_flow.pop(None, None)
        parts: list[Listing] = [
            flow.list_files(root, table, days) for flow, days in by_flow.items() if flow
        ]
        if feed or not parts:
            parts.append(self.feed.list_files(root, table, feed or ()))
        if len(parts) == 1:
            return parts[0]
        return JoinedListing(self.feed, root, table, tuple(partitions), tuple(parts))


@dataclass(frozen=True)
class JoinedListing(Listing):
    """A `Listing` of several, each of other partitions: history first, the feed last."""

    parts: tuple[Listing, ...]

    @property
    def dataset(self) -> str:
        """The folders below the root of all parts."""
        return "+".join(dict.fromkeys(part.dataset for part in self.parts))

    @property
    def missing(self) -> Sequence[Partition]:
        """Listed partitions of which nothing is there."""
        return tuple(chain.from_iterable(part.missing for part in self.parts))

    @property
    def faults(self) -> Sequence[FileFault]:
        """What is known to be unreadable before any record is read."""
        return tuple(chain.from_iterable(part.faults for part in self.parts))

    @property
    def unfinished(self) -> Mapping[str, str]:
        """By partition key, why more of it is yet to land; in words."""
        return _merge(part.unfinished for part in self.parts)

    def restrict(self, partitions: Collection[Partition]) -> "JoinedListing":
        """Returns the part of the listing that is about `partitions`."""
        parts = tuple(part.restrict(partitions) for part in self.parts)
        return replace(super().restrict(partitions), parts=parts)

    def fingerprint(self) -> str:
        """Writes the fingerprints of all parts: the version of this input."""
        return "; ".join(part.fingerprint() for part in self.parts)

    def list_evidence(self) -> Mapping[str, str]:
        """Lists what parts without files say, by partition key."""
        return _merge(part.list_evidence() for part in self.parts)

    def describe_files(self) -> dict[str, LandedFiles]:
        """Describes the files of each partition, by its key."""
        return _merge(part.describe_files() for part in self.parts)

    def list_landed(self) -> Mapping[str, Sequence[LandingFile]]:
        """Lists the files that each partition is computed from, by its key."""
        return _merge(part.list_landed() for part in self.parts)

    def count_records(self) -> Mapping[str, int]:
        """Counts the records that landed, by partition key, where that can be told."""
        return _merge(part.count_records() for part in self.parts)

    def read(self, spark: SparkSession, kind: str) -> DataFrame:
        """Reads the records of all parts."""
        frames = (part.read(spark, kind) for part in self.parts)
        # Of what the feed lands it is known what partition it is of.
        return reduce(lambda rows, more: rows.unionByName(more, allowMissingColumns=True), frames)

    def count(self, spark: SparkSession) -> Mapping[str, int]:
        """Counts the records of all parts."""
        return _merge(part.count(spark) for part in self.parts)

    def measure_bytes(self) -> Mapping[str, int]:
        """Measures bytes to read by partition key."""
        return _merge(part.measure_bytes() for part in self.parts)

    def describe_landed(self) -> Mapping[str, Landed]:
        """Describes what is there, by the key of each listed partition."""
        return _merge(part.describe_landed() for part in self.parts)

    def check_unchanged(self) -> None:
        """Lists again and compares, for after the files have been read.

        Raises:
            LandingError: if a file appeared, vanished or was rewritten meanwhile.
        """
        for part in self.parts:
            part.check_unchanged()

    def find_broken(self, error: str) -> Sequence[FileFault]:
        """Finds the files that can't be read, each with the partitions that it may hold."""
        return tuple(chain.from_iterable(part.find_broken(error) for part in self.parts))


def _merge(found: Iterable[Mapping[str, Content]]) -> dict[str, Content]:
    return {key: value for part in found for key, value in part.items()}
