"""Grains: which values of a partition column make one partition, and what it is called.

Pure arithmetic between keys, half-open bounds and numbers. A partition's number counts from an
origin that never moves, so that it is the same in Python, in Spark and next year.
"""

import datetime as dt
from collections.abc import Hashable
from dataclasses import dataclass
from typing import ClassVar, TypeAlias

SliceBound: TypeAlias = dt.date | dt.datetime | int

_EPOCH = dt.date(1970, 1, 1)
_EPOCH_START = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_HOUR = dt.timedelta(hours=1)
_HOUR_KEY = "%Y-%m-%d-%H:%M"
_FEWEST_DIGITS = 7
_MOST_BUCKETS = 100_000


@dataclass(frozen=True)
class Daily:
    """One partition a day of a DATE column. Keys as `2013-01-31`; numbers count from 1970."""

    column_types: ClassVar[tuple[str, ...]] = ("DATE",)
    peers: ClassVar[str] = "the same weekday"

    def find_start(self, key: str) -> dt.date:
        """The partition's first value."""
        return dt.date.fromisoformat(key)

    def find_end(self, start: SliceBound) -> dt.date:
        """The first value after the partition that begins with `start`."""
        assert isinstance(start, dt.date)
        return start + dt.timedelta(days=1)

    def find_key(self, start: SliceBound) -> str:
        """The key of the partition that begins with `start`."""
        assert isinstance(start, dt.date)
        return start.isoformat()

    def find_number(self, start: SliceBound) -> int:
        """The days since 1970-01-01."""
        assert isinstance(start, dt.date)
        return start.toordinal() - _EPOCH.toordinal()

    def find_peer_group(self, start: SliceBound) -> Hashable:
        """The weekday: days are compared with their like."""
        assert isinstance(start, dt.date)
        return start.weekday()

    def __str__(self) -> str:
        return "days"


@dataclass(frozen=True)
class Hourly:
    """One partition an hour (UTC) of a TIMESTAMP column. Keys as `2013-01-31-05:00`, as Dagster's.

    Numbers count the hours since 1970.
    """

    column_types: ClassVar[tuple[str, ...]] = ("TIMESTAMP",)
    peers: ClassVar[str] = "the same hour of the day"

    def find_start(self, key: str) -> dt.datetime:
        """The partition's first moment."""
        return dt.datetime.strptime(key, _HOUR_KEY).replace(tzinfo=dt.UTC)

    def find_end(self, start: SliceBound) -> dt.datetime:
        """The first moment after the partition that begins with `start`."""
        assert isinstance(start, dt.datetime)
        return start + _HOUR

    def find_key(self, start: SliceBound) -> str:
        """The key of the partition that begins with `start`."""
        assert isinstance(start, dt.datetime)
        return start.strftime(_HOUR_KEY)

    def find_number(self, start: SliceBound) -> int:
        """The hours since 1970-01-01 00:00 UTC."""
        assert isinstance(start, dt.datetime)
        return (start - _EPOCH_START) // _HOUR

    def find_peer_group(self, start: SliceBound) -> Hashable:
        """The hour of the day: hours are compared with their like."""
        assert isinstance(start, dt.datetime)
        return start.hour

    def __str__(self) -> str:
        return "hours"


@dataclass(frozen=True)
class Buckets:
    """One partition for each `step` integers from 0 on, up to `space`; of a BIGINT or INT column.

    The column holds the first integer of each row's bucket. Keys are that integer, padded with
    zeros to the width of the key space and seven digits at least, so that they sort as numbers do.

    Attributes:
        step: integers in a bucket.
        space: integers from 0 on that the keys cover; the last bucket may reach beyond.

    Raises:
        ValueError: if there would be no bucket, or over 100,000, which Dagster can't take well.
    """

    step: int
    space: int
    column_types: ClassVar[tuple[str, ...]] = ("BIGINT", "INT")
    peers: ClassVar[str] = "all buckets"

    def __post_init__(self) -> None:
        if self.step < 1 or self.space < 1:
            raise ValueError(f"a step of {self.step} over a key space of {self.space} is no bucket")
        if self.count > _MOST_BUCKETS:
            raise ValueError(
                f"a step of {self.step} over a key space of {self.space} makes {self.count:,} "
                f"partitions: choose a step of {-(-self.space // _MOST_BUCKETS)} or more"
            )

    @property
    def count(self) -> int:
        """How many there are."""
        return -(-self.space // self.step)

    def list_keys(self) -> list[str]:
        """All keys, ascending."""
        return [self.find_key(start) for start in range(0, self.space, self.step)]

    def find_bucket(self, value: int) -> int:
        """The first integer of the bucket that a value is in."""
        return value // self.step * self.step

    def find_start(self, key: str) -> int:
        """The partition's first integer."""
        return int(key)

    def find_end(self, start: SliceBound) -> int:
        """The first integer after the partition that begins with `start`."""
        assert isinstance(start, int)
        return start + self.step

    def find_key(self, start: SliceBound) -> str:
        """The key of the partition that begins with `start`."""
        width = max(_FEWEST_DIGITS, len(str(self.space - 1)))
        return f"{start:0{width}}"

    def find_number(self, start: SliceBound) -> int:
        """How many buckets come before it."""
        assert isinstance(start, int)
        return start // self.step

    def find_peer_group(self, start: SliceBound) -> Hashable:
        """All buckets are alike."""
        return None

    def __str__(self) -> str:
        return f"buckets of {self.step}"


Grain: TypeAlias = Daily | Hourly | Buckets

DAYS = Daily()
HOURS = Hourly()
