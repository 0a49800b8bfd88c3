"""ISO weeks."""

import datetime as dt
from dataclasses import dataclass

from backfill_engine.grains.dates import DateGrain
from backfill_engine.grains.days import DAYS

_DAYS_BEFORE_EPOCH = 3  # 1970-01-01 was a Thursday


@dataclass(frozen=True)
class Weekly(DateGrain):
    """One partition a week, from its Monday on, which the column holds."""

    peers = "all weeks"
    cron = "0 0 * * 1"

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
