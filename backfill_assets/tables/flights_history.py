"""The history of the flights: two years before the feed, a file a month, with fewer columns.

`backfill-assets sample flights --history 2011,2012` lands it. It is synthetic: the flights of 2013,
moved to these years.
"""

import datetime as dt

from backfill_engine import CsvFiles, DatePart, HistoricalLoad, Origin

HISTORY_FOLDER = "flights_history"

HISTORY_FILE = f"{HISTORY_FOLDER}/{{partition:%Y}}/synthetic_flights_{{partition:%Y-%m}}.csv"

_FIELDS: tuple[tuple[str, Origin], ...] = (
    ("year", DatePart("date", "year")),
    ("month", DatePart("date", "month")),
    ("day", DatePart("date", "day")),
    ("dep_time", "departed"),
    ("sched_dep_time", "departure"),
    ("dep_delay", "departure_delay"),
    ("arr_delay", "arrival_delay"),
    ("carrier", "airline"),
    ("flight", "number"),
    ("tailnum", "plane"),
    ("origin", "from"),
    ("dest", "to"),
    ("air_time", "minutes_in_air"),
    ("distance", "miles"),
    ("hour", "departure_hour"),
    ("minute", "departure_minute"),
    ("time_hour", "departure_hour_utc"),
)


def _build_flow(year: int) -> HistoricalLoad:
    files = CsvFiles(HISTORY_FILE, where="date", origins=_FIELDS, delimiter=";")
    return HistoricalLoad(f"flights_{year}", files, dt.date(year, 1, 1), dt.date(year + 1, 1, 1))


FLIGHTS_HISTORY = (_build_flow(2011), _build_flow(2012))
