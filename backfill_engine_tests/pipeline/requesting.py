"""Backfills of the tests: asked for as commands do, and looked at."""

import datetime as dt
from collections.abc import Iterable, Mapping, Sequence

from dagster import AssetKey, DagsterInstance, DagsterRun

from backfill_engine.orchestration.backfills.progress_reader import Progress, ProgressReader
from backfill_engine.orchestration.due.downstream import request_backfill
from backfill_engine.orchestration.instance.dagster_internals import (
    AssetGraphSubset,
    BulkActionStatus,
    PartitionBackfill,
)
from backfill_engine.orchestration.instance.partition_definitions import find_partitions_def
from backfill_engine.orchestration.instance.processes import identify_own_process
from backfill_engine.orchestration.runs.run_tags import REASON_TAG
from backfill_engine_tests.project import CATALOG, RAW_FLIGHTS, defs


def request(
    instance: DagsterInstance, *keys: str, days: Sequence[str], title: str = "mend them"
) -> str:
    """Asks for a backfill of some days of tables."""
    return request_backfill(
        instance,
        defs.get_repository_def().asset_graph,
        {AssetKey.from_user_string(key): days for key in keys},
        title=title,
        tags={REASON_TAG: "wrong numbers"},
    )


def set_status(instance: DagsterInstance, backfill: str, status: BulkActionStatus) -> None:
    """What the daemon does at the end."""
    instance.update_backfill(get_backfill(instance, backfill).with_status(status))


def read_progress(instance: DagsterInstance, backfill: str, *, later: float = 0) -> Progress:
    """How far it has come, some seconds later than now."""
    now = dt.datetime.now(tz=dt.UTC) + dt.timedelta(seconds=later)
    return ProgressReader(CATALOG, instance).read(backfill, now=now)


def identify_dead_process() -> str:
    """A process that had the number of this one, and is gone."""
    machine, pid, start = identify_own_process().rsplit("/", 2)
    return f"{machine}/{pid}/{int(start) - 1}"


def get_run(instance: DagsterInstance, run_id: str) -> DagsterRun:
    """A run that the instance has to know."""
    run = instance.get_run_by_id(run_id)
    assert run is not None
    return run


def get_backfill(instance: DagsterInstance, backfill: str) -> PartitionBackfill:
    """A backfill that the instance has to know."""
    record = instance.get_backfill(backfill)
    assert record is not None
    return record


def add_backfill(
    instance: DagsterInstance,
    backfill: str,
    *keys: AssetKey,
    days: Iterable[str] = (),
    title: str | None = None,
    tags: Mapping[str, str] | None = None,
) -> PartitionBackfill:
    """A backfill of days as somebody else asks for it, without what this project notes on one."""
    subset = find_partitions_def(RAW_FLIGHTS).subset_with_partition_keys(days)
    record = PartitionBackfill.from_asset_graph_subset(
        backfill_id=backfill,
        backfill_timestamp=0.0,
        tags=dict(tags or {}),
        dynamic_partitions_store=instance,
        asset_graph_subset=AssetGraphSubset(
            partitions_subsets_by_asset_key=dict.fromkeys(keys, subset)
        ),
        title=title,
        description=None,
        run_config=None,
    )
    instance.add_backfill(record)
    return record


def read_target(backfill: PartitionBackfill) -> dict[str, list[str]]:
    """The partitions that Dagster was asked for, by table."""
    assert backfill.asset_backfill_data is not None
    subsets = backfill.asset_backfill_data.target_subset.partitions_subsets_by_asset_key
    return {
        key.to_user_string(): sorted(subset.get_partition_keys()) for key, subset in subsets.items()
    }
