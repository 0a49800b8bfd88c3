"""Partition definitions and mappings, as Dagster knows them.

The environment is read once: Dagster fixes the partitions of a code location when it loads it.
"""

import datetime as dt
from collections.abc import Mapping, Sequence
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


@cache
def find_first_day(key: str) -> dt.date:
    """Finds the first day of a table's partitions of time, by its key; nothing is older.

    It is where the history begins that is active here, of a table that has any; of what is computed
    from others, where the last of them begins; else that of the feed.
    """
    feed_begin = read_settings().begin
    begins = {key: history.begin for key, history in list_histories().items()}
    if not begins:
        return feed_begin
    # What reads what is declared with the assets, which are dear to import and stand above.
    from backfill_assets.pipelines import list_table_assets

    inputs = {
        asset.table.key: [upstream.table.key for upstream in asset.inputs]
        for asset in list_table_assets()
    }
    return compute_first_day(key, begins, inputs, feed_begin=feed_begin)


def compute_first_day(
    key: str,
    begins: Mapping[str, dt.date],
    inputs: Mapping[str, Sequence[str]],
    *,
    feed_begin: dt.date,
) -> dt.date:
    """Computes the first day of a table from what it reads.

    Args:
        key: of the table.
        begins: first days of the tables with a history, by their keys.
        inputs: keys of the tables that each reads, by its key.
        feed_begin: the first day of whatever lands daily.
    """
    if key in begins:
        return begins[key]
    read = (
        compute_first_day(one, begins, inputs, feed_begin=feed_begin) for one in inputs.get(key, ())
    )
    return max(read, default=feed_begin)


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
    return build_partitions_def(table.grain, find_first_day(table.key))


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
