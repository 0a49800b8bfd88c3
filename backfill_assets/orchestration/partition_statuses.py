"""What each partition of a range holds and how its last run ended.

Status comes from the Dagster instance, rows and versions from the Delta log: neither is kept twice.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from dagster import DagsterInstance

from backfill_assets.catalog import find_table
from backfill_assets.lake.table_log import TableLog, read_log
from backfill_assets.lake.warehouse import Warehouse
from backfill_assets.orchestration.materializations import find_planning_runs
from backfill_assets.orchestration.partition_definitions import find_asset_key, find_partitions_def
from backfill_assets.orchestration.ranges import find_ranges
from backfill_assets.orchestration.recovery import Recovery, find_recovery
from backfill_assets.orchestration.selections import find_keys_in_range
from backfill_assets.proof.certificates import list_documents, read_readable
from backfill_assets.tables.declarations import Table

MATERIALIZED, FAILED, IN_PROGRESS, MISSING = "materialized", "failed", "in_progress", "missing"
NOT_DUE = "not_due"
"""Of a partition that a run was to publish, and of which upstream partitions never came."""


@dataclass(frozen=True)
class PartitionStatus:
    """One partition of one table.

    Attributes:
        table: `layer/name`.
        partition: its key.
        status: `materialized`, `failed`, `in_progress` or `missing`, as Dagster has it; `not_due`
            of a failed one that only waits for what never came.
        rows: rows in the newest version of the table; None if the partition was never published.
        version: Delta version that published it last; None likewise.
    """

    table: str
    partition: str
    status: str
    rows: int | None
    version: int | None


@dataclass(frozen=True)
class MissingRange:
    """Contiguous partitions of a table of one status: first and last key, both included."""

    table: str
    first: str
    last: str

    def __str__(self) -> str:
        """Writes it as `--partition-range` takes it."""
        return f"{self.first}...{self.last}"


@dataclass(frozen=True)
class TableStatuses:
    """What there is to say of a range of one table.

    Attributes:
        partitions: ascending.
        recovery: what the instance has yet to be told; the statuses are as if it had been.
    """

    partitions: tuple[PartitionStatus, ...]
    recovery: Recovery


def read_statuses(
    instance: DagsterInstance,
    warehouse: Warehouse,
    tables: Sequence[Table],
    *,
    first: str,
    last: str,
    dead: Collection[str] = (),
) -> list[TableStatuses]:
    """Reads the status of partitions `first` to `last`, both included, of each table.

    Args:
        instance: the Dagster instance.
        warehouse: where the tables are.
        tables: which.
        first: first partition key.
        last: last partition key.
        dead: unfinished runs that are dead: what they planned and did not publish, failed.

    Raises:
        PartitionRangeError: if a key is unknown or the range is reversed.
    """
    found: list[TableStatuses] = []
    for table in tables:
        keys = find_keys_in_range(find_partitions_def(table), first=first, last=last)
        log = read_log(warehouse, table)
        recovery = find_recovery(instance, log, dead=dead)
        statuses = _find_statuses(instance, recovery, keys, dead)
        rows, publishes = log.count_rows(), log.publishes
        partitions = tuple(
            PartitionStatus(
                table=table.key,
                partition=key,
                status=statuses[key],
                rows=rows.get(key, 0) if key in publishes else None,
                version=publishes[key].version if key in publishes else None,
            )
            for key in keys
        )
        found.append(TableStatuses(partitions, recovery))
    return found


def _find_statuses(
    instance: DagsterInstance, recovery: Recovery, keys: Sequence[str], dead: Collection[str]
) -> dict[str, str]:
    """Finds the status of each key as it is once dead runs are marked and all is recorded."""
    table = recovery.log.table
    asset_key, partitions_def = find_asset_key(table), find_partitions_def(table)
    told = instance.get_status_by_partition(asset_key, keys, partitions_def) or {}
    planned_by = find_planning_runs(instance, asset_key) if dead else {}
    statuses = dict.fromkeys(keys, MISSING)
    for key, status in told.items():
        if status is not None:
            statuses[key] = status.value.lower()
        if statuses[key] == IN_PROGRESS and planned_by.get(key) in dead:
            statuses[key] = FAILED
    statuses |= {result.key: MATERIALIZED for result in recovery.published}
    statuses |= dict.fromkeys((*recovery.doubtful, *recovery.withheld_keys), FAILED)
    failed = [key for key, status in statuses.items() if status == FAILED]
    return statuses | dict.fromkeys(_find_not_due(instance, recovery.log, failed), NOT_DUE)


def _find_not_due(instance: DagsterInstance, log: TableLog, failed: Sequence[str]) -> list[str]:
    """Finds the failed partitions that only wait for upstream partitions that never came.

    The certificate of the run that was to publish one says for which; whether they have come since
    the instance knows.
    """
    runs = find_planning_runs(instance, find_asset_key(log.table)) if failed else {}
    wanted = {(runs[key], log.table.key) for key in failed if key in runs}
    documents = list_documents(log.warehouse) if wanted else []
    waiting = {
        row.partition: row.never_came
        for certificate in read_readable(one for one in documents if one.subject in wanted)
        for row in certificate.partitions
        if row.never_came and runs.get(row.partition) == certificate.run_id
    }
    tried = _find_tried(
        instance, {upstream for never_came in waiting.values() for upstream in never_came}
    )
    return [key for key in failed if key in waiting and tried.isdisjoint(waiting[key])]


def _find_tried(instance: DagsterInstance, upstream: Collection[str]) -> set[str]:
    """Finds the partitions, each as `layer/name key`, that a run has published or failed at."""
    by_table: dict[str, list[str]] = {}
    for partition in upstream:
        table, _, key = partition.partition(" ")
        by_table.setdefault(table, []).append(key)
    tried: set[str] = set()
    for name, keys in by_table.items():
        table = find_table(name)
        found = instance.get_status_by_partition(
            find_asset_key(table), keys, find_partitions_def(table)
        )
        tried |= {f"{name} {key}" for key, status in (found or {}).items() if status is not None}
    return tried


def find_ranges_of(
    statuses: Sequence[PartitionStatus], wanted: Collection[str]
) -> list[MissingRange]:
    """Finds the partitions of certain statuses as ranges, by table and in order.

    Args:
        statuses: all partitions of a range, by table and ascending.
        wanted: the statuses.
    """
    keys: dict[str, list[str]] = {}
    for status in statuses:
        if status.status in wanted:
            keys.setdefault(status.table, []).append(status.partition)
    return [
        MissingRange(table, first, last)
        for table, missing in keys.items()
        for first, last in find_ranges(find_partitions_def(find_table(table)), missing)
    ]
