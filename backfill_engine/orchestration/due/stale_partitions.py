"""Which published partitions would be computed from something else now, and why.

A chunked run leaves those as they are that were published from the same inputs and code. Where a
person has allowed that the code changes in mid-backfill, only what is left goes by the new code:
what the backfill has published already stays, whichever of its runs published it.
"""

from collections.abc import Collection, Mapping
from dataclasses import replace

from backfill_engine.lake.commits import Publish
from backfill_engine.lake.table_log import TableLog
from backfill_engine.orchestration.due.row_movements import (
    Movements,
    find_consumed_versions,
    find_movements,
    find_rows_for,
)
from backfill_engine.orchestration.instance.dagster_internals import AssetGraph
from backfill_engine.orchestration.instance.partition_definitions import (
    find_asset_key,
    find_partitions_def,
)
from backfill_engine.publishing.differences import NEW_CODE, list_differences
from backfill_engine.publishing.inputs import PinnedInputs
from backfill_engine.publishing.recipes import Recipe
from backfill_engine.publishing.results import PartitionResult, Run
from backfill_engine.publishing.statements import read_result
from backfill_engine.publishing.write_modes.options import OVERWRITE, WriteOptions

_UNKNOWN = (
    "nobody can tell whether its input is the same: it reads by `window.spark` what no source "
    "declares; give it a source or an input for that"
)


def find_stale(
    graph: AssetGraph,
    recipe: Recipe,
    pinned: PinnedInputs,
    keys: Collection[str],
    *,
    by_any_code: Collection[str] = (),
) -> dict[str, str]:
    """Finds why published partitions would be computed from something else, by key.

    What a rollback brought back stands, as it does for the sensor.

    Args:
        graph: of all assets.
        recipe: how the table is made.
        pinned: its inputs as they are now, with the windows of `keys`.
        keys: the partitions asked about.
        by_any_code: those of them that are no others because the code is another one.

    Raises:
        TableError: if rows of an input can't be read.
    """
    log = pinned.target
    publishes = {
        key: publish
        for key, publish in log.publishes.items()
        if key in keys and not publish.restored
    }
    if not publishes:
        return {}
    if recipe.reads_undeclared:
        return dict.fromkeys(publishes, _UNKNOWN)
    now = pinned.describe_consumed(list(publishes))
    by_rows = find_rows_for(graph, find_asset_key(log.table))
    stale: dict[str, list[str]] = {}
    for key, publish in publishes.items():
        # Of inputs whose rows say who reads them, the mapping gives too much and too little.
        upstream = {name: read for name, read in now[key].upstream.items() if name not in by_rows}
        consumed = replace(now[key], upstream=upstream)
        code_version = publish.record.code_version if key in by_any_code else recipe.code_version
        stale[key] = list_differences(publish, consumed, code_version=code_version)
    for name, column in by_rows.items():
        for key in _find_moved(log, pinned.inputs[name], column, publishes):
            stale[key].insert(0, f"rows for it moved in {name}")
    return {key: "; ".join(reasons) for key, reasons in stale.items() if reasons}


def _find_moved(
    log: TableLog, source: TableLog, column: str, publishes: Mapping[str, Publish]
) -> list[str]:
    """Finds those for which rows moved in an input since they were computed."""
    versions = find_consumed_versions(log, source)
    consumed = [versions[key] for key in publishes if key in versions]
    oldest = min(consumed, default=source.version)
    since = Movements(oldest, {}, source.table_id, source.read_at)
    keys = find_partitions_def(log.table).get_partition_keys()
    found = find_movements(log, source, column, keys, since)
    return [key for key in publishes if key in found.outstanding]


def find_up_to_date(
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
    candidates = _list_alike(pinned.target, keys, run.options)
    own = [key for key in candidates if _is_own(publishes[key], run)]
    if run.options != OVERWRITE:
        return {key: _tell(publishes[key], recipe) for key in own}
    if run.pace.restart:
        candidates = own
    by_any_code = own if NEW_CODE in run.features else ()
    standing = list_up_to_date(
        graph, recipe, pinned, candidates, provisional=provisional, by_any_code=by_any_code
    )
    return {key: _tell(publishes[key], recipe) for key in standing}


def list_up_to_date(
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
        for key in _list_alike(pinned.target, keys, OVERWRITE)
        if publishes[key].record.provisional.get(key, "") == provisional.get(key, "")
    ]
    if stale is None:
        stale = find_stale(graph, recipe, pinned, known, by_any_code=by_any_code)
    return [key for key in known if key not in stale]


def _tell(publish: Publish, recipe: Recipe) -> PartitionResult:
    made_by = publish.record.code_version
    other_code = made_by if made_by != recipe.code_version else ""
    return replace(read_result(publish), unchanged=True, other_code=other_code)


def _list_alike(log: TableLog, keys: Collection[str], options: WriteOptions) -> list[str]:
    """Lists those that are as they were published, by a run of these options."""
    asked_for = (options.write_mode, options.row_filter)
    return [
        key
        for key in keys
        if (publish := log.publishes.get(key))
        and key not in log.foreign_changes
        and (publish.record.write_mode, publish.record.row_filter) == asked_for
        and not publish.restored
    ]


def _is_own(publish: Publish, run: Run) -> bool:
    chain = {run.run_id, run.backfill_id, run.chain_id}
    return not chain.isdisjoint({publish.record.run_id, publish.record.backfill_id})
