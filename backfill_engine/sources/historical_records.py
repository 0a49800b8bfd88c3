"""What a file of a historical load holds: its columns; its records as lines like the feed's."""

import csv
import datetime as dt
import gzip
import io
import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import reduce
from typing import Literal, TypeAlias, get_args

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame, DataFrameReader, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from backfill_engine.audit_columns import ENGINE_PREFIX, LANDED_FILE, LANDED_LINE
from backfill_engine.errors import DeclarationError
from backfill_engine.lake.landing import LandingFile, open_landing_zone, relative_name
from backfill_engine.sources.landed_lines import UNREADABLE
from backfill_engine.sources.landing_names import look_up_file, plan_reads
from backfill_engine.tables.column_types import BARE
from backfill_engine.tables.columns import Column

Format: TypeAlias = Literal["csv", "parquet"]

_READER_OPTIONS: dict[str, frozenset[str]] = {
    "csv": frozenset({"sep", "quote", "escape", "nullValue"}),
    "parquet": frozenset({"datetimeRebaseMode", "int96RebaseMode"}),
}
"""Those by which no record is lost; such as `mode` or `comment` would drop some without a word."""

_CSV_OPTIONS = {"sep": ",", "quote": '"', "escape": '"'}
"""As RFC 4180 has it; a flow may say otherwise."""

_ISO_DAY = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"
"""How a day is written, in Python and in Spark."""

_BYTE_ORDER_MARK = "\ufeff"


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
class RecordLayout:
    """How the files of a historical load hold the fields that the feed has.

    Attributes:
        name: of the flow.
        day: the source column that says which day a record is of, as YYYY-MM-DD or a DATE.
        fields: by declared field, where it comes from. What isn't named is null, and what else the
            source has isn't read.
        format: `csv`, with a line of names and maybe gzipped (`*.csv.gz`), or `parquet`.
        spark_options: of Spark's reader, such as `("sep", ";")`.
        record_fields: all that a record of the table may have; set by the asset that declares it.

    Raises:
        DeclarationError: when it is made, if it can't be as it is declared.
    """

    name: str
    day: str
    fields: tuple[tuple[str, Origin], ...]
    format: Format = "csv"
    spark_options: tuple[tuple[str, str], ...] = ()
    record_fields: tuple[Column, ...] = ()

    def __post_init__(self) -> None:
        if self.format not in get_args(Format):
            raise self._refuse(
                f"`format` can't be `{self.format}`: choose of {', '.join(get_args(Format))}"
            )
        names = [name for name, _ in self.fields]
        if twice := [name for at, name in enumerate(names) if name in names[:at]]:
            raise self._refuse(f"`fields` has `{twice[0]}` twice: remove one")
        if not all(self.source_columns):
            raise self._refuse("a source column has no name: `day` and `fields` name them")
        known = _READER_OPTIONS[self.format]
        for name, _ in self.spark_options:
            if name not in known:
                raise self._refuse(
                    f"the option `{name}` of Spark's reader isn't taken: choose of "
                    f"{', '.join(sorted(known))}, which lose no record"
                )

    @property
    def source_columns(self) -> tuple[str, ...]:
        """The source columns that are read, each once."""
        named = (
            origin.column if isinstance(origin, DatePart) else origin
            for _, origin in self.fields
            if not isinstance(origin, Constant)
        )
        return tuple(dict.fromkeys((self.day, *named)))

    @property
    def suffixes(self) -> tuple[str, ...]:
        """Ends of the names of its files."""
        return (".csv", ".csv.gz") if self.format == "csv" else (".parquet",)

    def _refuse(self, why: str) -> DeclarationError:
        return DeclarationError(f"historical load `{self.name}`: {why}")


@dataclass(frozen=True, order=True)
class DatedFile:
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


def find_fault(file: LandingFile, layout: RecordLayout) -> str:
    """Finds why a file can't be read as it is declared, in words; empty if it can."""
    try:
        columns = [name for name, _ in read_columns(file, layout)]
    except (*UNREADABLE, UnicodeDecodeError, csv.Error, pa.ArrowException):
        return f"can't be read as {layout.format}: land it again"
    for name in layout.source_columns:
        if name not in columns:
            return (
                f"lacks the column {name}, which the historical load {layout.name} reads: "
                "land it again"
            )
        if columns.count(name) > 1:
            return f"has the column {name} more than once: land it again"
    return ""


def read_columns(file: LandingFile, layout: RecordLayout) -> tuple[tuple[str, str], ...]:
    """Reads name and type of a file's columns, in their order; of an empty file there are none.

    Raises:
        OSError, EOFError, zlib.error, UnicodeDecodeError, csv.Error, pyarrow.ArrowException: if it
            can't be read.
    """
    if layout.format == "parquet":
        filesystem, path = open_landing_zone(file.uri)
        schema = pq.read_schema(path, filesystem=filesystem)
        return tuple((field.name, str(field.type)) for field in schema)
    with _open_lines(file) as lines:
        return tuple((name, "string") for name in _split(next(lines, ""), layout))


def count_days(dated_file: DatedFile, layout: RecordLayout) -> Counter[dt.date]:
    """Counts a file's records by the day whose partition takes them in; without Spark.

    Raises:
        What `read_columns` raises.
    """
    found: Counter[dt.date] = Counter()
    for value, records in _count_values(dated_file.file, layout).items():
        day = _read_day(value)
        is_own = day is not None and dated_file.first <= day <= dated_file.last
        found[day if is_own else dated_file.first] += records  # type: ignore[index]
    return found


def _count_values(file: LandingFile, layout: RecordLayout) -> Counter[object]:
    """Counts a file's records by what is in their column of the day."""
    if layout.format == "parquet":
        filesystem, path = open_landing_zone(file.uri)
        days = pq.read_table(path, columns=[layout.day], filesystem=filesystem).column(layout.day)
        return Counter(days.to_pylist())
    with _open_lines(file) as lines:
        at = _split(next(lines, ""), layout).index(layout.day)
        records = (_split(line, layout) for line in lines if line.strip())
        return Counter(record[at] if at < len(record) else "" for record in records)


def _read_day(value: object) -> dt.date | None:
    if isinstance(value, str) and re.match(_ISO_DAY, value):
        try:
            return dt.date.fromisoformat(value)
        except ValueError:
            return None
    if isinstance(value, dt.datetime):
        return value.date()
    return value if isinstance(value, dt.date) else None


def _split(line: str, layout: RecordLayout) -> list[str]:
    options = {**_CSV_OPTIONS, **dict(layout.spark_options)}
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


_BROKEN = f"{ENGINE_PREFIX}broken"
_NUMBER_OR_BOOLEAN = r"^(true|false|-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?)$"


def read_records(
    spark: SparkSession,
    layout: RecordLayout,
    files: Sequence[DatedFile],
    *,
    root: str,
    by: str,
    source_file: SparkColumn,
) -> DataFrame:
    """Reads the records of files, at least one, as the lines that the feed would have landed.

    What can't be mapped stays as it came, so that it is rejected with its own text: a line with too
    many or too few columns, and a record whose date is none. A record that says no day of its file
    belongs to the first of them.

    Args:
        spark: the session.
        layout: of the files.
        files: which.
        root: of the landing zone.
        by: name of the column of the day.
        source_file: the name of a row's file below the root.

    Returns:
        `value` STRING, the line; `by` DATE; `source_file` STRING.
    """
    names = {relative_name(dated.file.uri, root): dated for dated in files}
    first = look_up_file({name: dated.first.isoformat() for name, dated in names.items()}, "date")
    last = look_up_file({name: dated.last.isoformat() for name, dated in names.items()}, "date")
    alike: dict[tuple[tuple[str, str], ...], list[str]] = defaultdict(list)
    for dated in files:
        # Of Parquet files Spark would take the columns of one for those of all.
        alike[read_columns(dated.file, layout)].append(dated.file.uri)
    frames: list[DataFrame] = []
    for columns, uris in alike.items():
        for options, paths in plan_reads(root, uris):
            reader = spark.read.options(**options).options(**dict(layout.spark_options))
            rows, texts = _open(reader, layout, [name for name, _ in columns], paths)
            rows = rows.select(*texts.values(), _BROKEN, source_file.alias(LANDED_FILE))
            texts = {name: F.col(f"_{at}") for at, name in enumerate(texts)}
            day = _parse_day(texts[layout.day])
            own_day = F.when(day.between(first, last), day).otherwise(first)
            line = _build_line(layout, texts)
            frames.append(rows.select(line.alias(LANDED_LINE), own_day.alias(by), LANDED_FILE))
    return reduce(DataFrame.unionByName, frames)


def _open(
    reader: DataFrameReader, layout: RecordLayout, columns: Sequence[str], paths: list[str]
) -> tuple[DataFrame, dict[str, SparkColumn]]:
    """Opens files; returns their rows, and by name of a column its text."""
    if layout.format == "parquet":
        rows = reader.parquet(*paths)
        types = {field.name: field.dataType for field in rows.schema.fields}
        texts = {n: _write_text(F.col(f"`{n}`"), types[n]) for n in layout.source_columns}
        rows = rows.withColumn(_BROKEN, F.lit(None).cast("string"))
    else:
        # By position, as names may differ by case alone; all of them, as with fewer Spark wouldn't
        # see that a line has too many.
        texts = {name: F.col(f"_{at}") for at, name in enumerate(columns)}
        schema = "".join(f"`_{at}` string, " for at in range(len(columns)))
        rows = reader.options(
            **{**_CSV_OPTIONS, **dict(layout.spark_options)},
            header=True,
            mode="PERMISSIVE",
            columnNameOfCorruptRecord=_BROKEN,
            columnPruning=False,
        ).csv(paths, schema=f"{schema}`{_BROKEN}` string")
    read = layout.source_columns
    return rows, {name: texts[name].alias(f"_{at}") for at, name in enumerate(read)}


def _write_text(value: SparkColumn, type_: T.DataType) -> SparkColumn:
    """Writes a value as JSON's text of it would be: dates and times as ISO 8601 has them."""
    if isinstance(type_, T.TimestampType):
        return F.date_format(value, "yyyy-MM-dd'T'HH:mm:ss.SSSSSS'Z'")
    return value.cast("string")


def _parse_day(text: SparkColumn) -> SparkColumn:
    return F.when(text.rlike(_ISO_DAY), text.try_cast("date"))


def _build_line(layout: RecordLayout, texts: Mapping[str, SparkColumn]) -> SparkColumn:
    origins = dict(layout.fields)
    fields = (
        _write_field(field, _build_field(origins.get(field.name), texts))
        for field in layout.record_fields
    )
    dates = {origin.column for origin in origins.values() if isinstance(origin, DatePart)}
    is_dated = reduce(
        SparkColumn.__and__,
        (_parse_day(texts[name]).isNotNull() for name in dates),
        F.lit("true").cast("boolean"),
    )
    as_it_came = F.struct(*(text.alias(name) for name, text in texts.items()))
    return F.coalesce(
        _BROKEN,
        F.when(is_dated, F.concat(F.lit("{"), F.concat_ws(",", *fields), F.lit("}"))),
        F.to_json(as_it_came, {"ignoreNullFields": "false"}),
    )


def _write_field(field: Column, text: SparkColumn) -> SparkColumn:
    """Writes a field as JSON has it: what can be a number or a boolean, and is to be, as that."""
    in_array = F.to_json(F.array(text))
    written = F.substring(in_array, F.lit(2), F.length(in_array) - 2)
    if field.type in BARE:
        written = F.when(text.rlike(_NUMBER_OR_BOOLEAN), text).otherwise(written)
    return F.concat(F.lit(f"{json.dumps(field.name)}:"), written)


def _build_field(origin: Origin | None, texts: Mapping[str, SparkColumn]) -> SparkColumn:
    match origin:
        case None:
            return F.lit(None).cast("string")
        case Constant(value=value):
            return F.lit(value)
        case DatePart(column=column, part=part):
            parts = {"year": F.year, "month": F.month, "day": F.day}
            return parts[part](_parse_day(texts[column])).cast("string")
        case _:
            return texts[origin]
