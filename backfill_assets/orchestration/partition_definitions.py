"""Partition definitions and mappings, as Dagster knows them.

Read from the environment here, once: Dagster fixes the partitions of a code location when it loads
it.
"""

from functools import cache

from dagster import (
    PartitionsDefinition,
    StaticPartitionsDefinition,
    TimeWindowPartitionMapping,
    TimeWindowPartitionsDefinition,
)

from backfill_assets.grains.grain import Grain
from backfill_assets.settings import read_settings
from backfill_assets.tables.declarations import Table
from backfill_assets.tables.flights import LANDING_DAYS, WINDOW_DAYS

_settings = read_settings()

FIRST_DAY = _settings.begin
"""Nothing is older than this day."""


@cache
def build_partitions_def(grain: Grain) -> PartitionsDefinition:
    """The partitions of a grain, from the first day to the last, or over all of the key space.

    Tables of the same grain share them, so that Dagster backfills them in one run.
    """
    if not grain.cron:
        return StaticPartitionsDefinition(grain.list_keys())
    begin, end = _settings.begin, _settings.end
    return TimeWindowPartitionsDefinition(
        start=begin.strftime(grain.key_format),
        end=end.strftime(grain.key_format) if end else None,
        fmt=grain.key_format,
        cron_schedule=grain.cron,
    )


def find_partitions_def(table: Table) -> PartitionsDefinition:
    """The partitions of a table's asset, without importing the assets."""
    return build_partitions_def(table.grain)


def build_window(*, start: int = 0, end: int = 0) -> TimeWindowPartitionMapping:
    """Maps a day or hour to those from `start` to `end` upstream, offsets in its own unit.

    As far as the data reaches back, or has come.
    """
    return TimeWindowPartitionMapping(
        start_offset=start, end_offset=end, allow_nonexistent_upstream_partitions=True
    )


landing_window = build_window(end=LANDING_DAYS - 1)
"""A flight's records land on its day or in the two days after."""

trailing_week = build_window(start=1 - WINDOW_DAYS)
"""Day D needs D-6 … D, as far as the data reaches back."""
