"""What Dagster tells of partitions, asked once by who looks at the same ones again and again."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from dagster import AssetKey, DagsterInstance, PartitionsDefinition, RunsFilter

from backfill_engine.orchestration.instance.dagster_internals import (
    AssetPartitionStatus,
    get_and_update_asset_status_cache_value,
)
from backfill_engine.orchestration.instance.materializations import find_planning_runs
from backfill_engine.orchestration.instance.own_runs import is_ours


@dataclass(frozen=True)
class ToldStatuses:
    """The statuses of partitions as they were when their asset was first asked about.

    For one look at the instance, not to be kept. The instance itself would read, each time, all
    events since the last look, and compare each key with each state by its schedule.

    Attributes:
        instance: the Dagster instance.
    """

    instance: DagsterInstance
    _told: dict[AssetKey, dict[str, AssetPartitionStatus]] = field(default_factory=dict)

    def find(
        self, asset_key: AssetKey, keys: Collection[str], partitions_def: PartitionsDefinition
    ) -> dict[str, AssetPartitionStatus | None]:
        """Finds the status of each key, in the order of `keys`; None of one never tried."""
        if not keys:
            return {}
        if asset_key not in self._told:
            self._told[asset_key] = self._ask(asset_key, partitions_def)
        return {key: self._told[asset_key].get(key) for key in keys}

    def _ask(
        self, asset_key: AssetKey, partitions_def: PartitionsDefinition
    ) -> dict[str, AssetPartitionStatus]:
        """Asks for all: a run at work hides a failure, and that what is materialized."""
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
