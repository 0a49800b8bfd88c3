"""What every grain tells of its partitions: bounds, keys, numbers, folders and times.

Pure arithmetic and text: no Spark, no Dagster, no environment. A partition's number counts from an
origin that never moves, so that it is the same in Python, in Spark and next year.
"""

import datetime as dt
from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Mapping
from typing import ClassVar, Generic, TypeAlias, TypeVar

SliceBound: TypeAlias = dt.date | dt.datetime | int | tuple[dt.date, int]
Bound = TypeVar("Bound", bound=SliceBound)


KEY_PARTS = "|"
"""Between the parts of a key of two dimensions, as Dagster writes it."""


class Grain(ABC, Generic[Bound]):
    """Which values of a partition column make one partition, and what it is called.

    Its text, as `days`, is stored with each table and must never change.

    Attributes:
        column_types: Spark SQL types that the partition column may have.
        cron: when partitions begin, as cron has it; empty for those that aren't of time.
        time_zone: in which they do.
        is_named: whether a partition has a name, which no day, time or integer of a source says.
        in_daily_folders: whether a table has a folder for each day, which several partitions share.
        key_format: of keys, as `strftime` takes it; likewise.
        landing_format: of the folder below its dataset in which a partition lands as JSON, from
            `year=%Y/month=%m` on; likewise.
        peers: what partitions have in common that are compared with each other, in words.
        landing_start: SQL for the partition's first value, of the integers that such a folder is
            named by: `year`, `month` and so on; likewise.
    """

    column_types: tuple[str, ...]
    peers: ClassVar[str]
    cron: str = ""
    time_zone: str = "UTC"
    is_named: ClassVar[bool] = False
    in_daily_folders: ClassVar[bool] = False
    key_format: ClassVar[str] = ""
    landing_format: ClassVar[str] = ""
    landing_start: ClassVar[str] = ""

    @property
    def bound_type(self) -> str:
        """The Spark SQL type of partitions' bounds, whatever the column holds."""
        return self.column_types[0]

    def find_stored(self, value: Bound) -> SliceBound | str:
        """Finds what the column holds for a value; unless a grain says otherwise, that value."""
        return value

    def find_value(self, stored: str) -> Bound:
        """Finds the value by the text of what the column holds, as a folder is named.

        Raises:
            ValueError: if it holds no such text.
        """
        return self.find_start(stored)

    def stored_sql(self, value: str) -> str:
        """Builds the Spark SQL for `find_stored`, of SQL for a value."""
        return value

    def known_sql(self, column: str) -> str:
        """Builds the SQL that is true where a column holds what a partition has.

        It is empty where any value is in a partition.
        """
        return ""

    def is_known(self, key: str) -> bool:
        """Tells whether a key that was published is one of a partition still."""
        return True

    def find_times(self, start: Bound) -> tuple[SliceBound, SliceBound]:
        """Finds when a partition of time begins, and when it has ended; of others the bounds."""
        return start, self.find_end(start)

    def find_parts(self, start: Bound) -> Mapping[str, object]:
        """Finds what `{partition}` stands for in the path of a file: the first value."""
        return {"partition": start}

    @property
    def slug(self) -> str:
        """What it is called in the name of a job; grains of one slug have the same keys."""
        return str(self).replace(" ", "_")

    def list_keys(self) -> list[str]:
        """Lists all keys, ascending, of partitions that aren't of time.

        The list is empty for others: Dagster knows them.
        """
        return []

    @abstractmethod
    def find_start(self, key: str) -> Bound:
        """Finds the partition's first value."""

    @abstractmethod
    def find_first(self, value: Bound) -> Bound:
        """Finds the first value of the partition that holds `value`."""

    @abstractmethod
    def find_end(self, start: Bound) -> Bound:
        """Finds the first value after the partition that begins with `start`."""

    @abstractmethod
    def find_key(self, start: Bound) -> str:
        """Finds the key of the partition that begins with `start`."""

    @abstractmethod
    def find_number(self, value: Bound) -> int:
        """Finds the number of the partition that holds `value`; a later one has a larger number."""

    @abstractmethod
    def number_sql(self, column: str) -> str:
        """Builds the Spark SQL for `find_number` of a column's values: an integer."""

    def first_sql(self, value: str) -> str:
        """Builds the Spark SQL for what the column is to hold, of SQL for a value.

        That is the partition's first value; of a part of a day, the moment itself.
        """
        return value

    def find_peer_group(self, start: Bound) -> Hashable:
        """Finds what is the same for partitions that are compared with each other.

        Unless a grain says otherwise, all are alike.
        """
        return None

    @abstractmethod
    def is_over(self, start: Bound, day: dt.date) -> bool:
        """Tells whether what comes from `day` on (UTC) no longer belongs to the partition."""

    def find_landing_folder(self, start: Bound) -> str:
        """Finds the folder in which the partition that begins with `start` lands.

        It is relative to the folder of the dataset.

        Raises:
            ValueError: if the partitions aren't of time.
        """
        if not isinstance(start, dt.date):
            raise ValueError(f"{self} have no folders to land in")
        return start.strftime(self.landing_format)


def find_hull(keys: Iterable[str]) -> tuple[str, str]:
    """Finds first and last key of the least range, or box, that holds all keys, at least one."""
    parts = zip(*(key.split(KEY_PARTS) for key in keys), strict=True)
    ends = [(min(found), max(found)) for found in parts]
    return KEY_PARTS.join(low for low, _ in ends), KEY_PARTS.join(high for _, high in ends)


def is_in_range(key: str, first: str | None, last: str | None) -> bool:
    """Tells whether a key lies in a range, both ends included; None has no end.

    Keys sort as partitions do. A range of two dimensions is a box: it holds what lies in both.
    """
    parts = key.split(KEY_PARTS)
    firsts = parts if first is None else first.split(KEY_PARTS)
    lasts = parts if last is None else last.split(KEY_PARTS)
    return all(low <= part <= high for part, low, high in zip(parts, firsts, lasts, strict=False))
