"""How far a table's watermark lags behind the last partition that there can be by now."""

import datetime as dt
from dataclasses import dataclass

from backfill_engine.health.lateness import find_moment
from backfill_engine.lake.watermarks import Watermark
from backfill_engine.tables.declarations import Table

_DAY_SECONDS = 86_400


@dataclass(frozen=True)
class Lag:
    """Of one table.

    Attributes:
        table: `layer/name`.
        next_key: the watermark: the first partition still to be processed.
        last_key: the last partition that there can be by now.
        behind: from the beginning of the one to the end of the other: days, or buckets of a table
            of buckets; 0 if the watermark is beyond it.
        unit: `days` or `buckets`.
        moved_at: when a run moved the watermark last, UTC.
    """

    table: str
    next_key: str
    last_key: str
    behind: float
    unit: str
    moved_at: dt.datetime


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
    end = grain.find_end(last)
    if grain.cron:
        assert isinstance(end, dt.date)
        assert isinstance(reached, dt.date)
        behind = (find_moment(end) - find_moment(reached)).total_seconds() / _DAY_SECONDS
    else:
        behind = float(grain.find_number(end) - grain.find_number(reached))
    return Lag(
        table=table.key,
        next_key=watermark.next_key,
        last_key=last_key,
        behind=max(behind, 0.0),
        unit="days" if grain.cron else "buckets",
        moved_at=watermark.moved_at,
    )
