"""Sizes of the chunks that a replay works through: calendar time, integers, or landed files.

Chunks of time begin where the calendar does (years, months, ISO weeks, hours of the day), those of
integers at a multiple of their step; so the chunks of two ranges that overlap are the same ones.
"""

import datetime as dt
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from backfill_engine.grains.grain import Grain, SliceBound
from backfill_engine.grains.names import Pairs
from backfill_engine.grains.overlaps import find_moment

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_MONDAY = dt.datetime(1969, 12, 29, tzinfo=dt.UTC)
_LENGTHS = {
    "weeks": dt.timedelta(weeks=1),
    "days": dt.timedelta(days=1),
    "hours": dt.timedelta(hours=1),
    "minutes": dt.timedelta(minutes=1),
}
_SHORTEST = {"years": dt.timedelta(365), "months": dt.timedelta(28), **_LENGTHS}
_FORM = re.compile(r"([a-z]+)(?:=([0-9]{1,9}))?")
_FEBRUARY = dt.datetime(2023, 2, 1, tzinfo=dt.UTC)
"""In the shortest partition of any grain of time."""

_MOST_YEARS = 1000


class ChunkUnit(StrEnum):
    """What a chunk is counted in."""

    YEARS = "years"
    MONTHS = "months"
    WEEKS = "weeks"
    DAYS = "days"
    HOURS = "hours"
    MINUTES = "minutes"
    STEP = "step"
    """Integers of the key."""
    FILES = "files"
    """Landed files, at most; a partition of more is a chunk of its own."""


@dataclass(frozen=True)
class ChunkSize:
    """So many units, as `months=1`."""

    unit: ChunkUnit
    count: int = 1

    def __str__(self) -> str:
        """Writes it as it is read."""
        return f"{self.unit}={self.count}"

    def find_bounds(self, value: SliceBound) -> tuple[SliceBound, SliceBound]:
        """Finds the chunk that holds a value: its first one, and the first one after it.

        Moments (UTC) for a date or a moment, integers for an integer.

        Raises:
            ValueError: of files, which have no bounds.
        """
        if self.unit is ChunkUnit.FILES:
            raise ValueError("a chunk of files has no bounds of its own")
        if isinstance(value, int):
            start = value // self.count * self.count
            return start, start + self.count
        moment = find_moment(value)
        if self.unit in (ChunkUnit.YEARS, ChunkUnit.MONTHS):
            months = self.count * (12 if self.unit is ChunkUnit.YEARS else 1)
            # Five years from a year that five divides: months count from the year 0.
            first = (moment.year * 12 + moment.month - 1) // months * months
            return _find_month(first), _find_month(first + months)
        length = self.count * _LENGTHS[self.unit]
        origin = _MONDAY if self.unit is ChunkUnit.WEEKS else _EPOCH
        begin = origin + (moment - origin) // length * length
        return begin, begin + length


def parse_chunk_size(text: str) -> ChunkSize:
    """Reads `months=1`, or `weeks` for one of them.

    Raises:
        ValueError: if it is none; says which there are.
    """
    form = _FORM.fullmatch(text.strip())
    unit, count = form.groups() if form else ("", None)
    if unit not in set(ChunkUnit) or (count is not None and int(count) < 1):
        raise ValueError(
            f"--chunk {text}: give one of years, months, weeks, days, hours, minutes, step or "
            "files with a number from 1 on, as months=1 or step=100000"
        )
    if unit in _SHORTEST and int(count or 1) * _SHORTEST[unit] > _MOST_YEARS * _SHORTEST["years"]:
        raise ValueError(f"--chunk {text}: give {_MOST_YEARS} years at most, or leave it out")
    if count is None and unit in (ChunkUnit.STEP, ChunkUnit.FILES):
        raise ValueError(f"--chunk {text}: say how many, as {unit}=1000")
    return ChunkSize(ChunkUnit(unit), int(count or 1))


def find_why_unfit(size: ChunkSize, grain: Grain) -> str:
    """Finds why partitions of a grain can't be cut into such chunks; empty if they can."""
    if size.unit is ChunkUnit.FILES:
        return ""
    if (size.unit is ChunkUnit.STEP) == bool(grain.cron):
        fit = "a unit of time" if grain.cron else "step=N"
        return f"its partitions are {grain}, which {size} doesn't count: give {fit} or files=N"
    times: Grain = grain.times if isinstance(grain, Pairs) else grain
    sample = _FEBRUARY if times.bound_type == "TIMESTAMP" else _FEBRUARY.date()
    start = times.find_first(sample if times.cron else 0)  # type: ignore[arg-type]
    first, end = map(find_moment, (start, times.find_end(start)))
    chunk_first, chunk_end = map(find_moment, size.find_bounds(start))
    if chunk_end - chunk_first < end - first:
        return f"{size} is smaller than a partition, as these are {grain}: give a larger chunk"
    return ""


def cut_chunks(
    starts: Sequence[tuple[str, SliceBound]], size: ChunkSize, files: Mapping[str, int]
) -> Iterator[list[str]]:
    """Cuts a range into chunks, in order; a partition belongs to the chunk in which it begins.

    Args:
        starts: key and first value of each partition, ascending.
        size: of a chunk.
        files: landed files by key, which chunks of files go by; absent ones count as one.
    """
    chunk: list[str] = []
    filled, bounds = 0, None
    for key, start in starts:
        if size.unit is ChunkUnit.FILES:
            count = files.get(key, 1)
            fits = filled + count <= size.count
        else:
            count, found = 0, size.find_bounds(start)
            fits, bounds = found == bounds, found
        if chunk and not fits:
            yield chunk
            chunk, filled = [], 0
        chunk.append(key)
        filled += count
    if chunk:
        yield chunk


def _find_month(number: int) -> dt.datetime:
    return dt.datetime(number // 12, number % 12 + 1, 1, tzinfo=dt.UTC)
