"""Grains of names, as of regions, and of pairs of a day and a name."""

import datetime as dt
import re
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import NamedTuple, TypeGuard
from zlib import crc32

from backfill_engine.grains.dates import DateGrain
from backfill_engine.grains.grain import KEY_PARTS, Grain

_NAME = re.compile(r"\w(?:[\w .+-]*[\w.+-])?")
_MOST = 10_000
"""Names. Numbers of pairs leave room for as many a day, so that a new name changes few."""


@dataclass(frozen=True)
class Names(Grain[int]):
    """One partition for each name, of a STRING column that holds it: `Names(("EU", "US"))`.

    Bounds are places in the sorted list of names, from 0 on.

    Attributes:
        names: in any order; letters, digits, spaces and any of `_.+-`. A new name may be added at
            any time; a name that is taken out leaves its rows as they are, and no run replaces
            them.

    Raises:
        ValueError: if there is none, one is there twice, or one has another character.
    """

    # What is printed is part of code versions: a new region makes no other one stale.
    names: tuple[str, ...] = field(repr=False)

    peers = "nothing"
    column_types = ("STRING",)
    is_named = True

    def __post_init__(self) -> None:
        if isinstance(self.names, str) or not 0 < len(set(self.names)) == len(self.names) <= _MOST:
            raise ValueError(f"write 1 to {_MOST:,} names, each once, as Names(('EU', 'US'))")
        for name in self.names:
            if not _NAME.fullmatch(name):
                raise ValueError(f"no partition can be called {name!r}: {_ALLOWED}")
        object.__setattr__(self, "names", tuple(sorted(self.names)))

    @property
    def bound_type(self) -> str:
        """Of places."""
        return "BIGINT"

    @property
    def slug(self) -> str:
        """With a digest of the names: grains of other names have other keys."""
        return f"names_{crc32(KEY_PARTS.join(self.names).encode()):08x}"

    def list_keys(self) -> list[str]:
        """Lists the names, sorted."""
        return list(self.names)

    def is_known(self, key: str) -> bool:
        """Tells whether it is one of the names."""
        return key in self.names

    def find_start(self, key: str) -> int:
        """Finds the place of a name.

        Raises:
            ValueError: if there is no such name.
        """
        if key not in self.names:
            raise ValueError(f"{key} is none of {', '.join(self.names)}")
        return self.names.index(key)

    def find_first(self, value: int) -> int:
        """Returns the place."""
        return value

    def find_end(self, start: int) -> int:
        """Finds the next place."""
        return start + 1

    def find_key(self, start: int) -> str:
        """Finds the name at a place."""
        return self.names[start]

    def find_stored(self, value: int) -> str:
        """Finds the name at a place; of the place after the last, a text behind all names."""
        return self.names[value] if value < len(self.names) else f"{self.names[-1]} "

    def find_number(self, value: int) -> int:
        """Returns the place."""
        return value

    def find_parts(self, start: int) -> dict[str, str]:
        """Finds what `{partition}` stands for in a path: the name."""
        return {"partition": self.find_key(start)}

    def known_sql(self, column: str) -> str:
        """Builds the SQL that is true where the column holds one of the names."""
        return f"`{column}` IN ({_quote(self.names)})"

    def stored_sql(self, value: str) -> str:
        """Builds the SQL for the name at a place."""
        return f"element_at(array({_quote(self.names)}), CAST({value} + 1 AS INT))"

    def number_sql(self, column: str) -> str:
        """Builds the SQL for the place of the name that the column holds; null if it has none."""
        return self.place_sql(f"`{column}`")

    def place_sql(self, name: str) -> str:
        """Builds the SQL for the place of a name, of SQL for the name; null if it has none."""
        return f"nullif(array_position(array({_quote(self.names)}), {name}), 0) - 1"

    def find_peer_group(self, start: int) -> Hashable:
        """Finds the place: names are compared with themselves only."""
        return start

    def is_over(self, start: int, day: dt.date) -> bool:
        """Returns True always: its files may be joined on any day."""
        return True

    def __str__(self) -> str:
        return "names"


_ALLOWED = "write letters, digits, and within a name spaces and any of _.+-"


def _quote(names: tuple[str, ...]) -> str:
    return ", ".join(f"'{name}'" for name in names)


class Pair(NamedTuple):
    """Where a partition of a day and a name begins.

    Attributes:
        day: the first day of its time.
        place: of its name, among the sorted names.
    """

    day: dt.date
    place: int


@dataclass(frozen=True)
class Pairs(Grain[Pair]):
    """One partition for each pair of a day (or week, month …) and a name, of a STRING column.

    The column holds the partition's key, as `2024-01-31|EU`: what Dagster calls a partition of
    `MultiPartitionsDefinition`, in which a range is a box. Partitions are in order of days, and of
    names within a day.

    Attributes:
        times: the grain of the days.
        names: the grain of the names.
        labels: what Dagster calls both dimensions; it sorts them by these.

    Raises:
        ValueError: if the grains are others, or labels don't sort so that the day comes first.
    """

    times: DateGrain
    names: Names
    labels: tuple[str, str] = field(default=("day", "name"), repr=False)

    column_types = ("STRING",)
    is_named = True

    def __post_init__(self) -> None:
        if not isinstance(self.times, DateGrain) or not isinstance(self.names, Names):
            raise ValueError("pairs are of days (or weeks, months …) and Names, in this order")
        time, name = self.labels
        if not time < name or not (time.isidentifier() and name.isidentifier()):
            raise ValueError(
                f"Dagster sorts dimensions by their labels {self.labels}: give two words of which "
                "that of the days comes first, such as ('day', 'region')"
            )

    @property
    def peers(self) -> str:  # type: ignore[override]
        """Of the same name, what the times have in common."""
        return f"{self.times.peers}, of the same name"

    @property
    def cron(self) -> str:  # type: ignore[override]
        """That of the times."""
        return self.times.cron

    @property
    def slug(self) -> str:
        """Of both."""
        return f"{self.times.slug}_by_{self.names.slug}"

    def is_known(self, key: str) -> bool:
        """Tells whether it has one of the names."""
        return key.partition(KEY_PARTS)[2] in self.names.names

    def find_start(self, key: str) -> Pair:
        """Finds day and name.

        Raises:
            ValueError: if the key has no such day or name.
        """
        day, _, name = key.partition(KEY_PARTS)
        return Pair(self.times.find_start(day), self.names.find_start(name))

    def find_first(self, value: Pair) -> Pair:
        """Finds the first day of the time, with the same name."""
        return Pair(self.times.find_first(value.day), value.place)

    def find_end(self, start: Pair) -> Pair:
        """Finds the next name of the day, or the first of the next."""
        if start.place + 1 < len(self.names.names):
            return Pair(start.day, start.place + 1)
        return Pair(self.times.find_end(start.day), 0)

    def find_key(self, start: Pair) -> str:
        """Writes day and name as `2024-01-31|EU`."""
        return f"{self.times.find_key(start.day)}{KEY_PARTS}{self.names.find_key(start.place)}"

    def find_stored(self, value: Pair) -> str:
        """Writes the key."""
        return self.find_key(value)

    def find_value(self, stored: str) -> Pair:
        """Reads a key."""
        return self.find_start(stored)

    def find_times(self, start: Pair) -> tuple[dt.date, dt.date]:
        """Finds the first day, and the first after the last."""
        return start.day, self.times.find_end(start.day)

    def find_parts(self, start: Pair) -> dict[str, object]:
        """Finds what a path may name: the day, and both by their labels."""
        time, name = self.labels
        return {
            "partition": start.day,
            time: start.day,
            name: self.names.find_key(start.place),
        }

    def find_all(self, start: dt.date, end: dt.date) -> tuple[Pair, Pair]:
        """Finds the first pair from a day on, and the first after those before another day."""
        last = self.times.find_first(end - dt.timedelta(days=1))
        return Pair(self.times.find_first(start), 0), Pair(self.times.find_end(last), 0)

    def find_number(self, value: Pair) -> int:
        """Counts days since 1970-01-01 by ten thousands, and adds the place of the name."""
        return (value.day - _EPOCH).days * _MOST + value.place

    def known_sql(self, column: str) -> str:
        """Builds the SQL that is true where the column holds one of the names."""
        return f"substring_index(`{column}`, '{KEY_PARTS}', -1) IN ({_quote(self.names.names)})"

    def number_sql(self, column: str) -> str:
        """Builds the SQL for the pair's number; null where the column holds none."""
        text = f"substring_index(`{column}`, '{KEY_PARTS}', 1)"
        day = f"CAST(try_to_timestamp({text}, 'yyyy-MM-dd') AS DATE)"
        place = self.names.place_sql(f"substring_index(`{column}`, '{KEY_PARTS}', -1)")
        return f"CAST(unix_date({day}) AS BIGINT) * {_MOST} + {place}"

    def find_peer_group(self, start: Pair) -> Hashable:
        """Finds the name, and what is the same for the times."""
        return start.place, self.times.find_peer_group(start.day)

    def is_over(self, start: Pair, day: dt.date) -> bool:
        """Tells whether its last day is before `day`."""
        return self.times.is_over(start.day, day)

    def __str__(self) -> str:
        return f"{self.times} by name"


_EPOCH = dt.date(1970, 1, 1)


def is_pair(bound: object) -> TypeGuard[Pair]:
    """Tells whether a bound is of a day and a name."""
    return isinstance(bound, Pair)
