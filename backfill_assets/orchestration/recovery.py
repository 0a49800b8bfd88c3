"""Puts right what a killed process leaves behind in the Dagster instance.

The tables need nothing: a commit is there or isn't. But a run killed with -9 stays "started" for
ever, and a run that died between a commit and its events leaves partitions published that Dagster
takes for missing.
"""

import os
import socket
from dataclasses import dataclass

import psutil
from dagster import (
    AssetCheckKey,
    AssetKey,
    DagsterInstance,
    DagsterRunStatus,
    RunsFilter,
)

from backfill_assets.contents.read_back import read_back
from backfill_assets.lake.partitions import build_partitions
from backfill_assets.lake.table_log import TableLog
from backfill_assets.orchestration.dagster_internals import CheckStatus
from backfill_assets.orchestration.events import build_recovered_materialization
from backfill_assets.orchestration.materializations import find_latest_materializations
from backfill_assets.orchestration.partition_definitions import find_asset_key
from backfill_assets.publishing.write_modes.restore import TakeBack
from backfill_assets.rules.verdicts import Check

_FAILURES_LOOKED_AT = 1000

HOST_TAG = "backfill_assets/host"
PROCESS_TAG = "backfill_assets/process"


def claim_run(instance: DagsterInstance, run_id: str) -> None:
    """Notes on the run which process works on it."""
    process = _describe_process(os.getpid())
    assert process is not None
    instance.add_run_tags(run_id, {HOST_TAG: socket.gethostname(), PROCESS_TAG: process})


def fail_dead_runs(instance: DagsterInstance) -> list[str]:
    """Marks runs of this host failed whose process is gone, so that they hold no slot.

    Returns:
        Their ids.
    """
    unfinished = [DagsterRunStatus.STARTED, DagsterRunStatus.CANCELING]
    here = RunsFilter(statuses=unfinished, tags={HOST_TAG: socket.gethostname()})
    dead: list[str] = []
    for run in instance.get_runs(here):
        process = run.tags.get(PROCESS_TAG, "")
        pid = process.partition("@")[0]
        if not pid.isdigit() or _describe_process(int(pid)) != process:
            instance.report_run_failed(
                run,
                f"its process {process or '(unknown)'} is gone: killed, or the machine restarted",
            )
            dead.append(run.run_id)
    return dead


@dataclass(frozen=True)
class LostCommits:
    """Partitions that a commit published and no event told of.

    Attributes:
        recorded: are as their run audited them, and recorded now.
        unreadable: are not: their run died before it read them back. They stay missing (or failed)
            in the instance, so that they are run again.
    """

    recorded: tuple[str, ...] = ()
    unreadable: tuple[str, ...] = ()


def record_lost_commits(instance: DagsterInstance, log: TableLog) -> LostCommits:
    """Finds what dead runs published and did not record, reads it back, and records it."""
    asset_key = find_asset_key(log.table)
    lost = _find_unrecorded(instance, log)
    known = _find_recorded_versions(instance, asset_key, lost)
    lost = [key for key in lost if known.get(key, -1) < log.publishes[key].version]
    if not lost:
        return LostCommits()
    recorded: list[str] = []
    unreadable: list[str] = []
    for key, found in read_back(log, build_partitions(log.table, lost)).items():
        publish = log.publishes[key]
        if not found.agrees_with(publish):
            unreadable.append(key)
            continue
        recorded.append(key)
        event = build_recovered_materialization(asset_key, publish, uri=log.uri)
        instance.report_runless_asset_event(event)
    return LostCommits(tuple(recorded), tuple(unreadable))


def _find_unrecorded(instance: DagsterInstance, log: TableLog) -> list[str]:
    """Finds partitions published last by a run that ended without success, or is unknown."""
    run_ids = sorted({publish.record.run_id for publish in log.publishes.values()})
    if not run_ids:
        return []
    runs = {run.run_id: run for run in instance.get_runs(RunsFilter(run_ids=run_ids))}
    unrecorded: list[str] = []
    for key, publish in log.publishes.items():
        run = runs.get(publish.record.run_id)
        # A run that ended well has recorded all it published; one that still works, will.
        if run is not None and (run.status is DagsterRunStatus.SUCCESS or not run.is_finished):
            continue
        # What a withheld publish put back, an earlier event tells of; that run had no success.
        if publish.record.write_mode != TakeBack.name:
            unrecorded.append(key)
    return unrecorded


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
            limit=_FAILURES_LOOKED_AT,
            status={CheckStatus.FAILED},
        )
    )
    return frozenset(
        record.partition
        for record in failures
        if record.partition is not None
        and record.create_timestamp > published_at.get(record.partition, 0)
    )


def _find_recorded_versions(
    instance: DagsterInstance, asset_key: AssetKey, keys: list[str]
) -> dict[str, int]:
    """Finds the Delta version that the latest event of each partition tells of."""
    versions: dict[str, int] = {}
    for key, record in find_latest_materializations(instance, asset_key, keys).items():
        event = record.asset_materialization
        version = event.metadata.get("delta_version") if event else None
        if version is not None:
            assert isinstance(version.value, int)
            versions[key] = version.value
    return versions


def _describe_process(pid: int) -> str | None:
    """Returns `PID@START`; None if there is no such process.

    So a process that got the number of a dead one isn't taken for it.
    """
    try:
        return f"{pid}@{psutil.Process(pid).create_time():.0f}"
    except psutil.NoSuchProcess:
        return None
