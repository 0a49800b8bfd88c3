"""Grains of a TIMESTAMP column: hours and minutes."""

import datetime as dt
from collections.abc import Hashable
from dataclasses import dataclass, field
from functools import lru_cache

from backfill_engine.grains.grain import Grain

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
        """Finds the partition's first moment."""
        return _parse(key, self.key_format)

    def find_first(self, value: dt.datetime) -> dt.datetime:
        """Finds the moment from which on the partition counts."""
        return _EPOCH + self.find_number(value) * self.minutes * _MINUTE

    def find_end(self, start: dt.datetime) -> dt.datetime:
        """Finds the first moment after the partition that begins with `start`."""
        return start + self.minutes * _MINUTE

    def find_key(self, start: dt.datetime) -> str:
        """Writes day and time of the partition's first moment."""
        return start.strftime(self.key_format)

    def find_number(self, value: dt.datetime) -> int:
        """Counts the whole partitions between 1970-01-01 00:00 UTC and `value`."""
        return (value - _EPOCH) // (self.minutes * _MINUTE)

    def number_sql(self, column: str) -> str:
        """Builds the SQL that counts the whole partitions up to the column's value.

        They count from 1970-01-01 00:00 UTC.
        """
        return f"floor(unix_seconds(`{column}`) / {60 * self.minutes})"

    def find_peer_group(self, start: dt.datetime) -> Hashable:
        """Finds the time of the day."""
        return start.time()

    def is_over(self, start: dt.datetime, day: dt.date) -> bool:
        """Tells whether the partition has ended when `day` begins."""
        return self.find_end(start) <= dt.datetime.combine(day, dt.time(), dt.UTC)


@lru_cache(maxsize=2**14)  # A run asks for each start several times: of more than a year of hours.
def _parse(key: str, key_format: str) -> dt.datetime:
    return dt.datetime.strptime(key, key_format).replace(tzinfo=dt.UTC)


@dataclass(frozen=True)
class Hourly(TimestampGrain):
    """One partition an hour. Keys as `2013-01-31-05:00`."""

    peers = "the same hour of the day"
    cron = "0 * * * *"
    minutes = 60
    landing_format = "year=%Y/month=%m/day=%d/hour=%H"
    landing_start = "make_timestamp(year, month, day, hour, 0, 0)"

    def __str__(self) -> str:
        return "hours"


HOURS = Hourly()


# What cron can say: parts of an hour, and hours that are part of a day.
_CHOICES = tuple(n for n in range(1, 24 * 60) if 60 % n == 0 or (n % 60 == 0 and 24 * 60 % n == 0))


@dataclass(frozen=True)
class Minutes(TimestampGrain):
    """One partition for each `minutes`, counted from midnight (UTC). Keys as `2013-01-31-05:15`.

    Raises:
        ValueError: if they neither divide an hour nor are whole hours that divide a day.
    """

    minutes: int
    cron: str = field(init=False, repr=False)

    landing_format = "year=%Y/month=%m/day=%d/hour=%H/minute=%M"
    landing_start = "make_timestamp(year, month, day, hour, minute, 0)"

    def __post_init__(self) -> None:
        if self.minutes not in _CHOICES:
            raise ValueError(f"no partitions of {self}: choose of {', '.join(map(str, _CHOICES))}")
        hours = self.minutes // 60
        cron = f"0 */{hours} * * *" if hours else f"*/{self.minutes} * * * *"
        object.__setattr__(self, "cron", cron)

    def __str__(self) -> str:
        return f"{self.minutes} minutes"
