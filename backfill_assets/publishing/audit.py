"""Computes the partitions of a window once, measures them in one pass, and judges each."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame

from backfill_assets.lake.commits import Publish
from backfill_assets.lake.evolution import build_field_columns, find_new_fields
from backfill_assets.lake.input_window import InputWindow
from backfill_assets.lake.slices import Partition
from backfill_assets.lake.spark_errors import SPARK_ERRORS
from backfill_assets.lake.writer import add_columns
from backfill_assets.publishing.recipes import Recipe
from backfill_assets.publishing.runs import Run
from backfill_assets.publishing.write_modes.choosing import find_write_mode
from backfill_assets.publishing.write_modes.mode import mark_filtered_out
from backfill_assets.publishing.write_modes.options import WriteOptions
from backfill_assets.quality.judging import judge_partitions
from backfill_assets.quality.measures import keep_rows, measure_partitions
from backfill_assets.rules.measured import PartitionMeasures
from backfill_assets.rules.profiles import PartitionProfile
from backfill_assets.rules.verdicts import Verdict


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

    window: InputWindow
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
    recipe: Recipe, window: InputWindow, run: Run, published: Mapping[str, Publish]
) -> Iterator[Audit]:
    """Audits a window; the frame stays persisted for as long as the context is open.

    New fields of the source become columns of the table here, before anything is published.

    Args:
        recipe: how the table is made.
        window: what to compute.
        run: says how what is computed gets together with what is published.
        published: the last publish of each partition, by key: what the window's are compared with.
    """
    frame = _persist(recipe, window, run.options)
    broken_files: tuple[tuple[Partition, str], ...] = ()
    try:
        try:
            measures = measure_partitions(frame, recipe.table, window.partitions)
        except SPARK_ERRORS as error:
            window, broken_files = _split_off_broken_files(window, str(error))
            if not broken_files:
                raise
            frame.unpersist()
            frame = _persist(recipe, window, run.options)
            measures = measure_partitions(frame, recipe.table, window.partitions)
        verdicts = _judge(recipe, window, measures, run, published)
        new_fields = _find_fields_to_add(recipe, window, measures, verdicts)
        if new_fields:
            add_columns(window.spark, window.target, build_field_columns(new_fields))
            window = replace(window, extra_fields=(*window.extra_fields, *new_fields))
            frame.unpersist()
            frame = _persist(recipe, window, run.options)
            # The verdicts stand: all that changed is that the new fields are kept.
            measures = measure_partitions(frame, recipe.table, window.partitions)
        yield Audit(window, frame, measures, verdicts, broken_files)
    finally:
        frame.unpersist()


def compute_rows(recipe: Recipe, window: InputWindow, options: WriteOptions) -> DataFrame:
    """Builds the contents that the window's partitions are to have, and audit columns.

    Nothing is computed yet.

    Args:
        recipe: how the table is made.
        window: its partitions and pinned inputs.
        options: of the run.
    """
    computed = mark_filtered_out(recipe.compute(window), window, options)
    return recipe.place_rows(find_write_mode(options).combine(computed, window, options))


def _persist(recipe: Recipe, window: InputWindow, options: WriteOptions) -> DataFrame:
    # Persisted, so that what is published is what was measured.
    return compute_rows(recipe, window, options).persist()


def _split_off_broken_files(
    window: InputWindow, error: str
) -> tuple[InputWindow, tuple[tuple[Partition, str], ...]]:
    """Returns the window without the partitions of broken files, and those files by name."""
    if window.listing is None:
        return window, ()
    broken = tuple(window.listing.find_broken(error))
    lost = {partition for partition, _ in broken}
    left = tuple(partition for partition in window.partitions if partition not in lost)
    return replace(window, partitions=left, listing=window.listing.restrict(left)), broken


def _judge(
    recipe: Recipe,
    window: InputWindow,
    measures: Mapping[str, PartitionMeasures],
    run: Run,
    published: Mapping[str, Publish],
) -> dict[str, Verdict]:
    # What a rollback is to undo is nothing to compare with.
    undone = measures if find_write_mode(run.options).restores else ()
    profiles = {
        key: PartitionProfile.from_json(publish.record.profiles[key])
        for key, publish in published.items()
        if key in publish.record.profiles and key not in undone
    }
    return judge_partitions(
        recipe.table,
        measures,
        source_records=recipe.count_source(window) if recipe.count_source else {},
        published=profiles,
        source_fields=recipe.source_fields,
        evolved_fields=window.extra_fields,
        acceptances=run.acceptances,
    )


def _find_fields_to_add(
    recipe: Recipe,
    window: InputWindow,
    measures: Mapping[str, PartitionMeasures],
    verdicts: Mapping[str, Verdict],
) -> list[str]:
    """Finds new fields of partitions that will be published.

    A withheld one must not change the table.
    """
    seen = (
        name
        for key, measured in measures.items()
        if not verdicts[key].withheld
        for name in measured.fields_seen or ()
    )
    return find_new_fields(recipe.table, window.extra_fields, seen)
