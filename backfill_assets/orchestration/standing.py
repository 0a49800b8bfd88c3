"""Partitions that a chunked run leaves as they are: published from the same inputs and code."""

from collections.abc import Collection
from dataclasses import replace

from backfill_assets.lake.commits import Publish
from backfill_assets.orchestration.dagster_internals import AssetGraph
from backfill_assets.orchestration.stale_partitions import find_stale
from backfill_assets.publishing.inputs import PinnedInputs
from backfill_assets.publishing.recipes import Recipe
from backfill_assets.publishing.recorded_audits import read_result
from backfill_assets.publishing.results import PartitionResult
from backfill_assets.publishing.runs import Run
from backfill_assets.publishing.write_modes.options import OVERWRITE


def find_standing(
    graph: AssetGraph, recipe: Recipe, run: Run, pinned: PinnedInputs, keys: Collection[str]
) -> dict[str, PartitionResult]:
    """Finds those of a run's partitions that needn't be computed, by key, as they were audited.

    None of a run without chunks, which was asked for what it names; and none where rows are merged
    or appended, which those modes know how to repeat.

    Args:
        graph: of all assets.
        recipe: how the table is made.
        run: if it restarts, only what it published itself, or the run that it continues, stands.
        pinned: what they would be computed from.
        keys: of the partitions.

    Raises:
        TableError: if rows of an input can't be read.
    """
    if run.pace.chunk is None or run.options != OVERWRITE:
        return {}
    publishes = pinned.target.publishes
    candidates = [key for key in keys if key in publishes and _may_stand(publishes[key], run)]
    stale = find_stale(graph, recipe, pinned, candidates)
    return {
        key: replace(read_result(publishes[key]), unchanged=True)
        for key in candidates
        if key not in stale
    }


def _may_stand(publish: Publish, run: Run) -> bool:
    record = publish.record
    chain = {run.run_id, run.backfill_id}
    return (
        record.write_mode == OVERWRITE.write_mode
        and not record.row_filter
        and not record.restored.get(publish.key)
        # Commits of earlier releases don't say what they consumed.
        and bool(record.landed or record.upstream)
        and (not run.pace.restart or not chain.isdisjoint({record.run_id, record.backfill_id}))
    )
