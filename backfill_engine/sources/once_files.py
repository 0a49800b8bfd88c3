"""Files of a once-flow, without Spark: the columns that they have, and records by day."""

import csv
import datetime as dt
import gzip
import io
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq

from backfill_engine.lake.landing import LandingFile, open_landing_zone
from backfill_engine.sources.landed_lines import UNREADABLE
from backfill_engine.tables.once_flows import OnceFlow

ISO_DAY = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"
"""How a day is written, in Python and in Spark."""

CSV_OPTIONS = {"sep": ",", "quote": '"', "escape": '"'}
"""As RFC 4180 has it; a flow may say otherwise."""

_BYTE_ORDER_MARK = "\ufeff"


@dataclass(frozen=True, order=True)
class OnceFile:
    """A file, and the days whose records it is to hold.

    Attributes:
        file: the file.
        first: the first of the days. A record that says another day, or none, belongs to it.
        last: the last of them, included.
    """

    file: LandingFile
    first: dt.date
    last: dt.date

    @property
    def days(self) -> int:
        """How many days these are."""
        return (self.last - self.first).days + 1

    def find_place(self, day: dt.date | None) -> dt.date:
        """Finds the day whose partition takes in a record that says this day."""
        return day if day is not None and self.first <= day <= self.last else self.first


def find_fault(once_file: OnceFile, flow: OnceFlow) -> str:
    """Finds why a file can't be read as it is declared, in words; empty if it can."""
    try:
        columns = [name for name, _ in read_columns(once_file.file, flow)]
    except (*UNREADABLE, UnicodeDecodeError, csv.Error, pa.ArrowException):
        return f"can't be read as {flow.format}: land it again"
    lacking = [name for name in flow.columns if name not in columns]
    if lacking:
        return (
            f"lacks the column {lacking[0]}, which the once-flow {flow.name} reads: land it again"
        )
    twice = [name for name in flow.columns if columns.count(name) > 1]
    return f"has the column {twice[0]} more than once: land it again" if twice else ""


def read_columns(file: LandingFile, flow: OnceFlow) -> tuple[tuple[str, str], ...]:
    """Reads name and type of a file's columns, in their order; of an empty file there are none.

    Raises:
        OSError, EOFError, zlib.error, UnicodeDecodeError, csv.Error, pyarrow.ArrowException: if it
            can't be read.
    """
    if flow.format == "parquet":
        filesystem, path = open_landing_zone(file.uri)
        schema = pq.read_schema(path, filesystem=filesystem)
        return tuple((field.name, str(field.type)) for field in schema)
    with _open_lines(file) as lines:
        return tuple((name, "string") for name in _split(next(lines, ""), flow))


def count_days(once_file: OnceFile, flow: OnceFlow) -> Counter[dt.date]:
    """Counts a file's records by the day whose partition takes them in.

    Raises:
        What `read_columns` raises.
    """
    found: Counter[dt.date] = Counter()
    for text, records in _count_texts(once_file.file, flow).items():
        found[once_file.find_place(_read_day(text))] += records
    return found


def _count_texts(file: LandingFile, flow: OnceFlow) -> Counter[object]:
    if flow.format == "parquet":
        filesystem, path = open_landing_zone(file.uri)
        days = pq.read_table(path, columns=[flow.day], filesystem=filesystem).column(flow.day)
        return Counter(days.to_pylist())
    with _open_lines(file) as lines:
        columns = _split(next(lines, ""), flow)
        at, found = columns.index(flow.day), Counter[object]()
        for line in lines:
            if line.strip():
                fields = _split(line, flow)
                found[fields[at] if at < len(fields) else ""] += 1
        return found


def _read_day(value: object) -> dt.date | None:
    if isinstance(value, dt.datetime):
        return value.date()
    if isinstance(value, dt.date):
        return value
    if not isinstance(value, str) or not re.match(ISO_DAY, value):
        return None
    try:
        return dt.date.fromisoformat(value)
    except ValueError:
        return None


def _split(line: str, flow: OnceFlow) -> list[str]:
    options = {**CSV_OPTIONS, **dict(flow.spark_options)}
    doubles = options["escape"] == options["quote"]
    reader = csv.reader(
        [line.rstrip("\r\n")],
        delimiter=options["sep"],
        quotechar=options["quote"],
        escapechar=None if doubles else options["escape"],
    )
    return next(reader, [])


@contextmanager
def _open_lines(file: LandingFile) -> Iterator[Iterator[str]]:
    filesystem, path = open_landing_zone(file.uri)
    with ExitStack() as opened:
        content = opened.enter_context(filesystem.open_input_file(path))
        if file.uri.endswith(".gz"):
            content = opened.enter_context(gzip.open(content))
        # A field with a line's end in it is no field for Spark's reader either.
        lines = io.TextIOWrapper(io.BufferedReader(content), encoding="utf-8", newline=None)  # type: ignore[arg-type]
        yield (
            line.removeprefix(_BYTE_ORDER_MARK) if at == 0 else line
            for at, line in enumerate(lines)
        )
