"""The latest materialization of each partition, or plan of one, as the Dagster instance has it."""

from collections.abc import Collection

from dagster import (
    AssetKey,
    AssetRecordsFilter,
    DagsterEventType,
    DagsterInstance,
    EventLogRecord,
    EventRecordsFilter,
)

DATA_VERSION = "dagster/data_version"
"""Tag of a materialization: the checksum of the partition's contents."""

_PAGE = 1000
_HISTORY = 5000


def find_latest_materializations(
    instance: DagsterInstance, asset_key: AssetKey, partitions: Collection[str]
) -> dict[str, EventLogRecord]:
    """Finds them by partition key; a partition that was never materialized is absent."""
    if not partitions:
        return {}
    ids = instance.event_log_storage.get_latest_storage_id_by_partition(
        asset_key, DagsterEventType.ASSET_MATERIALIZATION, set(partitions)
    )
    latest: dict[str, EventLogRecord] = {}
    wanted = sorted(ids.values())
    for first in range(0, len(wanted), _PAGE):
        page = wanted[first : first + _PAGE]
        found = instance.fetch_materializations(
            AssetRecordsFilter(asset_key, storage_ids=page), limit=len(page)
        )
        latest.update(
            {record.partition_key: record for record in found.records if record.partition_key}
        )
    return latest


def find_data_versions(
    instance: DagsterInstance, asset_key: AssetKey, partitions: Collection[str] | None = None
) -> dict[str, str]:
    """Finds the data version of the latest materialization of some partitions, or all, by key."""
    if partitions is not None and not partitions:
        return {}
    wanted = None if partitions is None else sorted(partitions)
    found = instance.event_log_storage.get_latest_tags_by_partition(
        asset_key, DagsterEventType.ASSET_MATERIALIZATION, [DATA_VERSION], wanted
    )
    return {key: tags[DATA_VERSION] for key, tags in found.items()}


def list_data_versions(
    instance: DagsterInstance, asset_key: AssetKey, partitions: Collection[str]
) -> dict[str, list[tuple[int, str]]]:
    """Lists storage id and data version of each partition's materializations, newest first, by key.

    Of all together there are no more than the newest few thousand.
    """
    if not partitions:
        return {}
    wanted = AssetRecordsFilter(asset_key, asset_partitions=sorted(partitions))
    history: dict[str, list[tuple[int, str]]] = {}
    for record in instance.fetch_materializations(wanted, limit=_HISTORY).records:
        event = record.asset_materialization
        if event is not None and event.partition is not None:
            version = (event.tags or {}).get(DATA_VERSION, "")
            history.setdefault(event.partition, []).append((record.storage_id, version))
    return history


def find_planning_runs(instance: DagsterInstance, asset_key: AssetKey) -> dict[str, str]:
    """Finds which run planned a partition last, by key; those that it has not materialized."""
    storage = instance.event_log_storage
    found = storage.get_latest_asset_partition_materialization_attempts_without_materializations(
        asset_key
    )
    return {key: run_id for key, (run_id, _) in found.items()}


def find_plans(
    instance: DagsterInstance, asset_key: AssetKey, partitions: Collection[str]
) -> set[tuple[str, str]]:
    """Finds by which runs some partitions were ever to be materialized: pairs of run and key."""
    if not partitions:
        return set()
    wanted = EventRecordsFilter(
        DagsterEventType.ASSET_MATERIALIZATION_PLANNED,
        asset_key=asset_key,
        asset_partitions=sorted(partitions),
    )
    records = instance.event_log_storage.get_event_records(wanted)
    return {(record.run_id, record.partition_key) for record in records if record.partition_key}
