"""Partition definitions and mappings, as Dagster knows them."""

import datetime as dt
import warnings
from functools import cache

from dagster import (
    AssetKey,
    BetaWarning,
    IdentityPartitionMapping,
    MultiPartitionsDefinition,
    MultiToSingleDimensionPartitionMapping,
    PartitionMapping,
    PartitionsDefinition,
    StaticPartitionMapping,
    StaticPartitionsDefinition,
    TimeWindowPartitionMapping,
    TimeWindowPartitionsDefinition,
)

from backfill_engine.errors import DeclarationError
from backfill_engine.grains.grain import Grain
from backfill_engine.grains.names import Pairs
from backfill_engine.lake.partitions import build_partitions, list_overlapping
from backfill_engine.tables.declarations import LANDING, Calendar, Table


@cache
def build_partitions_def(
    grain: Grain, first_day: dt.date, end: dt.date | None
) -> PartitionsDefinition:
    """Builds the partitions of a grain from a day to the last before the end, or of all key space.

    Tables of the same grain and days share them, so that Dagster backfills them in one run.
    """
    if isinstance(grain, Pairs):
        times, names = (
            build_partitions_def(part, first_day, end) for part in (grain.times, grain.names)
        )
        return MultiPartitionsDefinition(dict(zip(grain.labels, (times, names), strict=True)))
    if not grain.cron:
        return StaticPartitionsDefinition(grain.list_keys())
    return TimeWindowPartitionsDefinition(
        start=first_day.strftime(grain.key_format),
        end=end.strftime(grain.key_format) if end else None,
        fmt=grain.key_format,
        cron_schedule=grain.cron,
        timezone=grain.time_zone,
    )


def find_partitions_def(table: Table) -> PartitionsDefinition:
    """Finds the partitions of a table's asset.

    Args:
        table: of a catalog.
    """
    calendar = _find_calendar(table)
    return build_partitions_def(table.grain, calendar.first, calendar.end)


def find_feed_begin(table: Table) -> str:
    """Finds the key of the first partition of a table that is no history.

    Args:
        table: of a catalog.
    """
    if not table.grain.cron:
        return table.grain.list_keys()[0]
    calendar = _find_calendar(table)
    partitions_def = build_partitions_def(table.grain, calendar.begin, calendar.end)
    first = partitions_def.get_first_partition_key()
    assert first is not None
    return first


def _find_calendar(table: Table) -> Calendar:
    if table.calendar is None:
        raise DeclarationError(f"{table.key} has no calendar: take the table from a catalog")
    return table.calendar


def map_offsets(*, start: int = 0, end: int = 0) -> TimeWindowPartitionMapping:
    """Maps a time to the upstream partitions from `start` to `end`, offsets in its own unit.

    As far as the data reaches back, or has come.
    """
    return TimeWindowPartitionMapping(
        start_offset=start, end_offset=end, allow_nonexistent_upstream_partitions=True
    )


def map_overlap(table: Table, read: Table) -> PartitionMapping:
    """Maps each partition of a table to those of another that hold any of its values.

    Args:
        table: of a catalog.
        read: likewise; partitioned by time if `table` is, and else by integers.
    """
    if table.grain.slug == read.grain.slug:
        return IdentityPartitionMapping()
    for pairs in (table.grain, read.grain):
        if isinstance(pairs, Pairs):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", BetaWarning)
                return MultiToSingleDimensionPartitionMapping(pairs.labels[0])
    if table.grain.cron:
        return map_offsets()
    downstream: dict[str, list[str]] = {}
    known = set(read.grain.list_keys())
    for partition in build_partitions(table, table.grain.list_keys()):
        for other in list_overlapping(read, partition):
            if other.key in known:
                downstream.setdefault(other.key, []).append(partition.key)
    return StaticPartitionMapping(downstream)


def find_asset_key(table: Table) -> AssetKey:
    """Finds the key of a table's asset."""
    return AssetKey.from_user_string(table.key)


def find_landing_key(table: Table) -> AssetKey:
    """Finds the key of the asset that stands for what a table reads of the landing zone."""
    path = find_asset_key(table).path
    return AssetKey([*path[:-2], LANDING, path[-1]])
