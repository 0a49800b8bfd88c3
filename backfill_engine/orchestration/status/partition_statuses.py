"""What each partition of a range holds and how its last run ended.

Status comes from the Dagster instance, rows and versions from the Delta log: neither is kept twice.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from dagster import DagsterInstance

from backfill_engine.catalog import Catalog
from backfill_engine.lake.table_log import TableLog, read_log
from backfill_engine.lake.warehouse import Warehouse
from backfill_engine.orchestration.instance.materializations import (
    PartitionStatusCache,
    find_planning_runs,
)
from backfill_engine.orchestration.instance.partition_definitions import (
    find_asset_key,
    find_partitions_def,
)
from backfill_engine.orchestration.instance.ranges import find_ranges
from backfill_engine.orchestration.recovery.recovery import Recovery, find_recovery
from backfill_engine.orchestration.selecting.selections import find_keys_in_range
from backfill_engine.proof.certificates import (
    CertifiedPartition,
    list_documents,
    read_readable,
)
from backfill_engine.publishing.statements import describe_warnings
from backfill_engine.tables.declarations import Table

MATERIALIZED, FAILED, IN_PROGRESS, MISSING = "materialized", "failed", "in_progress", "missing"
WITHHELD = "withheld"
"""Of a failed partition, where failed and withheld are told apart: by a verdict of its audit."""
CHANGED = "changed"
"""Of a partition that doesn't hold what was published last: another writer has changed it."""
NOT_DUE = "not_due"
"""Of a partition that a run was to publish, and of which upstream partitions never came."""


@dataclass(frozen=True)
class PartitionStatus:
    """One partition of one table.

    Attributes:
        table: `layer/name`.
        partition: its key.
        status: `materialized`, `failed`, `in_progress` or `missing`, as Dagster has it; `not_due`
            of a failed one that only waits for what never came; `changed` of one that another
            writer has changed since.
        rows: rows in the newest version of the table; None if the partition was never published.
        version: Delta version that published it last; None likewise.
        started: of the last attempt at it: UTC, ISO 8601; as the others, only where it was asked
            for (`attempts`), and empty if nobody tried it.
        completed: when that published it, or ended without it.
        error: why it did not.
        warned: what the audit of what is published warned about, with value and bound.
    """

    table: str
    partition: str
    status: str
    rows: int | None
    version: int | None
    started: str = ""
    completed: str = ""
    error: str = ""
    warned: str = ""


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
        withheld: the failed ones that the last run withheld by a verdict; of the others its step
            ended before it came to them, or they are in doubt.
        recovery: what the instance has yet to be told; the statuses are as if it had been.
    """

    partitions: tuple[PartitionStatus, ...]
    recovery: Recovery
    withheld: frozenset[str] = frozenset()


def read_statuses(
    catalog: Catalog,
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
        catalog: of the code location.
        instance: the Dagster instance.
        warehouse: where the tables are.
        tables: which.
        first: first partition key.
        last: last partition key.
        dead: unfinished runs that are dead: what they planned and did not publish, failed.

    Raises:
        PartitionRangeError: if a key is unknown or the range is reversed.
    """
    return [
        read_table_statuses(
            catalog, instance, read_log(warehouse, table), first=first, last=last, dead=dead
        )
        for table in tables
    ]


def read_table_statuses(
    catalog: Catalog,
    instance: DagsterInstance,
    log: TableLog,
    *,
    first: str,
    last: str,
    dead: Collection[str] = (),
    cache: PartitionStatusCache | None = None,
) -> TableStatuses:
    """Reads the statuses of one table, by a log that was read already; see `read_statuses`.

    And by the statuses of Dagster that `cache` has already.

    Raises:
        PartitionRangeError: if a key is unknown or the range is reversed.
    """
    table, cache = log.table, cache or PartitionStatusCache(instance)
    asset_key, partitions_def = find_asset_key(table), find_partitions_def(table)
    keys = find_keys_in_range(partitions_def, first=first, last=last)
    recovery = find_recovery(instance, log, dead=dead)
    planned_by = find_planning_runs(instance, asset_key) if dead else {}
    statuses = dict.fromkeys(keys, MISSING)
    for key, status in cache.find(asset_key, keys, partitions_def).items():
        if status is not None:
            statuses[key] = status.value.lower()
        if statuses[key] == IN_PROGRESS and planned_by.get(key) in dead:
            statuses[key] = FAILED
    # As it is once dead runs are marked and all is recorded.
    recovered = dict.fromkeys((result.key for result in recovery.published), MATERIALIZED)
    recovered |= dict.fromkeys((*recovery.doubtful, *recovery.withheld_keys), FAILED)
    statuses |= {key: status for key, status in recovered.items() if key in statuses}
    failed = [key for key, status in statuses.items() if status == FAILED]
    verdicts = _read_verdicts(instance, log, failed)
    lost = {row.partition: row for record in recovery.withheld.runs for row in record.rows}
    withheld = {key for key, row in (verdicts | lost).items() if row.status == WITHHELD}
    statuses |= dict.fromkeys(_find_not_due(catalog, cache, verdicts), NOT_DUE)
    for key in recovery.changed:
        if statuses.get(key, IN_PROGRESS) != IN_PROGRESS:
            statuses[key] = CHANGED
    rows, publishes = log.count_rows(), log.publishes
    partitions = tuple(
        PartitionStatus(
            table=table.key,
            partition=key,
            status=statuses[key],
            rows=rows.get(key, 0) if key in publishes else None,
            version=publishes[key].version if key in publishes else None,
            warned=describe_warnings(publishes[key]) if key in publishes else "",
        )
        for key in keys
    )
    return TableStatuses(
        partitions,
        recovery,
        frozenset(withheld.intersection(failed).difference(recovery.doubtful, recovery.changed)),
    )


def _read_verdicts(
    instance: DagsterInstance, log: TableLog, failed: Sequence[str]
) -> dict[str, CertifiedPartition]:
    """Reads what the run that was to publish a partition last says of it, by key.

    Of one that its run did not come to, or that was killed, nothing is said.
    """
    runs = find_planning_runs(instance, find_asset_key(log.table)) if failed else {}
    wanted = {(runs[key], log.table.key) for key in failed if key in runs}
    documents = list_documents(log.warehouse) if wanted else []
    asked = set(failed)
    return {
        row.partition: row
        for certificate in read_readable(
            document for document in documents if document.subject in wanted
        )
        for row in certificate.partitions
        if runs.get(row.partition) == certificate.run_id and row.partition in asked
    }


def _find_not_due(
    catalog: Catalog, cache: PartitionStatusCache, verdicts: Mapping[str, CertifiedPartition]
) -> list[str]:
    """Finds the failed partitions that only wait for upstream partitions that never came.

    The certificate of the run that was to publish one says for which; whether they have come since
    the instance knows.
    """
    waiting = {key: row.never_came for key, row in verdicts.items() if row.never_came}
    tried = _find_tried(
        catalog, cache, {upstream for never_came in waiting.values() for upstream in never_came}
    )
    return [key for key, never_came in waiting.items() if tried.isdisjoint(never_came)]


def _find_tried(
    catalog: Catalog, cache: PartitionStatusCache, upstream: Collection[str]
) -> set[str]:
    """Finds the partitions, each as `layer/name key`, that a run has published or failed at.

    Of a table that nobody publishes here, those that are there.
    """
    external = {table.key: table for table in catalog.external}
    by_table: dict[str, list[str]] = {}
    for partition in upstream:
        table, _, key = partition.partition(" ")
        by_table.setdefault(table, []).append(key)
    tried: set[str] = set()
    for name, keys in by_table.items():
        if name in external:
            rows = read_log(catalog.warehouse, external[name]).count_rows()
            tried |= {f"{name} {key}" for key in keys if key in rows}
            continue
        table = catalog.find_table(name)
        found = cache.find(find_asset_key(table), keys, find_partitions_def(table))
        tried |= {f"{name} {key}" for key, status in found.items() if status is not None}
    return tried


def find_ranges_of(
    catalog: Catalog, statuses: Sequence[PartitionStatus], wanted: Collection[str]
) -> list[MissingRange]:
    """Finds the partitions of certain statuses as ranges, by table and in order.

    Args:
        catalog: of the code location.
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
        for first, last in find_ranges(find_partitions_def(catalog.find_table(table)), missing)
    ]
