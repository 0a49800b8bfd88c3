"""Calendar days."""

import datetime as dt
from collections.abc import Hashable
from dataclasses import dataclass

from backfill_engine.grains.dates import DateGrain

_EPOCH = dt.date(1970, 1, 1).toordinal()


@dataclass(frozen=True)
class Daily(DateGrain):
    """One partition a day. Numbers count from 1970-01-01."""

    peers = "the same weekday"
    cron = "0 0 * * *"

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
