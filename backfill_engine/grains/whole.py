"""The grain of a table without partitions: all of it is one."""

import datetime as dt
from dataclasses import dataclass

from backfill_engine.grains.grain import Grain

WHOLE_KEY = "whole"
"""Of the only partition."""


@dataclass(frozen=True)
class Whole(Grain[int]):
    """One partition, called `whole`, of all rows; no column says so, and there are no folders."""

    peers = "nothing"
    column_types = ()

    @property
    def bound_type(self) -> str:
        """Of its bounds, 0 and 1."""
        return "BIGINT"

    @property
    def slug(self) -> str:
        """What it is called in the name of a job."""
        return WHOLE_KEY

    def list_keys(self) -> list[str]:
        """Lists its only key."""
        return [WHOLE_KEY]

    def find_start(self, key: str) -> int:
        """Returns 0 for its only key.

        Raises:
            ValueError: if the key is another.
        """
        if key != WHOLE_KEY:
            raise ValueError(f"{key} is no partition of a table without: there is only {WHOLE_KEY}")
        return 0

    def find_first(self, value: int) -> int:
        """Returns 0."""
        return 0

    def find_end(self, start: int) -> int:
        """Returns 1."""
        return start + 1

    def find_key(self, start: int) -> str:
        """Returns its only key."""
        return WHOLE_KEY

    def find_number(self, value: int) -> int:
        """Returns 0 for its start, and 1 for its end."""
        return value

    def number_sql(self, column: str) -> str:
        """Builds the SQL for 0, whatever a row holds."""
        return "0"

    def is_over(self, start: int, day: dt.date) -> bool:
        """Returns True always: its files may be joined on any day."""
        return True

    def __str__(self) -> str:
        return "whole tables"


WHOLE = Whole()
