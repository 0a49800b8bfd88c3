"""What lands, how it changes by right, and how it is spoiled."""

import datetime as dt
import gzip
import json
import random
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.campaign.model import EMPTY_MARKER, find_day_folder

_CARRIERS, _ORIGINS = ("AA", "B6", "DL", "UA"), ("EWR", "JFK", "LGA")
_DISTANCES = (187, 400, 544, 944, 1096, 1598, 2475)
_LATE_FLIGHTS = 2


@dataclass
class LandingZone:
    """Landing folders of some days; each day has a revision, which decides its figures.

    Attributes:
        root: the landing root.
        revisions: by day.
        spoiled: days that do not hold what their revision says.
    """

    root: Path
    revisions: dict[str, int] = field(default_factory=dict)
    spoiled: set[str] = field(default_factory=set)

    def land(self, day: str) -> None:
        """Lands a day by its revision; whatever was in its folder is gone."""
        self.spoiled.discard(day)
        self.folder(day).parent.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(self.folder(day), ignore_errors=True)
        self.folder(day).mkdir()
        self.path(day).write_bytes(self.compress(day))

    def revise(self, day: str) -> None:
        """Lands a day with other figures."""
        self.revisions[day] += 1
        self.land(day)

    def mend(self) -> None:
        """Lands again what is spoiled."""
        for day in sorted(self.spoiled):
            self.land(day)

    def folder(self, day: str) -> Path:
        """Of a landing day."""
        return find_day_folder(self.root, day)

    def path(self, day: str) -> Path:
        """The file that a good day has."""
        return self.folder(day) / "flights.json.gz"

    def compress(self, day: str) -> bytes:
        """The file of a day, by its revision."""
        return gzip.compress(self.write(day).encode(), mtime=0)

    def pack(self, day: str, lines: str) -> None:
        """Replaces a day's file."""
        self.path(day).write_bytes(gzip.compress(lines.encode(), mtime=0))

    def write(self, day: str) -> str:
        """The lines of a day: its flights, one of them twice, and late ones of the day before."""
        date, revision = dt.date.fromisoformat(day), self.revisions.setdefault(day, 0)
        flights = [_build_flight(date, number, revision) for number in range(24)]
        late = []
        if date.day > 1:
            before = date - dt.timedelta(days=1)
            late = [_build_flight(before, number, revision + 1) for number in range(_LATE_FLIGHTS)]
        again = _build_flight(date, revision % 24, revision + 2)
        return "".join(json.dumps(flight) + "\n" for flight in (*flights, *late, again))


def _build_flight(day: dt.date, number: int, revision: int) -> dict[str, Any]:
    hour, minute = 6 + number % 16, number * 7 % 60
    distance = _DISTANCES[number % 7]
    cancelled = number == 0
    delay = number % 40 - 4 + revision % 5
    return {
        **{"year": day.year, "month": day.month, "day": day.day},
        "dep_time": None if cancelled else _write_time(60 * hour + minute + delay),
        "sched_dep_time": 100 * hour + minute,
        "dep_delay": None if cancelled else delay,
        "arr_time": None if cancelled else _write_time(12 * 60 + delay - 2),
        "sched_arr_time": 1200,
        "arr_delay": None if cancelled else delay - 2,
        **{"carrier": _CARRIERS[number % 4], "flight": 100 + number, "tailnum": f"N{revision:05}"},
        **{"origin": _ORIGINS[number % 3], "dest": "ORD", "distance": distance},
        "air_time": None if cancelled else 20 + distance // 8,
        **{"hour": hour, "minute": minute, "time_hour": f"{day}T{hour + 2:02}:00:00Z"},
    }


def _write_time(minutes: int) -> int:
    """Writes a time of the day as HHMM."""
    return 100 * (minutes // 60) + minutes % 60


def _hide(zone: LandingZone, day: str, name: str) -> None:
    """Moves a day's file to where a copying tool has its own, as one that died leaves it."""
    place = zone.folder(day) / name
    place.parent.mkdir(parents=True, exist_ok=True)
    zone.path(day).rename(place)


def _cut_in_two(zone: LandingZone, day: str) -> None:
    lines = zone.write(day).splitlines(keepends=True)
    (zone.folder(day) / "flights-1.json").write_text("".join(lines[:9]))
    zone.pack(day, "".join(lines[9:]))


def _mark_as_empty(zone: LandingZone, day: str) -> None:
    zone.path(day).unlink()
    (zone.folder(day) / EMPTY_MARKER).touch()


def _link(zone: LandingZone, day: str, name: str) -> None:
    (zone.folder(day) / name).unlink(missing_ok=True)
    (zone.folder(day) / name).symlink_to("/nowhere/flights.json.gz")


def _add(zone: LandingZone, day: str, name: str, content: bytes) -> None:
    (zone.folder(day) / name).write_bytes(content)


FAULTS: dict[str, Callable[[LandingZone, str], object]] = {
    "revised": lambda zone, day: None,
    "gzip cut": lambda zone, day: zone.path(day).write_bytes(zone.compress(day)[:-200]),
    "gzip of 0 bytes": lambda zone, day: zone.path(day).write_bytes(b""),
    "gzip padded": lambda zone, day: zone.path(day).write_bytes(zone.compress(day) + b"\1" * 64),
    "JSON broken": lambda zone, day: zone.pack(day, zone.write(day).replace('"AA"', "")),
    "last line broken off": lambda zone, day: zone.pack(day, zone.write(day)[:-50]),
    "only a hidden part-file": lambda zone, day: _hide(zone, day, ".flights.json.gz.Xq3f"),
    "only _temporary/": lambda zone, day: _hide(zone, day, "_temporary/0/flights.json.gz"),
    "hidden part-file beside": lambda zone, day: _add(zone, day, ".more.json.gz.Xq3f", b"{"),
    "stale .crc beside": lambda zone, day: _add(zone, day, ".flights.json.gz.crc", b"crc\0old!"),
    "odd name": lambda zone, day: zone.path(day).rename(zone.folder(day) / "fl:1[2].json.gz"),
    "only a dangling link": lambda zone, day: _link(zone, day, "flights.json.gz"),
    "dangling link beside": lambda zone, day: _link(zone, day, "more.json.gz"),
    "same file twice": lambda zone, day: _add(zone, day, "again.json.gz", zone.compress(day)),
    "same unpacked": lambda zone, day: _add(zone, day, "flights.json", zone.write(day).encode()),
    "folder removed": lambda zone, day: shutil.rmtree(zone.folder(day)),
    "folder emptied": lambda zone, day: zone.path(day).unlink(),
    "marked as empty": _mark_as_empty,
    "cut in two files": _cut_in_two,
}
"""What may become of a landing day; some of it by right."""


def spoil(zone: LandingZone, moments: random.Random, days: list[str]) -> tuple[str, str]:
    """Does one of them to a day, which may be revised by it; returns its kind and the day.

    The folder is made elsewhere and put in its place, so that a run sees no state between.
    """
    kind, day = moments.choice(list(FAULTS)), moments.choice(days)
    if kind == "revised" or moments.random() < 0.5:
        zone.revisions[day] += 1
    draft = LandingZone(zone.root.with_name("draft"), zone.revisions)
    draft.land(day)
    FAULTS[kind](draft, day)
    shutil.rmtree(zone.folder(day), ignore_errors=True)
    if draft.folder(day).is_dir():
        draft.folder(day).rename(zone.folder(day))
    if kind != "revised":
        zone.spoiled.add(day)
    return kind, day
