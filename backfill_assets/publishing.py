"""One window of partitions, from pinned inputs to one commit: transform → audit → publish.

Knows nothing of Dagster; `table_assets` calls it and records what it returns.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from backfill_assets.errors import LandingError, UnreadableRecordsError
from backfill_assets.lake.history import (
    count_rows,
    find_latest_publishes,
    read_commits,
    read_version,
)
from backfill_assets.lake.landing import Landing, LandingListing, find_broken_files
from backfill_assets.lake.slices import Partition
from backfill_assets.tables.declarations import Table
from backfill_assets.lake.warehouse import Warehouse
from backfill_assets.lake.window import Window
from backfill_assets.lake.writer import (
    Provenance,
    PublishedContent,
    create_table,
    overwrite_partitions,
)
from backfill_assets.quality.measures import PartitionMeasures, measure_partitions

_EXAMPLES = 3


@dataclass(frozen=True)
class PinnedInputs:
    """The inputs as they were when the step began.

    Attributes:
        versions: Delta version by the key of the input table.
        listing: files of the landing zone, for a table that reads it.
    """

    versions: Mapping[str, int]
    listing: LandingListing | None = None

    def describe(self) -> dict[str, int | str]:
        """What goes into commits and events: versions, and a fingerprint of the landing files."""
        if self.listing is None:
            return dict(self.versions)
        return {
            **self.versions,
            f"landing/{self.listing.landing.dataset}": self.listing.fingerprint(),
        }


@dataclass(frozen=True)
class Publication:
    """What a commit published: its version, and the measures of each partition by key."""

    version: int
    measures: Mapping[str, PartitionMeasures]


def pin_inputs(
    warehouse: Warehouse,
    *,
    inputs: Sequence[Table],
    landing: Landing | None,
    partitions: Sequence[Partition],
) -> PinnedInputs:
    """Fixes the versions and files that a step will read.

    Raises:
        TableError: if an input table doesn't exist.
    """
    return PinnedInputs(
        versions={table.key: read_version(warehouse, table) for table in inputs},
        listing=landing.list_files(one.slice.start for one in partitions) if landing else None,  # type: ignore[misc]
    )


def find_emptied_days(warehouse: Warehouse, table: Table, listing: LandingListing) -> list[str]:
    """Landing days without files that were consumed before: their data was taken back.

    Raises:
        LandingError: naming the days that never had files; they have not come, or the path is
            wrong.
    """
    if not listing.days_without_files:
        return []
    consumed = set(count_rows(warehouse, table))
    consumed.update(find_latest_publishes(read_commits(warehouse, table)))
    without_files = [day.isoformat() for day in listing.days_without_files]
    never_landed = [day for day in without_files if day not in consumed]
    if never_landed:
        raise LandingError(
            f"nothing has ever landed on {', '.join(never_landed)} "
            f"(looked in {listing.landing.root}/{listing.landing.dataset}): "
            "leave these days out, or point BACKFILL_LANDING at the landing zone that has them"
        )
    return without_files


def publish_window(
    compute: Callable[[Window], DataFrame], window: Window, provenance: Provenance
) -> Publication:
    """Computes the partitions once, measures them, and replaces them in one commit.

    Raises:
        UnreadableRecordsError: if a landed line can't become a row, or a file can't be read;
            nothing was published then.
        LandingError: if landing files changed while they were read.
    """
    table = window.table
    create_table(window.spark, window.warehouse, table)
    # By partition value, so that each partition is one file; persisted, so that what is published
    # is what was measured.
    frame = compute(window).repartition(table.partition_by).persist()
    try:
        try:
            measures = measure_partitions(frame, table, window.partitions)
        except PySparkException as error:
            _refuse_broken_files(window.listing, error)
            raise
        _refuse_rejects(table, measures)
        if window.listing is not None:
            window.listing.check_unchanged()
        version = overwrite_partitions(
            frame,
            warehouse=window.warehouse,
            table=table,
            partitions=window.partitions,
            content=PublishedContent(
                rows={key: one.rows for key, one in measures.items()},
                checksums={key: one.checksum for key, one in measures.items()},
            ),
            provenance=provenance,
        )
    finally:
        frame.unpersist()
    return Publication(version, measures)


def _refuse_rejects(table: Table, measures: Mapping[str, PartitionMeasures]) -> None:
    rejected = {key: one for key, one in measures.items() if one.rejects}
    if rejected:
        examples = [f"{key}: {one.rejects} ({one.reject_example})" for key, one in rejected.items()]
        more = f" and {len(examples) - _EXAMPLES} more partitions" * (len(examples) > _EXAMPLES)
        total = sum(one.rejects for one in rejected.values())
        raise UnreadableRecordsError(
            f"{table.key}: {total} lines can't become rows, so nothing was published: "
            f"{'; '.join(examples[:_EXAMPLES])}{more}: mend the files, run again"
        )


def _refuse_broken_files(listing: LandingListing | None, error: PySparkException) -> None:
    broken = find_broken_files(listing) if listing else []
    if broken:
        raise UnreadableRecordsError(
            f"files can't be decompressed, so nothing was published: {', '.join(broken)}: "
            "land them again, run again"
        ) from error
