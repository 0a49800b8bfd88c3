"""The latest event, plan or status of each partition, as the Dagster instance has it."""

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field

from dagster import (
    AssetKey,
    AssetPartitionStatus,
    AssetRecordsFilter,
    DagsterEventType,
    DagsterInstance,
    EventLogRecord,
    EventRecordsFilter,
    EventRecordsResult,
    PartitionsDefinition,
    RunsFilter,
)

from backfill_engine.orchestration.instance.dagster_internals import (
    get_and_update_asset_status_cache_value,
)
from backfill_engine.orchestration.instance.own_runs import is_ours

DATA_VERSION = "dagster/data_version"
"""Tag of a materialization: the checksum of the partition's contents."""

_PAGE = 1000
_HISTORY = 5000


def find_latest_materializations(
    instance: DagsterInstance, asset_key: AssetKey, partitions: Collection[str]
) -> dict[str, EventLogRecord]:
    """Finds them by partition key; a partition that was never materialized is absent."""
    kind, fetch = DagsterEventType.ASSET_MATERIALIZATION, instance.fetch_materializations
    return _find_latest(instance, asset_key, partitions, kind, fetch)


def find_latest_observations(
    instance: DagsterInstance, asset_key: AssetKey, partitions: Collection[str]
) -> dict[str, EventLogRecord]:
    """Finds them by partition key; a partition that was never observed is absent."""
    kind, fetch = DagsterEventType.ASSET_OBSERVATION, instance.fetch_observations
    return _find_latest(instance, asset_key, partitions, kind, fetch)


def _find_latest(
    instance: DagsterInstance,
    asset_key: AssetKey,
    partitions: Collection[str],
    kind: DagsterEventType,
    fetch: Callable[..., EventRecordsResult],
) -> dict[str, EventLogRecord]:
    """Finds the latest event of a kind of each partition, by key, in pages."""
    if not partitions:
        return {}
    ids = instance.event_log_storage.get_latest_storage_id_by_partition(
        asset_key, kind, set(partitions)
    )
    latest: dict[str, EventLogRecord] = {}
    wanted = sorted(ids.values())
    for first in range(0, len(wanted), _PAGE):
        page = wanted[first : first + _PAGE]
        found = fetch(AssetRecordsFilter(asset_key, storage_ids=page), limit=len(page))
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


@dataclass(frozen=True)
class PartitionStatusCache:
    """The statuses of partitions as they were when their asset was first asked about.

    For one look at the instance, not to be kept. The instance itself would read, each time, all
    events since the last look, and compare each key with each state by its schedule.

    Attributes:
        instance: the Dagster instance.
    """

    instance: DagsterInstance
    _statuses: dict[AssetKey, dict[str, AssetPartitionStatus]] = field(default_factory=dict)

    def find(
        self, asset_key: AssetKey, keys: Collection[str], partitions_def: PartitionsDefinition
    ) -> dict[str, AssetPartitionStatus | None]:
        """Finds the status of each key, in the order of `keys`; None of one never tried."""
        if not keys:
            return {}
        if asset_key not in self._statuses:
            self._statuses[asset_key] = self._read(asset_key, partitions_def)
        return {key: self._statuses[asset_key].get(key) for key in keys}

    def _read(
        self, asset_key: AssetKey, partitions_def: PartitionsDefinition
    ) -> dict[str, AssetPartitionStatus]:
        """Reads all of them: a run at work hides a failure, and that what is materialized."""
        value = get_and_update_asset_status_cache_value(self.instance, asset_key, partitions_def)
        if value is None:
            return {}
        materialized = value.deserialize_materialized_partition_subsets(partitions_def)
        failed = value.deserialize_failed_partition_subsets(partitions_def)
        in_progress = value.deserialize_in_progress_partition_subsets(partitions_def)
        at_work = self._leave_out_others(asset_key, in_progress.get_partition_keys())
        return {
            **dict.fromkeys(materialized.get_partition_keys(), AssetPartitionStatus.MATERIALIZED),
            **dict.fromkeys(failed.get_partition_keys(), AssetPartitionStatus.FAILED),
            **dict.fromkeys(at_work, AssetPartitionStatus.IN_PROGRESS),
        }

    def _leave_out_others(self, asset_key: AssetKey, keys: Iterable[str]) -> list[str]:
        """Leaves out what a run of another code location, with an asset of this key, works on."""
        planned_by = find_planning_runs(self.instance, asset_key) if (keys := list(keys)) else {}
        run_ids = sorted({planned_by[key] for key in keys if key in planned_by})
        runs = self.instance.get_runs(RunsFilter(run_ids=run_ids)) if run_ids else ()
        others = {run.run_id for run in runs if not is_ours(run.tags)}
        return [key for key in keys if planned_by.get(key) not in others]
