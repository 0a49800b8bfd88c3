"""Computes partitions again from their inputs as they are now, and compares what is published."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from pyspark.sql import SparkSession

from backfill_engine.contents.partition_contents import (
    IN_THIS_PROCESS,
    UNREADABLE,
    PartitionReader,
    ReadBack,
)
from backfill_engine.engines.sessions import find_engine
from backfill_engine.errors import LandingError
from backfill_engine.extras.comparison.contents import read_contents, split_by_rows
from backfill_engine.extras.comparison.rows import count_duplicates
from backfill_engine.lake.partitions import Partition
from backfill_engine.lake.reader import SPARK_ERRORS
from backfill_engine.lake.table_log import TableLog, read_log
from backfill_engine.lake.warehouse import Warehouse
from backfill_engine.publishing.audit import compute_rows
from backfill_engine.publishing.inputs import (
    PinnedInputs,
    pin_inputs,
    split_chunks,
)
from backfill_engine.publishing.recipes import Recipe
from backfill_engine.publishing.serving import choose_served
from backfill_engine.publishing.write_modes.options import OVERWRITE
from backfill_engine.quality.measures import measure_partitions
from backfill_engine.rules.count_rules import Reconciled
from backfill_engine.rules.declared import LandedRecords
from backfill_engine.rules.measured import PartitionMeasures
from backfill_engine.sources.input_window import InputWindow


@dataclass(frozen=True)
class ReconciledPartition:
    """One partition: its source, what follows from it, and what is published.

    Attributes:
        table: `layer/name`.
        partition: its key.
        source_records: records of the layer above; for raw, lines in the landing zone; None where
            the table reconciles with nothing.
        rejects: of them, what can't become a row.
        duplicates_dropped: of them, what a later record of the same row replaced.
        rows_expected: rows that follow from the source now.
        checksum_expected: of these.
        rows: rows that an independent reader finds published; None if nothing ever was.
        checksum: of these.
        duplicates_per_1000: published rows beyond the first of their natural key, per 1,000.
        mismatch: what doesn't agree, in words; empty if all does.
    """

    table: str
    partition: str
    source_records: int | None
    rejects: int
    duplicates_dropped: int
    rows_expected: int
    checksum_expected: str
    rows: int | None
    checksum: str | None
    duplicates_per_1000: float
    mismatch: str = ""


@dataclass(frozen=True)
class Reconciler:
    """What it needs to compute partitions again.

    Attributes:
        spark: the session.
        warehouse: the Delta tables.
        landing_root: root of the landing zone.
        chunk_partitions: most partitions to compute at once.
        chunk_bytes: most bytes of input to compute from at once.
        reader: reads what is published.
    """

    spark: SparkSession
    warehouse: Warehouse
    landing_root: str
    chunk_partitions: int
    chunk_bytes: int
    reader: PartitionReader = IN_THIS_PROCESS

    def reconcile(
        self, recipe: Recipe, partitions: Sequence[Partition]
    ) -> Iterator[ReconciledPartition]:
        """Computes partitions again and compares them with what is published; writes nothing.

        They come ascending.

        Raises:
            LandingError: if a landing file can't be read.
            TableError: if an input table doesn't exist.
        """
        target = read_log(self.warehouse, recipe.table)
        recipe = replace(choose_served(recipe, target), table=target.table)
        pinned = pin_inputs(
            target,
            {table.key: read_log(self.warehouse, table) for table in recipe.inputs},
            recipe,
            landing_root=self.landing_root,
            partitions=partitions,
        )
        sizes = pinned.measure_bytes(partitions)
        for chunk in split_chunks(
            partitions, sizes, max_partitions=self.chunk_partitions, max_bytes=self.chunk_bytes
        ):
            yield from self._reconcile_chunk(recipe, chunk, pinned.restrict(chunk))

    def _reconcile_chunk(
        self, recipe: Recipe, partitions: tuple[Partition, ...], pinned: PinnedInputs
    ) -> Iterator[ReconciledPartition]:
        table = recipe.table
        window = InputWindow(
            spark=self.spark,
            target=pinned.target,
            partitions=partitions,
            inputs=pinned.inputs,
            listing=pinned.listing,
            extra_fields=pinned.target.extra_fields,
            mapped=pinned.find_mapped(recipe, partitions),
        )
        measures = _measure(recipe, window)
        source_records = recipe.count_source(window) if recipe.count_source else {}
        known = [partition for partition in partitions if partition.key in pinned.target.publishes]
        published = self.reader.read_back(pinned.target, known)
        never_landed = pinned.find_never_landed()
        duplicates = _count_duplicates(pinned.target, partitions, published, measures)
        for key, measured in measures.items():
            found = published.get(key)
            mismatch = _find_mismatch(recipe, measured, source_records.get(key), found)
            if key in never_landed:
                mismatch = "" if found is None else "it is published, but nothing has ever landed"
            yield ReconciledPartition(
                table=table.key,
                partition=key,
                source_records=source_records.get(key),
                rejects=measured.rejects,
                duplicates_dropped=measured.duplicates_dropped,
                rows_expected=measured.rows,
                checksum_expected=measured.checksum,
                rows=found.rows if found else None,
                checksum=found.checksum if found else None,
                duplicates_per_1000=1000 * duplicates.get(key, 0) / found.rows
                if found and found.rows
                else 0.0,
                mismatch=mismatch,
            )


def _count_duplicates(
    log: TableLog,
    partitions: Sequence[Partition],
    published: Mapping[str, ReadBack],
    measures: Mapping[str, PartitionMeasures],
) -> dict[str, int]:
    """Counts published rows beyond the first of their natural key, by partition key.

    Where the rows are the expected ones, Spark has counted theirs. The others are read in this
    process, of a few partitions at a time, 12 to 20 bytes a row. What has none, or no key, or can't
    be read, is absent.
    """
    if not log.table.natural_key:
        return {}
    counts = {
        key: measures[key].key_duplicates
        for key, found in published.items()
        if found.agrees_with(measures[key])
    }
    others = [
        partition
        for partition in partitions
        if partition.key not in counts and published.get(partition.key, UNREADABLE) != UNREADABLE
    ]
    for group in split_by_rows(others, {key: found.rows for key, found in published.items()}):
        contents = read_contents(log, group)
        keys = (partition.key for partition in contents.partitions)
        counts |= zip(keys, count_duplicates(contents).tolist(), strict=True)
    return counts


def _measure(recipe: Recipe, window: InputWindow) -> dict[str, PartitionMeasures]:
    engine = find_engine(window.spark)
    frame = engine.keep(compute_rows(recipe, window, OVERWRITE))
    try:
        return measure_partitions(frame, recipe.table, window.partitions)
    except SPARK_ERRORS as error:
        broken = window.listing.find_broken(str(error)) if window.listing else []
        if not broken:
            raise
        names = ", ".join(sorted({fault.name for fault in broken}))
        raise LandingError(f"{names} can't be read: land it again") from error
    finally:
        engine.release(frame)


def _find_mismatch(
    recipe: Recipe,
    measured: PartitionMeasures,
    source_records: int | None,
    found: ReadBack | None,
) -> str:
    if found is None:
        return "not published" if measured.rows else ""
    if found == UNREADABLE:
        return "a data file of it is missing or broken"
    for rule in recipe.table.all_rules:
        reads_source = recipe.landing is not None or not isinstance(rule, LandedRecords)
        if isinstance(rule, Reconciled) and reads_source and source_records is not None:
            accounted = rule.count_accounted(measured)
            if accounted != source_records:
                return f"{accounted} of {source_records} source records are accounted for"
    if found.rows != measured.rows:
        return f"{found.rows} rows are published, {measured.rows} follow from the source"
    if not found.agrees_with(measured):
        return "the rows differ from those that follow from the source"
    return ""
