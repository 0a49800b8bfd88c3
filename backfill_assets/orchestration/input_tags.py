"""Tags that tell Dagster what a partition was computed from.

By them it shows a partition as unsynced when what it was computed from has changed, and only then.
It compares the data version of an upstream partition's latest event with the one that was the
latest at a storage id, the event pointer; without these tags any upstream counts as new.
"""

from collections.abc import Iterable, Sequence

from dagster import AssetKey, DagsterInstance

from backfill_assets.orchestration.dagster_internals import (
    get_input_data_version_tag,
    get_input_event_pointer_tag,
)
from backfill_assets.orchestration.materializations import find_data_versions
from backfill_assets.publishing.results import PartitionResult

# Before all events. Dagster takes 0 for no pointer at all, and 1 may be the upstream's own event.
_BEFORE_ALL = -2


def find_input_tags(
    instance: DagsterInstance, results: Sequence[PartitionResult]
) -> dict[str, dict[str, str]]:
    """Finds the tags of each partition's materialization, by its key.

    Where its upstream partitions are as it consumed them, what Dagster is told of them from now on
    counts as new; else all that it was ever told does. So this holds for what a run has just
    published as well as for what was published long ago, or in another home, or is restored.

    Args:
        instance: the Dagster instance; it must know by now what it is to know of the upstream.
        results: published partitions.
    """
    # Before the data versions: an event between the two then counts as new, and not as consumed.
    newest = instance.event_log_storage.get_maximum_record_id() or _BEFORE_ALL
    tables = dict.fromkeys(table for result in results for table in result.consumed.upstream)
    current = {
        table: find_data_versions(
            instance, AssetKey.from_user_string(table), _list_upstream(results, table)
        )
        for table in tables
    }
    tags: dict[str, dict[str, str]] = {result.key: {} for result in results}
    for result in results:
        for table, window in result.consumed.upstream.items():
            versions, upstream = current[table], AssetKey.from_user_string(table)
            changed = any(
                versions.get(key, checksum) != checksum for key, checksum in window.items()
            )
            tags[result.key] |= {
                get_input_data_version_tag(upstream): result.consumed.fingerprint(table),
                get_input_event_pointer_tag(upstream): str(_BEFORE_ALL if changed else newest),
            }
    return tags


def _list_upstream(results: Iterable[PartitionResult], table: str) -> set[str]:
    return {key for result in results for key in result.consumed.upstream.get(table, ())}
