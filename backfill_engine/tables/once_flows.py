"""Once-flows: history that predates what lands day by day, declared with its table. Pure data."""

import datetime as dt
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, TypeAlias, get_args

from backfill_engine.errors import DeclarationError
from backfill_engine.tables.columns import Column

Format: TypeAlias = Literal["csv", "parquet"]

_READER_OPTIONS: dict[str, frozenset[str]] = {
    "csv": frozenset({"sep", "quote", "escape", "nullValue"}),
    "parquet": frozenset({"datetimeRebaseMode", "int96RebaseMode"}),
}
"""Those by which no record is lost; such as `mode` or `comment` would drop some without a word."""

ONCE_TAG = "backfill_assets/once"
"""Tag of a run or a backfill: the once-flow that it takes in."""

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True)
class DatePart:
    """A number out of a source column that holds a date, such as its month."""

    column: str
    part: Literal["year", "month", "day"]


@dataclass(frozen=True)
class Constant:
    """The same text for all records, for what the source doesn't say."""

    value: str


Origin: TypeAlias = str | DatePart | Constant
"""Where a declared field comes from: a source column as it is, a part of a date, or a constant."""


@dataclass(frozen=True, kw_only=True)
class OnceFlow:
    """History that a table takes in once, from files of another layout than what lands daily.

    Attributes:
        name: of the flow and of its job, `once_<name>`.
        source: its files below the landing root: a path in which `%Y`, `%m` and `%d` stand for the
            date of the records and `*` for any text within a name.
        begin: the first day of it.
        end: the day after its last. Both are bounds of files, too.
        day: the source column that says which day a record is of, as YYYY-MM-DD or a DATE.
        fields: by declared field, where it comes from. What isn't named is null, and what else the
            source has isn't read.
        format: `csv`, with a line of names and maybe gzipped (`*.csv.gz`), or `parquet`.
        spark_options: of Spark's reader, such as `("sep", ";")`.
        session_conf: settings of the Spark session that takes it in, such as
            `("spark.driver.memory", "8g")`; they win over the environment's.
        modified_after: only files that were modified later; with a time zone.
        max_files: most files that one commit is computed from; None for as many as memory allows.

    Raises:
        DeclarationError: when it is made, if it can't be as it is declared.
    """

    name: str
    source: str
    begin: dt.date
    end: dt.date
    day: str
    fields: tuple[tuple[str, Origin], ...]
    format: Format = "csv"
    spark_options: tuple[tuple[str, str], ...] = ()
    session_conf: tuple[tuple[str, str], ...] = ()
    modified_after: dt.datetime | None = None
    max_files: int | None = None

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise DeclarationError(
                f"a once-flow can't be called `{self.name}`: write letters, digits and _"
            )
        self._check_source()
        self._check_days()
        self._check_reading()

    @property
    def columns(self) -> tuple[str, ...]:
        """The source columns that are read, each once."""
        named = (
            origin.column if isinstance(origin, DatePart) else origin
            for _, origin in self.fields
            if not isinstance(origin, Constant)
        )
        return tuple(dict.fromkeys((self.day, *named)))

    def holds(self, day: dt.date) -> bool:
        """Tells whether the flow fills the partition of a day."""
        return self.begin <= day < self.end

    def find_pattern(self, day: dt.date) -> str:
        """Writes the source of one day: a path with `*` for any text within a name."""
        return day.strftime(self.source)

    def check_fields(self, table: str, declared: Sequence[Column]) -> None:
        """Refuses fields that the table's records don't have, and a lack of those that they must.

        Raises:
            DeclarationError: if there are any.
        """
        names, mapped = [column.name for column in declared], [name for name, _ in self.fields]
        if unknown := [name for name in mapped if name not in names]:
            raise DeclarationError(
                f"{table}, once-flow `{self.name}`: no record has a field `{unknown[0]}`: choose "
                f"of {', '.join(names)}"
            )
        lacking = [one.name for one in declared if not one.nullable and one.name not in mapped]
        if lacking:
            raise DeclarationError(
                f"{table}, once-flow `{self.name}`: `fields` must say where "
                f"{', '.join(f'`{name}`' for name in lacking)} comes from, which is required"
            )

    def _check_source(self) -> None:
        path, ends = self.source, {"csv": (".csv", ".csv.gz"), "parquet": (".parquet",)}
        if self.format not in get_args(Format):
            raise self._refuse(
                f"`format` can't be `{self.format}`: choose of {', '.join(get_args(Format))}"
            )
        if not path or path.startswith("/") or "://" in path or ".." in path.split("/"):
            raise self._refuse(
                f"`source` is a path below the landing zone, and not `{path}`: link or copy the "
                "files there"
            )
        if "/" not in path or "*" in path.partition("/")[0] or "%" in path.partition("/")[0]:
            raise self._refuse(
                f"`source` `{path}` begins with a pattern: begin with a folder of its own, as "
                "history/%Y/*.csv"
            )
        if re.sub("%[Ymd]", "", path).count("%"):
            raise self._refuse(f"`source` `{path}`: only %Y, %m and %d stand for dates there")
        if not path.endswith(ends[self.format]):
            raise self._refuse(
                f"`source` `{path}` must end with {' or '.join(ends[self.format])}, as its format "
                f"is {self.format}"
            )

    def _check_days(self) -> None:
        for bound in (self.begin, self.end):
            if isinstance(bound, dt.datetime) or not isinstance(bound, dt.date):
                raise self._refuse(f"{bound!r} is no day: `begin` and `end` are dates")
        if self.begin >= self.end:
            raise self._refuse(
                f"begin {self.begin} must be before end {self.end}, the day after its last"
            )
        for bound in (self.begin, self.end) if "%" in self.source else ():
            if self.find_pattern(bound) == self.find_pattern(bound - dt.timedelta(days=1)):
                raise self._refuse(
                    f"`{self.find_pattern(bound)}` holds days before {bound} and from it on: "
                    "begin and end where files do"
                )

    def _check_reading(self) -> None:
        names = [name for name, _ in self.fields]
        if twice := [name for at, name in enumerate(names) if name in names[:at]]:
            raise self._refuse(f"`fields` has `{twice[0]}` twice: remove one")
        if not self.day or not all(self.columns):
            raise self._refuse("a source column has no name: `day` and `fields` name them")
        known = _READER_OPTIONS[self.format]
        for name, _ in self.spark_options:
            if name not in known:
                raise self._refuse(
                    f"the option `{name}` of Spark's reader isn't taken: choose of "
                    f"{', '.join(sorted(known))}, which lose no record"
                )
        for name, _ in self.session_conf:
            if not name.startswith("spark."):
                raise self._refuse(f"`session_conf` `{name}` is no setting of Spark: spark.…")
        if self.modified_after is not None and self.modified_after.tzinfo is None:
            raise self._refuse("`modified_after` needs a time zone, such as UTC")
        if self.max_files is not None and self.max_files < 1:
            raise self._refuse(f"`max_files` can't be {self.max_files}: 1 at least, or None")

    def _refuse(self, why: str) -> DeclarationError:
        return DeclarationError(f"once-flow `{self.name}`: {why}")


def check_flows(table: str, flows: Sequence[OnceFlow]) -> None:
    """Refuses flows of a table that fill the same days, or have one name.

    Raises:
        DeclarationError: if two do.
    """
    ordered = sorted(flows, key=lambda flow: flow.begin)
    for earlier, later in pairwise(ordered):
        if later.begin < earlier.end:
            raise DeclarationError(
                f"{table}: the once-flows `{earlier.name}` and `{later.name}` both fill "
                f"{later.begin}: leave each day to one of them"
            )
    names = [flow.name for flow in flows]
    if twice := [name for at, name in enumerate(names) if name in names[:at]]:
        raise DeclarationError(f"{table} has two once-flows `{twice[0]}`: rename one")


@dataclass(frozen=True)
class History:
    """The once-flows of a table that are active, and the day from which on its feed is read.

    Attributes:
        flows: ascending; with the feed they leave no day out.
        end: the first day of the feed; whatever a flow has from it on isn't read.
    """

    flows: tuple[OnceFlow, ...]
    end: dt.date

    @property
    def begin(self) -> dt.date:
        """The first day of all."""
        return self.flows[0].begin

    def find_flow(self, day: dt.date) -> OnceFlow | None:
        """Finds the flow that fills a day; None for a day of the feed."""
        if day >= self.end:
            return None
        return next((flow for flow in self.flows if flow.holds(day)), None)

    def find_end(self, flow: OnceFlow) -> dt.date:
        """Finds the day after the last that a flow fills beside the feed."""
        return min(flow.end, self.end)
