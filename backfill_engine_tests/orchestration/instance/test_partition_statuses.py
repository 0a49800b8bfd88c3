"""Statuses asked for all at once equal those that the instance tells key by key."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from dagster import (
    AssetKey,
    AssetMaterialization,
    AssetPartitionStatus,
    DagsterInstance,
    DagsterRun,
    DagsterRunStatus,
    DailyPartitionsDefinition,
    HourlyPartitionsDefinition,
    PartitionsDefinition,
    StaticPartitionsDefinition,
)

from backfill_engine.orchestration.instance.materializations import PartitionStatusCache
from backfill_engine.orchestration.instance.own_runs import OWN_STEP
from backfill_engine.orchestration.instance.recovered_runs import enter_materialization, enter_plan

KEY = AssetKey(["raw", "flights"])
DEFINITIONS = [
    DailyPartitionsDefinition("2013-01-01", end_date="2013-01-09"),
    HourlyPartitionsDefinition("2013-01-01-00:00", end_date="2013-01-01-08:00"),
    StaticPartitionsDefinition([str(bucket) for bucket in range(8)]),
]


@pytest.fixture
def instance(tmp_path: Path) -> Iterator[DagsterInstance]:
    with DagsterInstance.local_temp(str(tmp_path)) as instance:
        for run_id, status in (
            ("good", DagsterRunStatus.SUCCESS),
            ("bad", DagsterRunStatus.FAILURE),
            ("at work", DagsterRunStatus.STARTED),
        ):
            run = DagsterRun("__ASSET_JOB", run_id=run_id, status=status, tags=OWN_STEP)
            instance.add_run(run)
        yield instance


@pytest.mark.parametrize("partitions_def", DEFINITIONS, ids=["days", "hours", "numbers"])
def test_each_key_has_the_status_that_the_instance_tells(
    instance: DagsterInstance, partitions_def: PartitionsDefinition
) -> None:
    """Materialized, then also failed at or worked on; failed at, worked on only; or none of it."""
    keys = partitions_def.get_partition_keys()
    for key in (keys[0], keys[1], keys[2], keys[5]):
        enter_plan(instance, "good", KEY, key)
        enter_materialization(instance, "good", AssetMaterialization(KEY, partition=key))
    for run_id, places in (("bad", (1, 3, 5)), ("at work", (2, 4, 5))):
        for place in places:
            enter_plan(instance, run_id, KEY, keys[place])
    found = PartitionStatusCache(instance).find(KEY, keys, partitions_def)
    assert found == instance.get_status_by_partition(KEY, keys, partitions_def)
    assert len(set(found.values())) == len(AssetPartitionStatus) + 1
    assert (
        list(PartitionStatusCache(instance).find(KEY, keys[3:1:-1], partitions_def)) == keys[3:1:-1]
    )


def test_an_asset_that_nothing_is_known_of_has_none(instance: DagsterInstance) -> None:
    days = DEFINITIONS[0]
    assert PartitionStatusCache(instance).find(KEY, ["2013-01-02"], days) == {"2013-01-02": None}
    assert PartitionStatusCache(instance).find(KEY, [], days) == {}


def test_an_asset_is_asked_about_once(instance: DagsterInstance) -> None:
    days, cache = DEFINITIONS[0], PartitionStatusCache(instance)
    assert cache.find(KEY, ["2013-01-02"], days) == {"2013-01-02": None}
    enter_materialization(instance, "good", AssetMaterialization(KEY, partition="2013-01-02"))
    assert cache.find(KEY, ["2013-01-02"], days) == {"2013-01-02": None}
