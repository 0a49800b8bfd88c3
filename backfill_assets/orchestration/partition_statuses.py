"""What each partition of a range holds and how its last run ended.

Status comes from the Dagster instance, rows and versions from the Delta log: neither is kept twice.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from dagster import DagsterInstance

from backfill_assets.catalog import find_table
from backfill_assets.lake.table_log import read_log
from backfill_assets.lake.warehouse import Warehouse
from backfill_assets.orchestration.partition_definitions import find_asset_key, find_partitions_def
from backfill_assets.orchestration.ranges import find_ranges
from backfill_assets.orchestration.selections import find_keys_in_range
from backfill_assets.tables.declarations import Table


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
    """Contiguous partitions of a table that are to be run: first and last key, both included."""

    table: str
    first: str
    last: str


def read_statuses(
    instance: DagsterInstance,
    warehouse: Warehouse,
    tables: Sequence[Table],
    *,
    first: str,
    last: str,
) -> list[PartitionStatus]:
    """Reads the status of partitions `first` to `last`, both included, of each table.

    Raises:
        PartitionRangeError: if a key is unknown or the range is reversed.
    """
    statuses: list[PartitionStatus] = []
    for table in tables:
        asset_key = find_asset_key(table)
        partitions_def = find_partitions_def(table)
        keys = find_keys_in_range(partitions_def, first=first, last=last)
        by_key = instance.get_status_by_partition(asset_key, keys, partitions_def) or {}
        log = read_log(warehouse, table)
        rows, publishes = log.count_rows(), log.publishes
        for key in keys:
            status, publish = by_key.get(key), publishes.get(key)
            statuses.append(
                PartitionStatus(
                    table=table.key,
                    partition=key,
                    status=status.value.lower() if status else "missing",
                    rows=rows.get(key, 0) if publish else None,
                    version=publish.version if publish else None,
                )
            )
    return statuses


def find_missing_ranges(
    statuses: Sequence[PartitionStatus], *, only_failed: bool
) -> list[MissingRange]:
    """Finds the partitions that are missing or failed, as ranges, by table and in order.

    Args:
        statuses: all partitions of a range, by table and ascending.
        only_failed: leave out those that no run ever tried.
    """
    wanted = {"failed"} if only_failed else {"failed", "missing"}
    keys: dict[str, list[str]] = {}
    for status in statuses:
        if status.status in wanted:
            keys.setdefault(status.table, []).append(status.partition)
    return [
        MissingRange(table, first, last)
        for table, missing in keys.items()
        for first, last in find_ranges(find_partitions_def(find_table(table)), missing)
    ]
