"""What each partition of a range holds and how its last run ended.

Status comes from the Dagster instance, rows and versions from the Delta log: neither is kept twice.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from dagster import AssetKey, DagsterInstance, PartitionKeyRange, PartitionsDefinition

from backfill_assets.errors import PartitionRangeError
from backfill_assets.lake.history import count_rows, find_latest_publishes, read_commits
from backfill_assets.lake.warehouse import Warehouse
from backfill_assets.orchestration.ranges import find_ranges
from backfill_assets.partitions import find_partitions_def
from backfill_assets.tables.catalog import PIPELINES, TABLES, find_table
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
    """The partitions `first` to `last`, both included, of each table.

    Raises:
        PartitionRangeError: if a key is unknown or the range is reversed.
    """
    statuses: list[PartitionStatus] = []
    for table in tables:
        key = AssetKey([table.layer, table.name])
        partitions_def = find_partitions_def(table)
        keys = find_keys_in_range(partitions_def, first=first, last=last)
        by_key = instance.get_status_by_partition(key, keys, partitions_def) or {}
        rows = count_rows(warehouse, table)
        publishes = find_latest_publishes(read_commits(warehouse, table))
        for one in keys:
            status = by_key.get(one)
            statuses.append(
                PartitionStatus(
                    table=table.key,
                    partition=one,
                    status=status.value.lower() if status else "missing",
                    rows=rows.get(one, 0) if one in publishes else None,
                    version=publishes[one].version if one in publishes else None,
                )
            )
    return statuses


def find_missing_ranges(
    statuses: Sequence[PartitionStatus], *, only_failed: bool
) -> list[MissingRange]:
    """The partitions that are missing or failed, as ranges, by table and in order.

    Args:
        statuses: all partitions of a range, by table and ascending.
        only_failed: leave out those that no run ever tried.
    """
    wanted = {"failed"} if only_failed else {"failed", "missing"}
    return [
        MissingRange(table, first, last)
        for table in dict.fromkeys(one.table for one in statuses)
        for first, last in find_ranges(
            [one.partition for one in statuses if one.table == table],
            {one.partition for one in statuses if one.table == table and one.status in wanted},
        )
    ]


def select_tables(
    warehouse: Warehouse, keys: str | None, *, first: str, last: str
) -> tuple[Table, ...]:
    """The tables of a comma-separated list of keys, or else those that the question is about.

    These are the tables that have the partitions, of the pipelines of which a table is there; of
    all pipelines, if none is.

    Raises:
        TableError: if one doesn't exist.
        PartitionRangeError: if none has the partitions.
    """
    if keys:
        return tuple(find_table(key.strip()) for key in keys.split(","))
    begun = {
        table.key
        for tables in PIPELINES.values()
        for table in tables
        if any(warehouse.exists(one) for one in tables)
    }
    found = tuple(
        table
        for table in TABLES
        if (table.key in begun or not begun)
        and all(find_partitions_def(table).has_partition_key(key) for key in (first, last))
    )
    if not found:
        examples = {
            find_partitions_def(table).get_first_partition_key(): table.key for table in TABLES
        }
        listed = ", ".join(f"{key} of {table}" for key, table in examples.items())
        raise PartitionRangeError(
            f"no table here has both partitions {first} and {last}: give keys such as {listed}"
        )
    return found


def find_keys_in_range(
    partitions_def: PartitionsDefinition, *, first: str, last: str
) -> Sequence[str]:
    """The keys from `first` to `last`, both included.

    Raises:
        PartitionRangeError: if a key is unknown or the range is reversed.
    """
    known = all(partitions_def.has_partition_key(key) for key in (first, last))
    range_ = PartitionKeyRange(first, last)
    keys = partitions_def.get_partition_keys_in_range(range_) if known else ()
    if not keys:
        all_keys = partitions_def.get_partition_keys()
        raise PartitionRangeError(
            f"no partitions {first}...{last}: "
            f"give two keys of {all_keys[0]}...{all_keys[-1]}, ascending"
        )
    return keys
