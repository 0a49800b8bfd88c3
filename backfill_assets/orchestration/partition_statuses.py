"""What each partition of a range holds and how its last run ended.

Status comes from the Dagster instance, rows and versions from the Delta log: neither is kept twice.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from dagster import DagsterInstance

from backfill_assets.catalog import find_table
from backfill_assets.lake.table_log import read_log
from backfill_assets.lake.warehouse import Warehouse
from backfill_assets.orchestration.materializations import find_planning_runs
from backfill_assets.orchestration.partition_definitions import find_asset_key, find_partitions_def
from backfill_assets.orchestration.ranges import find_ranges
from backfill_assets.orchestration.recovery import Recovery, find_recovery
from backfill_assets.orchestration.selections import find_keys_in_range
from backfill_assets.tables.declarations import Table

MATERIALIZED, FAILED, IN_PROGRESS, MISSING = "materialized", "failed", "in_progress", "missing"


@dataclass(frozen=True)
class PartitionStatus:
    """One partition of one table.

    Attributes:
        table: `layer/name`.
        partition: its key.
        status: `materialized`, `failed`, `in_progress` or `missing`, as Dagster has it.
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
    return statuses


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
