"""Partitions whose checks failed before, as the Dagster instance has them."""

from dagster import AssetCheckKey, DagsterInstance

from backfill_engine.lake.table_log import TableLog
from backfill_engine.orchestration.instance.dagster_internals import CheckStatus
from backfill_engine.orchestration.instance.partition_definitions import find_asset_key
from backfill_engine.rules.verdicts import Check

_LOOKED_AT = 1000


def find_failed_before(instance: DagsterInstance, log: TableLog) -> frozenset[str]:
    """Finds partitions with a check that failed since they were published last.

    Of those that never were published, any failed check counts.
    """
    published_at = {
        key: publish.commit.committed_at.timestamp() for key, publish in log.publishes.items()
    }
    failures = (
        record
        for check in Check
        for record in instance.event_log_storage.get_asset_check_execution_history(
            AssetCheckKey(find_asset_key(log.table), check.value),
            limit=_LOOKED_AT,
            status={CheckStatus.FAILED},
        )
    )
    return frozenset(
        record.partition
        for record in failures
        if record.partition is not None
        and record.create_timestamp > published_at.get(record.partition, 0)
    )
