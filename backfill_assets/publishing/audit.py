"""Computes the partitions of a window once, measures them in one pass, and judges each."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame

from backfill_assets.lake.commits import WriteMode
from backfill_assets.lake.slices import Partition
from backfill_assets.lake.spark_errors import SPARK_ERRORS
from backfill_assets.lake.table_log import Commit, find_latest_publishes
from backfill_assets.lake.window import Window
from backfill_assets.publishing.combining import combine_rows
from backfill_assets.publishing.evolution import add_fields, find_new_fields
from backfill_assets.publishing.recipes import Recipe
from backfill_assets.publishing.write_options import WriteOptions
from backfill_assets.quality.judging import judge_partitions
from backfill_assets.quality.measures import keep_rows, measure_partitions
from backfill_assets.rules.measured import PartitionMeasures
from backfill_assets.rules.profiles import PartitionProfile
from backfill_assets.rules.verdicts import Acceptance, Verdict


@dataclass(frozen=True)
class Audit:
    """What was computed and found.

    Attributes:
        window: what could be computed; without the partitions of broken files.
        frame: the persisted rows, with audit columns.
        measures: by partition key, ascending.
        verdicts: likewise.
        broken_files: files that can't be decompressed, by name, with their partition.
    """

    window: Window
    frame: DataFrame
    measures: Mapping[str, PartitionMeasures]
    verdicts: Mapping[str, Verdict]
    broken_files: tuple[tuple[Partition, str], ...] = ()

    @property
    def rows(self) -> DataFrame:
        """The rows to publish: neither rejected nor left out."""
        return keep_rows(self.frame)


@contextmanager
def audit_window(
    recipe: Recipe,
    window: Window,
    *,
    options: WriteOptions,
    base_version: int,
    commits: Sequence[Commit],
    acceptances: Sequence[Acceptance],
) -> Iterator[Audit]:
    """Audits a window; the frame stays persisted for as long as the context is open.

    New fields of the source become columns of the table here, before anything is published.

    Args:
        recipe: how the table is made.
        window: what to compute.
        options: how what is computed gets together with what is published.
        base_version: the table's version when the inputs were pinned; -1 if it had none.
        commits: of the table when the inputs were pinned, newest first; they hold the baseline.
        acceptances: of the run.
    """
    frame = _persist(recipe, window, options, base_version)
    broken_files: tuple[tuple[Partition, str], ...] = ()
    try:
        try:
            measures = measure_partitions(frame, recipe.table, window.partitions)
        except SPARK_ERRORS as error:
            window, broken_files = _split_off_broken_files(window, str(error))
            if not broken_files:
                raise
            frame.unpersist()
            frame = _persist(recipe, window, options, base_version)
            measures = measure_partitions(frame, recipe.table, window.partitions)
        source_records = recipe.count_source(window) if recipe.count_source else {}
        # What a rollback is to undo is nothing to compare with.
        own = measures if options.mode is WriteMode.ROLLBACK else ()
        published = _read_profiles(commits, without=own)
        verdicts = _judge(recipe, window, measures, source_records, published, acceptances)
        new_fields = _find_fields_to_add(recipe, window, measures, verdicts)
        if new_fields:
            add_fields(window, new_fields)
            window = replace(window, extra_fields=(*window.extra_fields, *new_fields))
            frame.unpersist()
            frame = _persist(recipe, window, options, base_version)
            # The verdicts stand: all that changed is that the new fields are kept.
            measures = measure_partitions(frame, recipe.table, window.partitions)
        yield Audit(window, frame, measures, verdicts, broken_files)
    finally:
        frame.unpersist()


def _persist(recipe: Recipe, window: Window, options: WriteOptions, base_version: int) -> DataFrame:
    # Persisted, so that what is published is what was measured.
    rows = combine_rows(recipe.compute(window), window, options, base_version=base_version)
    return recipe.place_rows(rows).persist()


def _split_off_broken_files(
    window: Window, error: str
) -> tuple[Window, tuple[tuple[Partition, str], ...]]:
    """The window without the partitions that have a broken file, and those files by name."""
    if window.listing is None:
        return window, ()
    broken = tuple(window.listing.find_broken(error))
    lost = {partition for partition, _ in broken}
    left = tuple(one for one in window.partitions if one not in lost)
    return replace(window, partitions=left, listing=window.listing.restrict(left)), broken


def _read_profiles(
    commits: Sequence[Commit], *, without: Collection[str]
) -> dict[str, PartitionProfile]:
    return {
        key: PartitionProfile.from_json(commit.record.profiles[key])
        for key, commit in find_latest_publishes(commits).items()
        if commit.record and key in commit.record.profiles and key not in without
    }


def _judge(
    recipe: Recipe,
    window: Window,
    measures: Mapping[str, PartitionMeasures],
    source_records: Mapping[str, int],
    published: Mapping[str, PartitionProfile],
    acceptances: Sequence[Acceptance],
) -> dict[str, Verdict]:
    return judge_partitions(
        recipe.table,
        measures,
        source_records=source_records,
        published=published,
        source_fields=recipe.source_fields,
        evolved_fields=window.extra_fields,
        acceptances=acceptances,
    )


def _find_fields_to_add(
    recipe: Recipe,
    window: Window,
    measures: Mapping[str, PartitionMeasures],
    verdicts: Mapping[str, Verdict],
) -> list[str]:
    """New fields of partitions that will be published: a withheld one must not change the table."""
    seen = (
        name
        for key, one in measures.items()
        if not verdicts[key].withheld
        for name in one.fields_seen or ()
    )
    return find_new_fields(recipe.table, window.extra_fields, seen)
