"""Historical loads: history that predates what lands day by day, from files of another layout.

A historical load is a source of files with a begin and an end. An asset declares it beside its
feed; from there on its days are run like any others, and what is published of them is known by the
table.
"""

import datetime as dt
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from backfill_engine.errors import DeclarationError
from backfill_engine.grains.dates import DAYS
from backfill_engine.lake.partitions import Partition
from backfill_engine.sources.pattern_files import PatternFiles, PatternListing
from backfill_engine.sources.record_files import ColumnFiles
from backfill_engine.tables.columns import Column
from backfill_engine.tables.declarations import Table

_DAY = dt.timedelta(days=1)


@dataclass(frozen=True)
class HistoricalLoad:
    """History that a table takes in once, from files of another layout than what lands daily.

    Attributes:
        name: by which it is made active.
        files: its files.
        begin: the first day of it.
        end: the day after its last. Both are bounds of files, too.

    Raises:
        DeclarationError: when it is made, if it can't be as it is declared.
    """

    name: str
    files: PatternFiles
    begin: dt.date
    end: dt.date

    def __post_init__(self) -> None:
        for bound in (self.begin, self.end):
            if isinstance(bound, dt.datetime) or not isinstance(bound, dt.date):
                raise self._refuse(f"{bound!r} is no day: `begin` and `end` are dates")
        if self.begin >= self.end:
            raise self._refuse(
                f"begin {self.begin} must be before end {self.end}, the day after its last"
            )
        for bound in (self.begin, self.end) if "{" in self.files.path else ():
            pattern = self.files.find_pattern(DAYS, bound)
            if pattern == self.files.find_pattern(DAYS, bound - _DAY):
                raise self._refuse(
                    f"`{pattern}` holds days before {bound} and from it on: begin and end where "
                    "files do"
                )

    def holds(self, day: dt.date) -> bool:
        """Tells whether the load fills the partition of a day."""
        return self.begin <= day < self.end

    def fit_feed(self, table: Table, fields: tuple[Column, ...]) -> "HistoricalLoad":
        """Returns it with the fields of the feed; refuses a table by anything but days.

        Raises:
            DeclarationError: also if the files lack a field that is required, or have others.
        """
        if table.grain != DAYS:
            raise DeclarationError(
                f"{table.key}: historical loads fill days, and it is partitioned by {table.grain}: "
                "leave `history` out, or give it the grain DAYS"
            )
        files = replace(self.files, fields=fields, bounds=(self.begin, self.end))
        if not files.where and files.find_span(DAYS, self.begin)[1] > self.begin + _DAY:  # type: ignore[operator]
            raise self._refuse(
                f"several days share a file of {files.owner}: name the field that tells them "
                "apart, as `where`"
            )
        if isinstance(files, ColumnFiles) and files.origins:
            declared, mapped = [field.name for field in fields], [*dict(files.origins)]
            if unknown := [name for name in mapped if name not in declared]:
                raise DeclarationError(
                    f"{table.key}, historical load `{self.name}`: no record has a field "
                    f"`{unknown[0]}`: choose of {', '.join(declared)}"
                )
            required = [field.name for field in fields if not field.nullable]
            if lacking := [f"`{name}`" for name in required if name not in mapped]:
                raise DeclarationError(
                    f"{table.key}, historical load `{self.name}`: `origins` must say where "
                    f"{', '.join(lacking)} comes from, which is required"
                )
        return replace(self, files=files)

    def list_files(
        self, root: str, table: Table, partitions: Iterable[Partition]
    ) -> PatternListing:
        """Lists the files that hold the days of partitions, which the load fills."""
        return self.files.list_files(root, table, partitions)

    def _refuse(self, why: str) -> DeclarationError:
        return DeclarationError(f"historical load `{self.name}`: {why}")


def check_flows(table: str, flows: Sequence[HistoricalLoad]) -> None:
    """Refuses loads of a table that fill the same days.

    Raises:
        DeclarationError: if two do.
    """
    for earlier, later in pairwise(sorted(flows, key=lambda flow: flow.begin)):
        if later.begin < earlier.end:
            raise DeclarationError(
                f"{table}: the historical loads `{earlier.name}` and `{later.name}` both fill "
                f"{later.begin}: leave each day to one of them"
            )
