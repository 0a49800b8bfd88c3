"""Calendar months."""

import datetime as dt
from dataclasses import dataclass

from backfill_engine.grains.dates import DateGrain


@dataclass(frozen=True)
class Monthly(DateGrain):
    """One partition a month, of which the column holds the first day."""

    peers = "all months"
    cron = "0 0 1 * *"
    landing_format = "year=%Y/month=%m"
    landing_start = "make_date(year, month, 1)"

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
