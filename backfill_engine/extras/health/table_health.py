"""How each table is doing now: what is published and failed, and how far its watermark lags.

Told by watermarks, logs and Dagster's states; no JVM.
"""

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass, field

from dagster import AssetPartitionStatus, DagsterInstance

from backfill_engine.catalog import Catalog
from backfill_engine.errors import BackfillError
from backfill_engine.extras.health.lateness import DAY, find_moment
from backfill_engine.grains.whole import WHOLE
from backfill_engine.lake.partitions import build_partitions
from backfill_engine.lake.table_log import TableLog, read_log
from backfill_engine.lake.watermarks import Watermark, read_watermarks
from backfill_engine.orchestration.instance.partition_definitions import (
    find_asset_key,
    find_partitions_def,
)
from backfill_engine.publishing.inputs import list_landing
from backfill_engine.publishing.statements import read_result
from backfill_engine.resources import LakehouseResource
from backfill_engine.rules.declared import (
    DROPPED_AS_IDENTICAL,
    DROPPED_AS_OLDER,
    KEYS_ARE_UNIQUE,
)
from backfill_engine.rules.verdicts import Check
from backfill_engine.tables.declarations import Table

DUPLICATES = {
    DROPPED_AS_IDENTICAL: "dropped as identical per 1,000 records",
    DROPPED_AS_OLDER: "dropped as older per 1,000 records",
    KEYS_ARE_UNIQUE: "duplicates kept per 1,000 rows",
}
"""What becomes of landed duplicates, in words, by the finding that counts them."""


@dataclass(frozen=True)
class Lag:
    """How far the watermark of a table lags.

    Attributes:
        next_key: the watermark: the first partition still to be processed.
        last_key: the last partition that there can be by now.
        behind: from the beginning of the one to the end of the other: days, or buckets of a table
            of buckets; 0 if the watermark is beyond it.
        unit: `days` or `buckets`.
    """

    next_key: str
    last_key: str
    behind: float
    unit: str


def measure_lag(table: Table, watermark: Watermark, last_key: str) -> Lag:
    """Measures how far the watermark lags behind the end of the last partition.

    Args:
        table: the table.
        watermark: of it.
        last_key: by time, the last partition of its asset, which ends with `BACKFILL_END` or now;
            of buckets, the last that anything landed for.
    """
    grain = table.grain
    reached, last = grain.find_start(watermark.next_key), grain.find_start(last_key)
    (reached_at, _), (_, end) = map(grain.find_times, (reached, last))
    if grain.cron:
        assert isinstance(end, dt.date)
        assert isinstance(reached_at, dt.date)
        behind = (find_moment(end) - find_moment(reached_at)) / DAY
    else:
        behind = float(grain.find_number(grain.find_end(last)) - grain.find_number(reached))
    unit = "days" if grain.cron else "partitions" if grain.is_named else "buckets"
    return Lag(watermark.next_key, last_key, max(behind, 0.0), unit)


@dataclass(frozen=True)
class TableHealth:
    """How one table is doing.

    Attributes:
        table: `layer/name`.
        published: partitions.
        failed: partitions that Dagster shows failed: withheld, or their step ended before them.
        duplicates: the most of any published partition, by the names of `DUPLICATES`; without those
            that no commit tells, as of older ones.
        lag: of its watermark; None if no incremental run has processed it.
        fault: why this can't be told, all of it then being 0; empty if it can.
    """

    table: str
    published: int = 0
    failed: int = 0
    duplicates: Mapping[str, float] = field(default_factory=dict)
    lag: Lag | None = None
    fault: str = ""


def describe_tables(
    catalog: Catalog, instance: DagsterInstance, lakehouse: LakehouseResource
) -> list[TableHealth]:
    """Describes each table of a catalog as it is now."""
    watermarks = read_watermarks(lakehouse.warehouse())
    found: list[TableHealth] = []
    for table in catalog.tables:
        try:
            watermark = watermarks.get(table.key)
            found.append(_describe_table(catalog, instance, lakehouse, table, watermark))
        except BackfillError as error:  # of one table; the others are described
            found.append(TableHealth(table.key, fault=str(error)))
    return found


def _describe_table(
    catalog: Catalog,
    instance: DagsterInstance,
    lakehouse: LakehouseResource,
    table: Table,
    watermark: Watermark | None,
) -> TableHealth:
    log = read_log(lakehouse.warehouse(), table)
    last = _find_last_key(catalog, table, lakehouse.landing_root) if watermark else ""
    return TableHealth(
        table.key,
        len(log.publishes),
        _count_failed(instance, table),
        _find_duplicates(log),
        measure_lag(table, watermark, last) if watermark and last else None,
    )


def _find_last_key(catalog: Catalog, table: Table, landing_root: str) -> str:
    """Finds the last partition that there can be by now; of buckets the last that landed.

    Of buckets that read others it is the last that landed for these.
    """
    keys = find_partitions_def(table).get_partition_keys()
    if table.grain.cron or table.grain == WHOLE:
        return keys[-1] if keys else ""
    if not table.is_published:
        return max(read_log(catalog.warehouse, table).count_rows(), default="")
    recipe = catalog.recipes[table.key]
    if recipe.landing is None:
        return max(
            (
                _find_last_key(catalog, read, landing_root)
                for read in recipe.inputs
                if read.grain != WHOLE
            ),
            default="",
        )
    listing = list_landing(recipe, landing_root, build_partitions(table, keys))
    missing = {partition.key for partition in listing.missing} if listing else set(keys)
    return max((key for key in keys if key not in missing), default="")


def _count_failed(instance: DagsterInstance, table: Table) -> int:
    partitions_def = find_partitions_def(table)
    keys = partitions_def.get_partition_keys()
    statuses = instance.get_status_by_partition(find_asset_key(table), keys, partitions_def) or {}
    return sum(status is AssetPartitionStatus.FAILED for status in statuses.values())


def _find_duplicates(log: TableLog) -> dict[str, float]:
    found: dict[str, float] = {}
    for publish in log.publishes.values():
        for finding in read_result(publish).verdict.findings.get(Check.VALID, ()):
            if finding.rule in DUPLICATES and finding.value is not None:
                found[finding.rule] = max(finding.value, found.get(finding.rule, 0.0))
    return found
