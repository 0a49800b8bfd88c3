"""Partition definitions and mappings, as Dagster knows them.

The environment is read once: Dagster fixes the partitions of a code location when it loads it.
"""

import datetime as dt
from functools import cache

from dagster import (
    AssetKey,
    PartitionsDefinition,
    StaticPartitionsDefinition,
    TimeWindowPartitionMapping,
    TimeWindowPartitionsDefinition,
)

from backfill_assets.catalog import list_histories
from backfill_assets.grains.grain import Grain
from backfill_assets.settings import read_settings
from backfill_assets.tables.declarations import Table


def find_first_day(table: Table) -> dt.date:
    """Finds the first day of a table's partitions of time; nothing is older.

    It is where the history begins that is active here, of the table or of the one that it begins
    with; else that of the feed.
    """
    histories, begins_with = list_histories(), table
    while begins_with is not None:
        if begins_with.key in histories:
            return histories[begins_with.key].begin
        begins_with = begins_with.begins_with
    return read_settings().begin


@cache
def build_partitions_def(grain: Grain, first_day: dt.date) -> PartitionsDefinition:
    """Builds the partitions of a grain from a day to the last one settled, or of all key space.

    Tables of the same grain and first day share them, so that Dagster backfills them in one run.
    """
    if not grain.cron:
        return StaticPartitionsDefinition(grain.list_keys())
    end = read_settings().end
    return TimeWindowPartitionsDefinition(
        start=first_day.strftime(grain.key_format),
        end=end.strftime(grain.key_format) if end else None,
        fmt=grain.key_format,
        cron_schedule=grain.cron,
    )


LANDING = "landing"
"""First part of the keys of assets that stand for what lands; no layer of tables is called so."""


def find_partitions_def(table: Table) -> PartitionsDefinition:
    """Finds the partitions of a table's asset, without importing the assets."""
    return build_partitions_def(table.grain, find_first_day(table))


def find_feed_begin(table: Table) -> str:
    """Finds the key of the first partition of a table that is no history."""
    if not table.grain.cron:
        return table.grain.list_keys()[0]
    partitions_def = build_partitions_def(table.grain, read_settings().begin)
    first = partitions_def.get_first_partition_key()
    assert first is not None
    return first


def map_offsets(*, start: int = 0, end: int = 0) -> TimeWindowPartitionMapping:
    """Maps a time to the upstream partitions from `start` to `end`, offsets in its own unit.

    As far as the data reaches back, or has come.
    """
    return TimeWindowPartitionMapping(
        start_offset=start, end_offset=end, allow_nonexistent_upstream_partitions=True
    )


def find_asset_key(table: Table) -> AssetKey:
    """Finds the key of a table's asset: `layer`, `name`."""
    return AssetKey([table.layer, table.name])


def find_landing_key(table: Table) -> AssetKey:
    """Finds the key of the asset that stands for what a table reads of the landing zone."""
    return AssetKey([LANDING, table.name])
