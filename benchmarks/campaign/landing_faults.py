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
        "year": day.year,
        "month": day.month,
        "day": day.day,
        "dep_time": None if cancelled else _write_time(60 * hour + minute + delay),
        "sched_dep_time": 100 * hour + minute,
        "dep_delay": None if cancelled else delay,
        "arr_time": None if cancelled else _write_time(12 * 60 + delay - 2),
        "sched_arr_time": 1200,
        "arr_delay": None if cancelled else delay - 2,
        "carrier": _CARRIERS[number % 4],
        "flight": 100 + number,
        "tailnum": f"N{revision:05}",
        "origin": _ORIGINS[number % 3],
        "dest": "ORD",
        "air_time": None if cancelled else 20 + distance // 8,
        "distance": distance,
        "hour": hour,
        "minute": minute,
        "time_hour": f"{day}T{hour + 2:02}:00:00Z",
    }


def _write_time(minutes: int) -> int:
    """Writes a time of the day as HHMM."""
    return 100 * (minutes // 60) + minutes % 60


def _cut_gzip(zone: LandingZone, day: str) -> None:
    zone.path(day).write_bytes(zone.compress(day)[:-200])


def _empty_gzip(zone: LandingZone, day: str) -> None:
    zone.path(day).write_bytes(b"")


def _pad_gzip(zone: LandingZone, day: str) -> None:
    zone.path(day).write_bytes(zone.compress(day) + b"\1" * 64)


def _break_lines(zone: LandingZone, day: str) -> None:
    lines = zone.write(day).replace('"carrier": "AA"', '"carrier": ').encode()
    zone.path(day).write_bytes(gzip.compress(lines, mtime=0))


def _break_off_a_line(zone: LandingZone, day: str) -> None:
    zone.path(day).write_bytes(gzip.compress(zone.write(day)[:-50].encode(), mtime=0))


def _leave_a_part_file(zone: LandingZone, day: str) -> None:
    zone.path(day).rename(zone.folder(day) / ".flights.json.gz.Xq3f")


def _leave_a_temporary_folder(zone: LandingZone, day: str) -> None:
    (zone.folder(day) / "_temporary" / "0").mkdir(parents=True)
    zone.path(day).rename(zone.folder(day) / "_temporary" / "0" / "flights.json.gz")


def _add_a_part_file(zone: LandingZone, day: str) -> None:
    (zone.folder(day) / ".more.json.gz.Xq3f").write_bytes(zone.compress(day)[:100])


def _leave_a_dangling_link(zone: LandingZone, day: str) -> None:
    zone.path(day).unlink()
    zone.path(day).symlink_to("/nowhere/flights.json.gz")


def _add_a_dangling_link(zone: LandingZone, day: str) -> None:
    (zone.folder(day) / "more.json.gz").symlink_to("/nowhere/more.json.gz")


def _repeat_under_another_name(zone: LandingZone, day: str) -> None:
    (zone.folder(day) / "again.json.gz").write_bytes(zone.path(day).read_bytes())


def _repeat_unpacked(zone: LandingZone, day: str) -> None:
    (zone.folder(day) / "flights.json").write_text(zone.write(day))


def _remove_folder(zone: LandingZone, day: str) -> None:
    shutil.rmtree(zone.folder(day))


def _empty_folder(zone: LandingZone, day: str) -> None:
    zone.path(day).unlink()


def _mark_as_empty(zone: LandingZone, day: str) -> None:
    zone.path(day).unlink()
    (zone.folder(day) / EMPTY_MARKER).touch()


def _cut_in_two(zone: LandingZone, day: str) -> None:
    """Lands the same lines in two files, as a source does that cuts them otherwise today."""
    lines = zone.write(day).splitlines(keepends=True)
    (zone.folder(day) / "flights-1.json").write_text("".join(lines[:9]))
    zone.path(day).write_bytes(gzip.compress("".join(lines[9:]).encode(), mtime=0))


def _do_nothing(zone: LandingZone, day: str) -> None:
    """The day is revised, and good."""


FAULTS: dict[str, Callable[[LandingZone, str], None]] = {
    "revised": _do_nothing,
    "gzip cut": _cut_gzip,
    "gzip of 0 bytes": _empty_gzip,
    "gzip padded": _pad_gzip,
    "JSON broken": _break_lines,
    "last line broken off": _break_off_a_line,
    "only a hidden part-file": _leave_a_part_file,
    "only _temporary/": _leave_a_temporary_folder,
    "hidden part-file beside": _add_a_part_file,
    "only a dangling link": _leave_a_dangling_link,
    "dangling link beside": _add_a_dangling_link,
    "same file twice": _repeat_under_another_name,
    "same unpacked": _repeat_unpacked,
    "folder removed": _remove_folder,
    "folder emptied": _empty_folder,
    "marked as empty": _mark_as_empty,
    "cut in two files": _cut_in_two,
}


def spoil(zone: LandingZone, moments: random.Random, days: list[str]) -> tuple[str, str]:
    """Does one of them to a day, which may be revised by it; returns its kind and the day."""
    kind, day = moments.choice(list(FAULTS)), moments.choice(days)
    if kind == "revised" or moments.random() < 0.5:
        zone.revise(day)
    else:
        zone.land(day)
    FAULTS[kind](zone, day)
    if kind != "revised":
        zone.spoiled.add(day)
    return kind, day
