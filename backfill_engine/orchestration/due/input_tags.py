"""Tags that tell Dagster what a partition was computed from.

By them it shows a partition as unsynced when what it was computed from has changed, and only then.
It compares the data version of an upstream partition's latest event with the one that was the
latest at a storage id, the event pointer; without these tags any upstream counts as new.
"""

from collections.abc import Mapping, Sequence

from dagster import AssetKey, DagsterInstance

from backfill_engine.orchestration.instance.dagster_internals import (
    get_input_data_version_tag,
    get_input_event_pointer_tag,
)
from backfill_engine.orchestration.instance.materializations import (
    find_data_versions,
    list_data_versions,
)
from backfill_engine.orchestration.instance.partition_definitions import (
    find_asset_key,
    find_landing_key,
)
from backfill_engine.publishing.results import PartitionResult
from backfill_engine.tables.declarations import Table

# Dagster takes 0 for no pointer at all, and 1 may be the upstream's own event.
_BEFORE_ALL = -2

_NOT_READ = "not read"


def find_input_tags(
    instance: DagsterInstance, results: Sequence[PartitionResult], table: Table
) -> dict[str, dict[str, str]]:
    """Finds the tags of each partition's materialization, by its key.

    The event pointer is the newest event at which the partition's upstream was as it was consumed;
    where no event says that it ever was, it lies before all. So this holds for what a run has just
    published as well as for what was published long ago, or in another home, or is restored.

    Args:
        instance: the Dagster instance; it must know by now what it is to know of the upstream.
        results: published partitions.
        table: of which they are.
    """
    # Before the data versions: an event between the two then counts as new, and not as consumed.
    newest = instance.event_log_storage.get_maximum_record_id() or _BEFORE_ALL
    tags: dict[str, dict[str, str]] = {result.key: {} for result in results}
    for name in dict.fromkeys(name for result in results for name in result.consumed.upstream):
        asset_key = AssetKey.from_user_string(name)
        reading = [result for result in results if name in result.consumed.upstream]
        windows = {result.key: result.consumed.upstream[name] for result in reading}
        pointers = _find_pointers(instance, asset_key, windows, newest)
        for result in reading:
            tags[result.key] |= {
                get_input_data_version_tag(asset_key): result.consumed.fingerprint(name),
                get_input_event_pointer_tag(asset_key): str(pointers[result.key]),
            }
    for result in results:
        tags[result.key] |= _build_landing_tags(result, find_landing_key(table), newest)
        tags[result.key] |= _build_unread_tags(result, table, newest)
    return tags


def _build_landing_tags(
    result: PartitionResult, landing_key: AssetKey, newest: int
) -> dict[str, str]:
    """Builds the tags of what landed, without which Dagster calls it a new dependency.

    They make nothing unsynced later: observations of what landed have no data version, so Dagster
    finds no difference after any pointer.
    """
    landed = result.consumed.landed
    if landed is None:
        return {}
    return {
        get_input_data_version_tag(landing_key): landed.fingerprint,
        get_input_event_pointer_tag(landing_key): str(newest),
    }


def _build_unread_tags(result: PartitionResult, table: Table, newest: int) -> dict[str, str]:
    """Builds the tags of versions that a served table doesn't read, for the same reason."""
    tags: dict[str, str] = {}
    for version in table.versions:
        if version.key not in result.consumed.upstream:
            asset_key = find_asset_key(version)
            tags[get_input_data_version_tag(asset_key)] = _NOT_READ
            tags[get_input_event_pointer_tag(asset_key)] = str(newest)
    return tags


def _find_pointers(
    instance: DagsterInstance,
    asset_key: AssetKey,
    windows: Mapping[str, Mapping[str, str]],
    newest: int,
) -> dict[str, int]:
    """Finds the event pointer of each partition by its window of an upstream asset."""
    upstream = {key for window in windows.values() for key in window}
    current = find_data_versions(instance, asset_key, upstream)
    changed = {
        partition
        for partition, window in windows.items()
        if any(current.get(key, checksum) != checksum for key, checksum in window.items())
    }
    needed = {key for partition in changed for key in windows[partition]}
    history = list_data_versions(instance, asset_key, needed)
    return {
        partition: _find_pointer(window, history, newest) if partition in changed else newest
        for partition, window in windows.items()
    }


def _find_pointer(
    window: Mapping[str, str], history: Mapping[str, Sequence[tuple[int, str]]], newest: int
) -> int:
    pointer = newest
    while pointer > 0:
        differing: list[int] = []
        for key, checksum in window.items():
            versions = history.get(key, ())
            latest = next((version for version in versions if version[0] <= pointer), None)
            if latest is None and checksum:
                return _BEFORE_ALL
            if latest is not None and latest[1] != checksum:
                differing.append(latest[0])
        if not differing:
            return pointer
        pointer = min(differing) - 1
    return _BEFORE_ALL
