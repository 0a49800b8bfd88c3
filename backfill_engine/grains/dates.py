"""What grains of a DATE column have in common."""

import datetime as dt

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
