"""Partitions that don't hold what their last run published: another writer has changed the table.

Another program's commits are in the table's log. What only the Dagster instance knows of, and the
log doesn't have, was lost with an older copy of the table, or with the table itself.
"""

import uuid
from collections.abc import Mapping

from dagster import (
    AssetCheckEvaluation,
    AssetCheckSeverity,
    DagsterInstance,
    DagsterRun,
    DagsterRunStatus,
    EventLogRecord,
)

from backfill_engine.lake.commits import describe_foreign_changes
from backfill_engine.lake.table_log import TableLog
from backfill_engine.orchestration.instance.batching_instance import store_together
from backfill_engine.orchestration.instance.dagster_internals import AssetPartitionStatus
from backfill_engine.orchestration.instance.materializations import (
    DATA_VERSION,
    find_latest_materializations,
)
from backfill_engine.orchestration.instance.partition_definitions import (
    find_asset_key,
    find_partitions_def,
)
from backfill_engine.orchestration.instance.recovered_runs import (
    RECOVERED_JOB,
    RECOVERED_TAG,
    enter_evaluation,
    enter_plan,
)
from backfill_engine.orchestration.instance.told_statuses import ToldStatuses
from backfill_engine.orchestration.records.events import describe_target
from backfill_engine.rules.verdicts import Check

CHANGED_TAG = "backfill_assets/changed_by_another_writer"
"""Tag of an entered run, under which partitions show as failed: the table's newest version."""


def find_changed(
    instance: DagsterInstance, log: TableLog, shown: Mapping[str, str]
) -> dict[str, str]:
    """Finds the partitions that another writer has changed, and says how, by key.

    Args:
        instance: the Dagster instance.
        log: of the table.
        shown: the data version of each partition that the instance shows, by key.
    """
    foreign = describe_foreign_changes(log.foreign_changes)
    return {**_find_lost(instance, log, shown), **foreign}


def enter_changed(instance: DagsterInstance, log: TableLog, changed: Mapping[str, str]) -> None:
    """Enters a failed run of the partitions that the instance still shows as materialized."""
    asset_key, partitions_def = find_asset_key(log.table), find_partitions_def(log.table)
    statuses = ToldStatuses(instance).find(asset_key, sorted(changed), partitions_def)
    shown = [key for key, status in statuses.items() if status is AssetPartitionStatus.MATERIALIZED]
    if not shown:
        return
    tags = {RECOVERED_TAG: "true", CHANGED_TAG: str(log.version)}
    run_id = str(uuid.uuid4())
    instance.add_run(
        DagsterRun(RECOVERED_JOB, run_id=run_id, status=DagsterRunStatus.FAILURE, tags=tags)
    )
    latest = find_latest_materializations(instance, asset_key, shown)
    with store_together(instance):
        for key in shown:
            enter_plan(instance, run_id, asset_key, key)
            evaluation = AssetCheckEvaluation(
                asset_key=asset_key,
                check_name=Check.READABLE.value,
                passed=False,
                partition=key,
                severity=AssetCheckSeverity.ERROR,
                description=changed[key],
                metadata={"why": changed[key]},
                target_materialization_data=describe_target(latest.get(key)),
            )
            enter_evaluation(instance, run_id, evaluation)


def _find_lost(
    instance: DagsterInstance, log: TableLog, shown: Mapping[str, str]
) -> dict[str, str]:
    """Finds the partitions whose last publish the instance knows of, and the log does not have."""
    publishes = log.publishes
    unlike = [key for key in shown if key not in publishes or publishes[key].checksum != shown[key]]
    if not unlike:
        return {}
    checksums = {
        commit.version: commit.record.checksums for commit in log.known_commits if commit.record
    }
    latest = find_latest_materializations(instance, find_asset_key(log.table), unlike)
    return {
        key: f"changed by another writer (version {_read_version(record)}, which this Dagster home "
        "knows of, is no longer in the table)"
        for key, record in latest.items()
        if not _is_in_log(record, log, checksums)
    }


def _is_in_log(
    record: EventLogRecord, log: TableLog, checksums: Mapping[int, Mapping[str, str]]
) -> bool:
    """Tells whether the log has the publish that an event is about, as far as it is known."""
    version, event = _read_version(record), record.asset_materialization
    if version is None or event is None or event.partition is None:
        return True
    if version not in checksums:
        return version <= log.version
    published = checksums[version].get(event.partition)
    if published is None:
        # A table that was made anew has other commits under the same numbers.
        return event.partition in log.publishes or log.known_since > 0
    return published == (event.tags or {}).get(DATA_VERSION)


def _read_version(record: EventLogRecord) -> int | None:
    event = record.asset_materialization
    version = event.metadata.get("delta_version") if event else None
    return version.value if version is not None and isinstance(version.value, int) else None
