"""What grains of a TIMESTAMP column have in common."""

import datetime as dt
from collections.abc import Hashable

from backfill_assets.grains.grain import Grain

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_MINUTE = dt.timedelta(minutes=1)


class TimestampGrain(Grain[dt.datetime]):
    """Partitions of a part of a day (UTC), all as long. Keys as `2013-01-31-05:15`.

    Numbers count from 1970. A table has a folder a day, so that files aren't tiny.

    Attributes:
        minutes: of a partition; a day has a whole number of them.
    """

    column_types = ("TIMESTAMP",)
    peers = "the same time of day"
    in_daily_folders = True
    key_format = "%Y-%m-%d-%H:%M"

    minutes: int

    def find_start(self, key: str) -> dt.datetime:
        """The partition's first moment."""
        return dt.datetime.strptime(key, self.key_format).replace(tzinfo=dt.UTC)

    def find_end(self, start: dt.datetime) -> dt.datetime:
        """The first moment after the partition that begins with `start`."""
        return start + self.minutes * _MINUTE

    def find_key(self, start: dt.datetime) -> str:
        """Day and time of its first moment."""
        return start.strftime(self.key_format)

    def find_number(self, value: dt.datetime) -> int:
        """How many whole partitions lie between 1970-01-01 00:00 UTC and `value`."""
        return (value - _EPOCH) // (self.minutes * _MINUTE)

    def number_sql(self, column: str) -> str:
        """How many whole partitions lie between 1970-01-01 00:00 UTC and the column's value."""
        return f"floor(unix_seconds(`{column}`) / {60 * self.minutes})"

    def find_peer_group(self, start: dt.datetime) -> Hashable:
        """The time of the day."""
        return start.time()

    def is_over(self, start: dt.datetime, day: dt.date) -> bool:
        """Whether it ends before `day` begins."""
        return self.find_end(start) <= dt.datetime.combine(day, dt.time(), dt.UTC)
