"""Which published partitions would be computed from something else now, and why."""

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
from backfill_engine.publishing.differences import list_differences
from backfill_engine.publishing.inputs import PinnedInputs
from backfill_engine.publishing.recipes import Recipe


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
        if key in keys and not publish.record.restored.get(key)
    }
    if not publishes:
        return {}
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
