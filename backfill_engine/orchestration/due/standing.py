"""Partitions that a chunked run leaves as they are: published from the same inputs and code.

Where a person has allowed that the code changes in mid-backfill, only what is left goes by the new
one: what the backfill has published already stands, as it does where that was another of its runs.
"""

from collections.abc import Collection, Mapping
from dataclasses import replace

from backfill_engine.lake.commits import Publish
from backfill_engine.orchestration.due.stale_partitions import find_stale
from backfill_engine.orchestration.instance.dagster_internals import AssetGraph
from backfill_engine.publishing.inputs import PinnedInputs
from backfill_engine.publishing.recipes import Recipe
from backfill_engine.publishing.recorded_audits import read_result
from backfill_engine.publishing.results import PartitionResult
from backfill_engine.publishing.runs import Run
from backfill_engine.publishing.write_modes.options import OVERWRITE, WriteOptions


def find_standing(
    graph: AssetGraph,
    recipe: Recipe,
    run: Run,
    pinned: PinnedInputs,
    keys: Collection[str],
    *,
    provisional: Mapping[str, str],
) -> dict[str, PartitionResult]:
    """Finds those of a run's partitions that needn't be computed, by key, as they were audited.

    None of a run without chunks, which was asked for what it names. Where rows are merged or
    appended, those that the run that it continues has done already, whatever its input is now.

    Args:
        graph: of all assets.
        recipe: how the table is made.
        run: if it restarts, only what it published itself, or the run that it continues, stands.
        pinned: what they would be computed from.
        keys: of the partitions.
        provisional: by partition key, what of its input is not there yet, or not final.

    Raises:
        TableError: if rows of an input can't be read.
    """
    if run.pace.chunk is None:
        return {}
    publishes = pinned.target.publishes
    candidates = [
        key
        for key in keys
        if key in publishes
        and key not in pinned.target.foreign_changes
        and _is_alike(publishes[key], run.options)
    ]
    own = [key for key in candidates if _is_own(publishes[key], run)]
    if run.options != OVERWRITE:
        return {key: _tell(publishes[key], recipe) for key in own}
    if run.pace.restart:
        candidates = own
    by_any_code = own if run.new_code else ()
    standing = list_standing(
        graph, recipe, pinned, candidates, provisional=provisional, by_any_code=by_any_code
    )
    return {key: _tell(publishes[key], recipe) for key in standing}


def list_standing(
    graph: AssetGraph,
    recipe: Recipe,
    pinned: PinnedInputs,
    keys: Collection[str],
    *,
    provisional: Mapping[str, str],
    by_any_code: Collection[str] = (),
    stale: Collection[str] | None = None,
) -> list[str]:
    """Lists those that an overwrite published from the same inputs by the same code, in order.

    Args:
        graph: of all assets.
        recipe: how the table is made.
        pinned: what they would be computed from.
        keys: of the partitions.
        provisional: by partition key, what of its input is not there yet, or not final.
        by_any_code: those of them that another code may have published.
        stale: those of them that would be computed from something else; None to find them.

    Raises:
        TableError: if rows of an input can't be read.
    """
    publishes = pinned.target.publishes
    known = [
        key
        for key in keys
        if key in publishes
        and key not in pinned.target.foreign_changes
        and _is_alike(publishes[key], OVERWRITE)
        # Commits of earlier releases don't say what they consumed.
        and (publishes[key].record.landed or publishes[key].record.upstream)
        and publishes[key].record.provisional.get(key, "") == provisional.get(key, "")
    ]
    if stale is None:
        stale = find_stale(graph, recipe, pinned, known, by_any_code=by_any_code)
    return [key for key in known if key not in stale]


def _tell(publish: Publish, recipe: Recipe) -> PartitionResult:
    made_by = publish.record.code_version
    other_code = made_by if made_by != recipe.code_version else ""
    return replace(read_result(publish), unchanged=True, other_code=other_code)


def _is_alike(publish: Publish, options: WriteOptions) -> bool:
    """Tells whether a partition was published as a run of these options would publish it."""
    record = publish.record
    told = (options.write_mode, options.row_filter)
    return (record.write_mode, record.row_filter) == told and not record.restored.get(publish.key)


def _is_own(publish: Publish, run: Run) -> bool:
    chain = {run.run_id, run.backfill_id, run.chain_id}
    return not chain.isdisjoint({publish.record.run_id, publish.record.backfill_id})
