"""Buckets of an integer key."""

import datetime as dt
from dataclasses import dataclass

from backfill_engine.grains.grain import Grain

_FEWEST_DIGITS = 7
_MOST_BUCKETS = 100_000


@dataclass(frozen=True)
class Buckets(Grain[int]):
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

    peers = "all buckets"
    column_types = ("BIGINT", "INT")

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

    @property
    def slug(self) -> str:
        """With the key space, for buckets of one step may have several."""
        return f"buckets_{self.step}_{self.space}"

    def list_keys(self) -> list[str]:
        """Lists all keys, ascending."""
        return [self.find_key(start) for start in range(0, self.space, self.step)]

    def find_start(self, key: str) -> int:
        """Finds the partition's first integer."""
        return int(key)

    def find_first(self, value: int) -> int:
        """Finds the first integer of the value's bucket."""
        return value - value % self.step

    def find_end(self, start: int) -> int:
        """Finds the first integer after the partition that begins with `start`."""
        return start + self.step

    def find_key(self, start: int) -> str:
        """Pads the first integer with zeros."""
        width = max(_FEWEST_DIGITS, len(str(self.space - 1)))
        return f"{start:0{width}}"

    def find_number(self, value: int) -> int:
        """Counts the buckets before the value's own."""
        return value // self.step

    def number_sql(self, column: str) -> str:
        """Builds the SQL that counts the buckets before that of the column's value.

        It takes integers all the way: doubles can't hold large keys.
        """
        return f"(`{column}` - pmod(`{column}`, {self.step})) div {self.step}"

    def first_sql(self, value: str) -> str:
        """Builds the SQL for the first integer of the value's bucket."""
        return f"{value} - pmod({value}, {self.step})"

    def is_over(self, start: int, day: dt.date) -> bool:
        """Returns True always: what comes later has a larger key."""
        return True

    def __str__(self) -> str:
        return f"buckets of {self.step}"


def require_buckets(grain: Grain, what: str) -> Buckets:
    """Returns the grain, for what takes integer keys.

    Args:
        grain: any.
        what: is to be in buckets; for the message.

    Raises:
        ValueError: if it is another.
    """
    if not isinstance(grain, Buckets):
        raise ValueError(f"{what} must be in buckets of its keys, and not in {grain}")
    return grain
