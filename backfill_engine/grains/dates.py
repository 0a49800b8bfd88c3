"""Grains of a DATE column: days, weeks and months."""

import datetime as dt
from collections.abc import Hashable
from dataclasses import dataclass

from backfill_engine.grains.grain import Grain


class DateGrain(Grain[dt.date]):
    """Partitions of whole days (UTC), called by their first: `2013-01-31`."""

    column_types = ("DATE",)
    key_format = "%Y-%m-%d"
    landing_format = "year=%Y/month=%m/day=%d"
    landing_start = "make_date(year, month, day)"

    def find_start(self, key: str) -> dt.date:
        """Finds the partition's first day."""
        return dt.date.fromisoformat(key)

    def find_key(self, start: dt.date) -> str:
        """Writes the first day as `2013-01-31`."""
        return start.isoformat()

    def is_over(self, start: dt.date, day: dt.date) -> bool:
        """Tells whether the partition's last day is before `day`."""
        return self.find_end(start) <= day


_EPOCH = dt.date(1970, 1, 1).toordinal()


@dataclass(frozen=True)
class Daily(DateGrain):
    """One partition a day. Numbers count from 1970-01-01."""

    peers = "the same weekday"
    cron = "0 0 * * *"

    def find_first(self, value: dt.date) -> dt.date:
        """Returns the day."""
        return value

    def find_end(self, start: dt.date) -> dt.date:
        """Finds the next day."""
        return start + dt.timedelta(days=1)

    def find_number(self, value: dt.date) -> int:
        """Counts the days since 1970-01-01."""
        return value.toordinal() - _EPOCH

    def number_sql(self, column: str) -> str:
        """Builds the SQL that counts the days since 1970-01-01."""
        return f"unix_date(`{column}`)"

    def find_peer_group(self, start: dt.date) -> Hashable:
        """Finds the weekday."""
        return start.weekday()

    def __str__(self) -> str:
        return "days"


DAYS = Daily()


_DAYS_BEFORE_EPOCH = 3  # 1970-01-01 was a Thursday


@dataclass(frozen=True)
class Weekly(DateGrain):
    """One partition a week, from its Monday on, which the column holds."""

    peers = "all weeks"
    cron = "0 0 * * 1"

    def find_first(self, value: dt.date) -> dt.date:
        """Finds the Monday."""
        return value - dt.timedelta(days=value.weekday())

    def find_end(self, start: dt.date) -> dt.date:
        """Finds the next Monday."""
        return start + dt.timedelta(weeks=1)

    def find_number(self, value: dt.date) -> int:
        """Counts the weeks since that of 1970-01-01."""
        return (DAYS.find_number(value) + _DAYS_BEFORE_EPOCH) // 7

    def number_sql(self, column: str) -> str:
        """Builds the SQL that counts the weeks since that of 1970-01-01."""
        return f"floor(({DAYS.number_sql(column)} + {_DAYS_BEFORE_EPOCH}) / 7)"

    def __str__(self) -> str:
        return "weeks"


WEEKS = Weekly()


@dataclass(frozen=True)
class Monthly(DateGrain):
    """One partition a month, of which the column holds the first day."""

    peers = "all months"
    cron = "0 0 1 * *"
    landing_format = "year=%Y/month=%m"
    landing_start = "make_date(year, month, 1)"

    def find_first(self, value: dt.date) -> dt.date:
        """Finds the first day of the month."""
        return value.replace(day=1)

    def find_end(self, start: dt.date) -> dt.date:
        """Finds the first day of the next month."""
        return (start + dt.timedelta(days=31)).replace(day=1)

    def find_number(self, value: dt.date) -> int:
        """Counts the months since January 1970."""
        return (value.year - 1970) * 12 + value.month - 1

    def number_sql(self, column: str) -> str:
        """Builds the SQL that counts the months since January 1970."""
        return f"(year(`{column}`) - 1970) * 12 + month(`{column}`) - 1"

    def __str__(self) -> str:
        return "months"


MONTHS = Monthly()
