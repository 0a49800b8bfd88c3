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
from backfill_assets.lake.commits import WriteMode
from backfill_assets.lake.partitions import build_partitions
from backfill_assets.lake.table_log import find_latest_publishes, read_commits, read_version
from backfill_assets.lake.warehouse import Warehouse
from backfill_assets.orchestration.dagster_internals import CheckStatus
from backfill_assets.orchestration.events import build_recovered_materialization
from backfill_assets.orchestration.materializations import find_latest_materializations
from backfill_assets.rules.verdicts import Check
from backfill_assets.tables.declarations import Table

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


def record_lost_commits(
    instance: DagsterInstance, warehouse: Warehouse, table: Table
) -> LostCommits:
    """Finds what dead runs published and did not record, reads it back, and records it."""
    asset_key = AssetKey([table.layer, table.name])
    publishes = find_latest_publishes(read_commits(warehouse, table))
    run_ids = sorted({one.record.run_id for one in publishes.values() if one.record})
    if not run_ids:
        return LostCommits()
    runs = {run.run_id: run for run in instance.get_runs(RunsFilter(run_ids=run_ids))}
    lost: list[str] = []
    for key, commit in publishes.items():
        record = commit.record
        assert record is not None
        run = runs.get(record.run_id)
        # A run that ended well has recorded all it published; one that still works, will.
        if run is not None and (run.status is DagsterRunStatus.SUCCESS or not run.is_finished):
            continue
        # What a withheld publish put back, an earlier event tells of; that run had no success.
        if record.write_mode == WriteMode.TAKE_BACK:
            continue
        lost.append(key)
    known = _find_recorded_versions(instance, asset_key, lost)
    lost = [key for key in lost if known.get(key, -1) < publishes[key].version]
    partitions = build_partitions(table, lost)
    seen = read_back(warehouse, table, partitions, version=read_version(warehouse, table))
    recorded: list[str] = []
    unreadable: list[str] = []
    for key, there in seen.items():
        record = publishes[key].record
        assert record is not None
        if (there.rows, there.checksum) != (record.rows[key], record.checksums[key]):
            unreadable.append(key)
            continue
        recorded.append(key)
        instance.report_runless_asset_event(
            build_recovered_materialization(
                asset_key,
                key,
                uri=warehouse.uri(table),
                version=publishes[key].version,
                rows=record.rows[key],
                checksum=record.checksums[key],
                input_versions=record.input_versions,
                code_version=record.code_version,
            )
        )
    return LostCommits(tuple(recorded), tuple(unreadable))


def find_failed_before(
    instance: DagsterInstance, warehouse: Warehouse, table: Table
) -> frozenset[str]:
    """Partitions with a check that failed since they were published last, or that never were."""
    published_at = {
        key: commit.committed_at.timestamp()
        for key, commit in find_latest_publishes(read_commits(warehouse, table)).items()
    }
    failures = (
        record
        for check in Check
        for record in instance.event_log_storage.get_asset_check_execution_history(
            AssetCheckKey(AssetKey([table.layer, table.name]), check.value),
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
    """The Delta version that the latest event of each partition tells of."""
    versions: dict[str, int] = {}
    for key, record in find_latest_materializations(instance, asset_key, keys).items():
        event = record.asset_materialization
        version = event.metadata.get("delta_version") if event else None
        if version is not None:
            assert isinstance(version.value, int)
            versions[key] = version.value
    return versions


def _describe_process(pid: int) -> str | None:
    """`PID@START`, so that a process that got the number of a dead one isn't taken for it."""
    try:
        return f"{pid}@{psutil.Process(pid).create_time():.0f}"
    except psutil.NoSuchProcess:
        return None
