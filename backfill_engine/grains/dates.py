"""Grains of days: days, also written as text or integer, weeks, months, quarters and years."""

import datetime as dt
import re
from collections.abc import Hashable
from dataclasses import dataclass
from typing import ClassVar, Literal
from zoneinfo import ZoneInfo

from backfill_engine.grains.grain import Grain


class DateGrain(Grain[dt.date]):
    """Partitions of whole days (UTC), called by their first: `2013-01-31`."""

    column_types: tuple[str, ...] = ("DATE",)
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


_WRITTEN = re.compile("%Y([-_.]?)%m\\1%d")


@dataclass(frozen=True)
class Days(Daily):
    """One partition a day, written as a text or an integer, as `20130131`, or of a time zone.

    All else is as of `DAYS`: keys as `2013-01-31`, bounds that are dates.

    Attributes:
        format: of the column's values, as `strftime` takes it; of a DATE `%Y-%m-%d`.
        type: of the column.
        time_zone: in which a day begins, as `America/New_York`; the column holds the day there.

    Raises:
        ValueError: if values of the format don't sort as days do, or aren't of the type; if there
            is no such time zone, or nothing differs from `DAYS`.
    """

    format: str = "%Y-%m-%d"
    type: Literal["STRING", "INT", "DATE"] = "STRING"
    time_zone: str = "UTC"

    bound_type: ClassVar[str] = "DATE"  # type: ignore[override]

    def __post_init__(self) -> None:
        written = _WRITTEN.fullmatch(self.format)
        if not written:
            raise ValueError(f"no days as {self.format}: write %Y-%m-%d, %Y%m%d or the like")
        fits = {"STRING": True, "INT": not written[1], "DATE": written[1] == "-"}
        if not fits.get(self.type):
            raise ValueError(f"no days as {self.format} are {self.type}: write type='STRING'")
        try:
            ZoneInfo(self.time_zone)
        except (KeyError, ValueError, OSError):
            raise ValueError(
                f"there is no time zone {self.time_zone}: write America/New_York"
            ) from None
        if self.type == "DATE" and self.time_zone == "UTC":
            raise ValueError("these are DAYS: write grain=DAYS, or give a time_zone")

    @property
    def column_types(self) -> tuple[str, ...]:  # type: ignore[override]
        """The column's type alone."""
        return (self.type,)

    @property
    def slug(self) -> str:
        """That of `DAYS`, which have the same partitions; those of a time zone are others."""
        zone = "" if self.time_zone == "UTC" else f" {self.time_zone}"
        return re.sub(r"\W", "_", f"{DAYS.slug}{zone}")

    def find_times(self, start: dt.date) -> tuple[dt.datetime, dt.datetime]:
        """Finds when the day begins and ends, UTC: after 23 to 25 hours where the clock changes."""
        zone = ZoneInfo(self.time_zone)
        begin, end = (
            dt.datetime.combine(day, dt.time(), zone) for day in (start, self.find_end(start))
        )
        return begin.astimezone(dt.UTC), end.astimezone(dt.UTC)

    def is_over(self, start: dt.date, day: dt.date) -> bool:
        """Tells whether it has ended in its time zone when `day` begins in UTC."""
        return self.find_times(start)[1] <= dt.datetime.combine(day, dt.time(), dt.UTC)

    def find_stored(self, value: dt.date) -> str | int | dt.date:
        """Writes the day."""
        if self.type == "DATE":
            return value
        text = value.strftime(self.format)
        return int(text) if self.type == "INT" else text

    def find_value(self, stored: str) -> dt.date:
        """Reads the day."""
        day = dt.datetime.strptime(stored, self.format).replace(tzinfo=dt.UTC).date()
        if str(self.find_stored(day)) != stored:
            raise ValueError(f"{stored} is no day as {self.format}")
        return day

    def stored_sql(self, value: str) -> str:
        """Builds the SQL that writes a day."""
        if self.type == "DATE":
            return value
        return f"CAST(date_format({value}, '{self._pattern}') AS {self.type})"

    def number_sql(self, column: str) -> str:
        """Builds the SQL that counts the days since 1970-01-01; null where it is no day."""
        if self.type == "DATE":
            return DAYS.number_sql(column)
        moment = f"try_to_timestamp(CAST(`{column}` AS STRING), '{self._pattern}')"
        return f"unix_date(CAST({moment} AS DATE))"

    @property
    def _pattern(self) -> str:
        """The format in Spark's words."""
        return self.format.replace("%Y", "yyyy").replace("%m", "MM").replace("%d", "dd")

    def __str__(self) -> str:
        written = "" if self.type == "DATE" else f" as {self.format}"
        return f"days{written}{'' if self.time_zone == 'UTC' else f' of {self.time_zone}'}"


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

    def first_sql(self, value: str) -> str:
        """Builds the SQL for the Monday."""
        return f"trunc({value}, 'week')"

    def __str__(self) -> str:
        return "weeks"


WEEKS = Weekly()


_UNITS = {1: "month", 3: "quarter", 12: "year"}
"""By a number of months, what Spark calls them."""


class _MonthGrain(DateGrain):
    """One partition for each `months` from January on, of which the column holds the first day."""

    landing_format = "year=%Y/month=%m"
    landing_start = "make_date(year, month, 1)"
    months: ClassVar[int]

    def find_first(self, value: dt.date) -> dt.date:
        """Finds the first day of the partition."""
        return value.replace(month=value.month - (value.month - 1) % self.months, day=1)

    def find_end(self, start: dt.date) -> dt.date:
        """Finds the first day of the next partition."""
        years, month = divmod(start.month - 1 + self.months, 12)
        return dt.date(start.year + years, month + 1, 1)

    def find_number(self, value: dt.date) -> int:
        """Counts the partitions since January 1970."""
        return ((value.year - 1970) * 12 + value.month - 1) // self.months

    def number_sql(self, column: str) -> str:
        """Builds the SQL that counts the partitions since January 1970."""
        months = f"(year(`{column}`) - 1970) * 12 + month(`{column}`) - 1"
        return months if self.months == 1 else f"floor(({months}) / {self.months})"

    def first_sql(self, value: str) -> str:
        """Builds the SQL for the first day of the partition."""
        return f"trunc({value}, '{_UNITS[self.months]}')"


@dataclass(frozen=True)
class Monthly(_MonthGrain):
    """One partition a month."""

    peers = "all months"
    cron = "0 0 1 * *"
    months = 1

    def __str__(self) -> str:
        return "months"


MONTHS = Monthly()


@dataclass(frozen=True)
class Quarterly(_MonthGrain):
    """One partition a quarter, which lands in the folder of its first month."""

    peers = "the same quarter"
    cron = "0 0 1 1,4,7,10 *"
    months = 3

    def find_peer_group(self, start: dt.date) -> Hashable:
        """Finds the quarter of the year."""
        return start.month

    def __str__(self) -> str:
        return "quarters"


QUARTERS = Quarterly()


@dataclass(frozen=True)
class Yearly(_MonthGrain):
    """One partition a year, which lands in the folder of its January."""

    peers = "all years"
    cron = "0 0 1 1 *"
    months = 12

    def __str__(self) -> str:
        return "years"


YEARS = Yearly()
