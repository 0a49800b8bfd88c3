"""How a run goes through its partitions: in which chunks, when, and what it doesn't do again."""

import datetime as dt
import re
from dataclasses import dataclass

from backfill_engine.errors import SettingsError
from backfill_engine.grains.chunk_sizes import ChunkSize, find_why_unfit, parse_chunk_size
from backfill_engine.tables.declarations import Table

_WINDOW = re.compile(r"([01][0-9]|2[0-3]):([0-5][0-9])-([01][0-9]|2[0-3]):([0-5][0-9])")


@dataclass(frozen=True)
class DailyWindow:
    """Hours of a day (UTC) in which a run may begin chunks; over midnight, where it ends earlier.

    Attributes:
        opens: from then on.
        closes: no longer then.
    """

    opens: dt.time
    closes: dt.time

    def is_open(self, now: dt.datetime) -> bool:
        """Tells whether it is open, UTC."""
        time = now.astimezone(dt.UTC).time()
        if self.opens < self.closes:
            return self.opens <= time < self.closes
        return time >= self.opens or time < self.closes

    def __str__(self) -> str:
        """Writes it as it is read."""
        return f"{self.opens:%H:%M}-{self.closes:%H:%M}"


@dataclass(frozen=True, kw_only=True)
class Pace:
    """How a run goes through its partitions.

    Attributes:
        chunk: what is committed and recorded together; None for as much as memory's bounds allow.
        restart: whether chunks are computed again that were published from the same inputs by the
            same code before; only a run with chunks leaves those out.
        keep_going: whether it goes on with the next chunk after one that ended with an error.
        window: when it may begin chunks; None for always.
    """

    chunk: ChunkSize | None = None
    restart: bool = False
    keep_going: bool = False
    window: DailyWindow | None = None


IN_ONE_GO = Pace()
"""A range at once, whenever it is."""


def choose_pace(
    table: Table,
    *,
    chunk: str | None = None,
    restart: bool | None = None,
    keep_going: bool | None = None,
    window: str | None = None,
) -> Pace:
    """Reads what a run asks for, of one table; None counts as not asked for.

    Raises:
        SettingsError: if it can't be read, or the table's partitions don't fit into such chunks.
    """
    try:
        size = parse_chunk_size(chunk) if chunk else None
    except ValueError as error:
        raise SettingsError(str(error)) from None
    if size and (why := find_why_unfit(size, table.grain)):
        raise SettingsError(f"{table.key}: {why}; nothing was written")
    if size is None and (restart or keep_going):
        name = "restart" if restart else "keep_going"
        raise SettingsError(f"{name} is about chunks: say how large they are, as chunk=months=1")
    return Pace(
        chunk=size,
        restart=bool(restart),
        keep_going=bool(keep_going),
        window=parse_window(window) if window else None,
    )


def parse_window(text: str) -> DailyWindow:
    """Reads `22:00-06:00`.

    Raises:
        SettingsError: if it is none, or never open.
    """
    form = _WINDOW.fullmatch(text.strip())
    if form is None:
        raise SettingsError(f"window {text}: give two times of a day (UTC), as 22:00-06:00")
    opening, minute, closing, last_minute = map(int, form.groups())
    found = DailyWindow(dt.time(opening, minute), dt.time(closing, last_minute))
    if found.opens == found.closes:
        raise SettingsError(f"window {text}: it is never open; leave it out for always")
    return found
