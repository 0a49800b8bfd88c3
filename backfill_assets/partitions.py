"""Partition definitions, and the step from Dagster's keys to half-open intervals.

Read from the environment here, once: Dagster fixes the partitions of a code location when it loads
it.
"""

import datetime as dt
from collections.abc import Sequence

from dagster import DailyPartitionsDefinition, TimeWindowPartitionMapping

from backfill_assets.lake.slices import Partition, Slice
from backfill_assets.settings import read_settings
from backfill_assets.tables.catalog import TABLES
from backfill_assets.tables.declarations import Table
from backfill_assets.tables.flights import LANDING_DAYS, WINDOW_DAYS

_settings = read_settings()

FIRST_DAY = _settings.begin
"""Nothing is older than this day."""

days = DailyPartitionsDefinition(
    start_date=_settings.begin.isoformat(),
    end_date=_settings.end.isoformat() if _settings.end else None,
)
"""One partition a UTC day. All layers share it, so that Dagster backfills them in one run."""

landing_window = TimeWindowPartitionMapping(
    start_offset=0, end_offset=LANDING_DAYS - 1, allow_nonexistent_upstream_partitions=True
)
"""A flight's records land on its day or in the two days after."""

trailing_week = TimeWindowPartitionMapping(
    start_offset=1 - WINDOW_DAYS, end_offset=0, allow_nonexistent_upstream_partitions=True
)
"""Day D needs D-6 … D, as far as the data reaches back."""


def find_partitions_def(table: Table) -> DailyPartitionsDefinition:
    """The partitions of a table's asset, without importing the assets."""
    assert table in TABLES
    return days


def build_daily_partitions(keys: Sequence[str]) -> tuple[Partition, ...]:
    """Daily keys as partitions of a DATE column, ascending."""
    starts = sorted(dt.date.fromisoformat(key) for key in keys)
    return tuple(
        Partition(start.isoformat(), Slice(start, start + dt.timedelta(days=1))) for start in starts
    )
