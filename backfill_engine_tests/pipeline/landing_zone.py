"""A small landing zone whose days are alike, and the ways in which a day can be bad."""

import datetime as dt
import gzip
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

Flight: TypeAlias = dict[str, Any]

FLIGHTS_A_DAY = 120
LANDING_LATER = 2
"""So many of a day's flights land on the day after."""

_CARRIERS, _ORIGINS = ("AA", "B6", "DL", "UA"), ("EWR", "JFK", "LGA")
_DISTANCES = (187, 400, 544, 944, 1096, 1598, 2475)


@dataclass(frozen=True)
class LandingZone:
    """Folders by landing day below `root`, as the project reads them."""

    root: Path

    def path(self, day: str) -> Path:
        """The one file of a landing day (YYYY-MM-DD)."""
        year, month, of_month = day.split("-")
        folder = f"year={year}/month={month}/day={of_month}"
        return self.root / "flights" / folder / "flights.json.gz"

    def land(self, days: Iterable[str]) -> None:
        """Lands what each of `days` brings: its own flights, and the late ones of the day before.

        The same bytes each time.
        """
        for day in days:
            self.write(day, map(json.dumps, build_landed(day)))

    def change(self, day: str, change: Callable[[Flight], Mapping[str, Any]]) -> None:
        """Lands a day with each record changed."""
        self.write(day, (json.dumps(change(flight)) for flight in build_landed(day)))

    def add_lines(self, day: str, *lines: str) -> None:
        """Lands a day with more lines behind its own."""
        self.write(day, [*map(json.dumps, build_landed(day)), *lines])

    def add_flights(self, day: str, *flight_days: str) -> None:
        """Lands, with a day's own, a flight of each of these days that nobody has reported yet."""
        late = [{**build_flights(of)[0], "flight": 9000} for of in flight_days]
        self.add_lines(day, *map(json.dumps, late))

    def truncate(self, day: str) -> None:
        """Lands a day whose file breaks off, as of an upload that died."""
        self.land([day])
        path = self.path(day)
        path.write_bytes(path.read_bytes()[:-200])

    def remove(self, day: str) -> None:
        """Takes a day's file away."""
        self.path(day).unlink()

    def write(self, day: str, lines: Iterable[str]) -> None:
        """Replaces a day's file."""
        path = self.path(day)
        path.parent.mkdir(parents=True, exist_ok=True)
        text = "".join(f"{line}\n" for line in lines)
        path.write_bytes(gzip.compress(text.encode(), mtime=0))


def delay(flight: Flight, minutes: int = 7) -> Flight:
    """A change that no rule withholds: whatever arrives is so late."""
    if flight["arr_time"] is None:
        return flight
    return {**flight, "arr_delay": minutes, "arr_time": _add_minutes(12, 0, minutes)}


def double_distance(flight: Flight) -> Flight:
    """As if planes flew twice as far, and longer: valid values, but another distribution."""
    far = {**flight, "distance": 2 * flight["distance"]}
    if flight["air_time"] is not None:
        far["air_time"] += flight["distance"] // 8
    return far


def build_landed(day: str) -> list[Flight]:
    """What lands on a day."""
    before = dt.date.fromisoformat(day) - dt.timedelta(days=1)
    late = build_flights(before.isoformat())[-LANDING_LATER:] if before.year == 2013 else []
    return [*late, *build_flights(day)[:-LANDING_LATER]]


def build_flights(day: str) -> list[Flight]:
    """The flights of one day: the same every day, spread over what the rules look at."""
    date = dt.date.fromisoformat(day)
    return [_build_flight(date, number) for number in range(FLIGHTS_A_DAY)]


def _add_minutes(hour: int, minute: int, more: int) -> int:
    """A time HHMM."""
    hours, minutes = divmod(60 * hour + minute + more, 60)
    return 100 * hours + minutes


def _build_flight(day: dt.date, number: int) -> Flight:
    hour, minute = 6 + number % 16, number % 60
    distance = _DISTANCES[number % 7]
    cancelled = number == 0
    delay, air_time = number % 40 - 10, 20 + distance // 8
    return {
        "year": day.year,
        "month": day.month,
        "day": day.day,
        "dep_time": None if cancelled else _add_minutes(hour, minute, delay),
        "sched_dep_time": 100 * hour + minute,
        "dep_delay": None if cancelled else delay,
        "arr_time": None if cancelled else _add_minutes(12, 0, delay - 5),
        "sched_arr_time": 1200,
        "arr_delay": None if cancelled else delay - 5,
        "carrier": _CARRIERS[number % 4],
        "flight": 100 + number,
        "tailnum": f"N{number:05}",
        "origin": _ORIGINS[number % 3],
        "dest": "ORD",
        "air_time": None if cancelled else air_time,
        "distance": distance,
        "hour": hour,
        "minute": minute,
        "time_hour": f"{day}T{hour + 2:02}:00:00Z",
    }
