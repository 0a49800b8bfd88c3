"""Partitions that a backfill will request later count as being at work."""

import pytest
from dagster import AssetKey, DagsterInstance

from backfill_engine.orchestration.due.readiness import get_partitions_def
from backfill_engine.orchestration.instance.dagster_internals import (
    AssetGraphSubset,
    BulkActionStatus,
)
from backfill_engine.orchestration.runs.chains import find_partitions_at_work
from backfill_engine_tests.pipeline.requesting import get_backfill, request, set_status
from backfill_engine_tests.pipeline.running import RAW, STAGING, list_days
from backfill_engine_tests.project import defs


def find_at_work(instance: DagsterInstance) -> dict[str, list[str]]:
    found = find_partitions_at_work(instance, defs.get_repository_def().asset_graph)
    return {key.to_user_string(): sorted(keys) for key, keys in found.items()}


def test_what_is_requested_and_has_no_run_yet_is_at_work(instance: DagsterInstance) -> None:
    request(instance, RAW, STAGING, days=list_days(1, 3))
    request(instance, RAW, days=list_days(3, 4))
    assert find_at_work(instance) == {RAW: list_days(1, 4), STAGING: list_days(1, 3)}


@pytest.mark.parametrize("status", [BulkActionStatus.CANCELING, BulkActionStatus.COMPLETED])
def test_what_nobody_is_to_request_any_more_is_not(
    instance: DagsterInstance, status: BulkActionStatus
) -> None:
    backfill = request(instance, RAW, days=list_days(1, 3))
    set_status(instance, backfill, status)
    assert find_at_work(instance) == {}


def test_what_it_has_requested_or_will_not_request_is_the_business_of_its_runs(
    instance: DagsterInstance,
) -> None:
    backfill = request(instance, RAW, days=list_days(1, 6))
    graph, asset_key = defs.get_repository_def().asset_graph, AssetKey.from_user_string(RAW)
    record = get_backfill(instance, backfill)
    data = record.asset_backfill_data
    assert data is not None
    subset = get_partitions_def(graph, asset_key).subset_with_partition_keys
    requested = AssetGraphSubset({asset_key: subset(list_days(1, 2))})
    failed = AssetGraphSubset({asset_key: subset(list_days(5, 6))})
    updated = data._replace(requested_subset=requested, failed_and_downstream_subset=failed)
    instance.update_backfill(record.with_asset_backfill_data(updated, instance, graph))
    assert find_at_work(instance) == {RAW: list_days(3, 4)}
