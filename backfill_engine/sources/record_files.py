"""Files of records by their format: CSV, Parquet, and JSON as lines or as one array a file.

Each record becomes a line of JSON, as it would land as one, so that all formats share what reads
lines: types, rejects, fields that nobody declared.
"""

import csv
import datetime as dt
import gzip
import io
import json
from abc import abstractmethod
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import reduce
from typing import ClassVar, Literal, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from backfill_engine.audit_columns import (
    ENGINE_PREFIX,
    LANDED_FILE,
    LANDED_LINE,
    REJECT_REASON,
    REJECTED_LINE,
)
from backfill_engine.engines.engine import LandedFiles
from backfill_engine.engines.sessions import find_engine
from backfill_engine.errors import DeclarationError, LandingError
from backfill_engine.grains.grain import Grain
from backfill_engine.lake.landing import LandingFile, open_landing_zone
from backfill_engine.sources.landed_lines import UNREADABLE, count_lines, read_pieces
from backfill_engine.sources.pattern_files import WHERE, PatternFiles, can_say
from backfill_engine.tables.column_types import BARE
from backfill_engine.tables.columns import Column

_UNREADABLE = (*UNREADABLE, ValueError, csv.Error, pa.ArrowException)
_BYTE_ORDER_MARK = "\ufeff"
_BROKEN = f"{ENGINE_PREFIX}broken"
_NUMBER_OR_BOOLEAN = r"^(true|false|-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?)$"


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
"""Where a field comes from: a source column as it is, a part of a date, or a constant."""


@dataclass(frozen=True)
class ColumnFiles(PatternFiles):
    """Files whose records are in columns, which each file names.

    Attributes:
        origins: by field, where it comes from, if not from the column of its name. What isn't named
            is null then, and what else the source has isn't read. `where` is a column of the file.
    """

    origins: tuple[tuple[str, Origin], ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        names = [name for name, _ in self.origins]
        if twice := [name for at, name in enumerate(names) if name in names[:at]]:
            raise DeclarationError(f"{self.owner}: `origins` has `{twice[0]}` twice: remove one")
        if not all(self.source_columns):
            raise DeclarationError(f"{self.owner}: a source column has no name in `origins`")

    @property
    def source_columns(self) -> tuple[str, ...]:
        """The source columns that must be there, each once."""
        named = (
            origin.column if isinstance(origin, DatePart) else origin
            for _, origin in self.origins
            if not isinstance(origin, Constant)
        )
        required = () if self.origins else (f.name for f in self.fields if not f.nullable)
        where = (self.where,) if self.where else ()
        return tuple(dict.fromkeys((*where, *named, *required)))

    def find_fault(self, file: LandingFile) -> str:
        """Finds why a file can't be read as it is declared, in words; empty if it can."""
        try:
            columns = [name for name, _ in self.read_columns(file)]
        except _UNREADABLE:
            return f"can't be read as {self.format}: land it again"
        for name in self.source_columns:
            if name not in columns:
                return f"lacks the column {name}: land it again"
        if twice := [name for at, name in enumerate(columns) if name in columns[:at]]:
            return f"has the column {twice[0]} more than once: land it again"
        return ""

    def read_records(
        self, spark: SparkSession, files: Sequence[LandingFile], root: str, source_file: SparkColumn
    ) -> DataFrame:
        """Reads the records of files as lines; what can't be mapped stays as it came."""
        frames: list[DataFrame] = []
        for names, uris in self._group_alike(files):
            rows, texts = self.open(spark, names, root, uris)
            where = texts[self.where] if self.where else F.lit(None).cast("string")
            line = self._build_line(texts).alias(LANDED_LINE)
            frames.append(rows.select(line, where.alias(WHERE), source_file.alias(LANDED_FILE)))
        return reduce(DataFrame.unionByName, frames)

    def _group_alike(
        self, files: Sequence[LandingFile]
    ) -> Iterator[tuple[list[str], tuple[str, ...]]]:
        """Groups files with the same columns: these, and their URIs.

        Spark would take the columns of one file for those of all.
        """
        alike: dict[tuple[tuple[str, str], ...], list[str]] = defaultdict(list)
        for file in files:
            alike[self.read_columns(file)].append(file.uri)
        for columns, uris in alike.items():
            yield [name for name, _ in columns], tuple(uris)

    def _build_line(self, texts: Mapping[str, SparkColumn]) -> SparkColumn:
        declared = {field.name: field for field in self.fields}
        if self.origins:
            origins = {name: dict(self.origins).get(name) for name in declared}
        else:
            origins = {name: name if name in texts else None for name in [*declared, *texts]}
        fields = (
            _write_field(declared.get(name, _UNDECLARED), name, _build_field(origin, texts))
            for name, origin in origins.items()
        )
        dates = {origin.column for origin in origins.values() if isinstance(origin, DatePart)}
        is_dated = reduce(
            SparkColumn.__and__,
            (_parse_day(texts[name]).isNotNull() for name in dates),
            F.lit("true").cast("boolean"),
        )
        as_it_came = F.struct(*(text.alias(name) for name, text in texts.items()))
        return F.coalesce(
            F.col(_BROKEN),
            F.when(is_dated, F.concat(F.lit("{"), F.concat_ws(",", *fields), F.lit("}"))),
            F.to_json(as_it_came, {"ignoreNullFields": "false"}),
        )

    @abstractmethod
    def read_columns(self, file: LandingFile) -> tuple[tuple[str, str], ...]:
        """Reads name and type of a file's columns, in their order; of an empty file there are none.

        Raises:
            OSError, EOFError, zlib.error, ValueError, csv.Error, pyarrow.ArrowException: if it
                can't be read.
        """

    @abstractmethod
    def open(
        self, spark: SparkSession, columns: Sequence[str], root: str, uris: tuple[str, ...]
    ) -> tuple[DataFrame, dict[str, SparkColumn]]:
        """Opens files of these columns; returns their rows, and by name of a column its text.

        The rows have a column `_BROKEN`, STRING: the line of a record that can't be read.
        """


@dataclass(frozen=True)
class CsvFiles(ColumnFiles):
    """CSV, maybe gzipped: `CsvFiles("trips/{partition:%Y-%m}.csv", fields=…, where="day")`.

    A byte order mark at its begin is none of its text. A line with too many or too few columns is
    rejected as it came.

    Attributes:
        delimiter: between columns.
        quote: around a column that has a delimiter in it.
        escape: before a quote that is text; the quote itself means that it is written twice.
        null: the text of a column that is null.
        header: whether the first line names the columns; else they are the fields, in their order.
        encoding: of its text.
    """

    delimiter: str = ","
    quote: str = '"'
    escape: str = '"'
    null: str = ""
    header: bool = True
    encoding: str = "utf-8"
    suffixes: ClassVar[tuple[str, ...]] = (".csv", ".csv.gz", ".tsv", ".tsv.gz", ".txt", ".txt.gz")
    format: ClassVar[str] = "csv"

    def read_columns(self, file: LandingFile) -> tuple[tuple[str, str], ...]:
        """Reads the names in the first line; all are text."""
        if not self.header:
            return tuple((field.name, "string") for field in self.fields)
        with self._open_lines(file) as lines:
            return tuple((name, "string") for name in self._split(next(lines, "")))

    def count_by_text(self, file: LandingFile) -> Counter[str | None]:
        """Counts the lines that aren't blank by what their field `where` holds."""
        names = [name for name, _ in self.read_columns(file)]
        with self._open_lines(file) as lines:
            if self.header:
                next(lines, "")
            records = (line for line in lines if line.strip())
            if not self.where:
                return Counter({None: sum(1 for _ in records)})
            at = names.index(self.where)
            split = map(self._split, records)
            return Counter(record[at] if at < len(record) else None for record in split)

    def open(
        self, spark: SparkSession, columns: Sequence[str], root: str, uris: tuple[str, ...]
    ) -> tuple[DataFrame, dict[str, SparkColumn]]:
        """Opens files by the position of their columns, as names may differ by case alone."""
        schema = "".join(f"`_{at}` string, " for at in range(len(columns)))
        options: dict[str, str | bool] = {
            "sep": self.delimiter,
            "quote": self.quote,
            "escape": self.escape,
            "nullValue": self.null,
            "encoding": self.encoding,
            "header": self.header,
            "mode": "PERMISSIVE",
            "columnNameOfCorruptRecord": _BROKEN,
            # With fewer columns Spark wouldn't see that a line has too many.
            "enforceSchema": True,
        }
        files = LandedFiles(root, uris, "csv", f"{schema}`{_BROKEN}` string", options)
        rows = find_engine(spark).read_files(spark, files)
        return rows, {name: F.col(f"_{at}") for at, name in enumerate(columns)}

    def _split(self, line: str) -> list[str]:
        doubles = self.escape == self.quote
        reader = csv.reader(
            [line.rstrip("\r\n")],
            delimiter=self.delimiter,
            quotechar=self.quote,
            escapechar=None if doubles else self.escape,
        )
        return next(reader, [])

    @contextmanager
    def _open_lines(self, file: LandingFile) -> Iterator[Iterator[str]]:
        filesystem, path = open_landing_zone(file.uri)
        with ExitStack() as opened:
            content = opened.enter_context(filesystem.open_input_file(path))
            if file.uri.endswith(".gz"):
                content = opened.enter_context(gzip.open(content))
            # A field with a line's end in it is no field for Spark's reader either.
            lines = io.TextIOWrapper(
                io.BufferedReader(content),  # type: ignore[arg-type]
                encoding=self.encoding,
                newline=None,
            )
            yield (
                line.removeprefix(_BYTE_ORDER_MARK) if at == 0 else line
                for at, line in enumerate(lines)
            )


_ARROW_KINDS = {
    **dict.fromkeys(("int", "uint"), "INT"),
    **dict.fromkeys(("float", "double", "halffloat"), "DOUBLE"),
    **{"bool": "BOOLEAN", "date": "DATE", "timestamp": "TIMESTAMP"},
}
"""Kinds of types, as they are declared, by how the names of Arrow's begin."""


@dataclass(frozen=True)
class ParquetFiles(ColumnFiles):
    """Parquet: `ParquetFiles("trips/{partition:%Y-%m}.parquet", where="pickup")`."""

    suffixes: ClassVar[tuple[str, ...]] = (".parquet",)
    format: ClassVar[str] = "parquet"

    def read_columns(self, file: LandingFile) -> tuple[tuple[str, str], ...]:
        """Reads the columns that the footer says."""
        filesystem, path = open_landing_zone(file.uri)
        schema = pq.read_schema(path, filesystem=filesystem)
        return tuple((field.name, str(field.type)) for field in schema)

    def find_where_fault(self, file: LandingFile, grain: Grain) -> str:
        """Finds whether the column `where` is a number or a day where the grain has none."""
        type_ = dict(self.read_columns(file)).get(self.where, "") if self.where else ""
        kind = next((kind for name, kind in _ARROW_KINDS.items() if type_.startswith(name)), "")
        if not kind or can_say(kind, grain):
            return ""
        return f"has {self.where} as {type_}, which says no partition by {grain}: correct `where`"

    def count_by_text(self, file: LandingFile) -> Counter[str | None]:
        """Counts the rows by what their column `where` holds."""
        filesystem, path = open_landing_zone(file.uri)
        if not self.where:
            return Counter({None: pq.read_metadata(path, filesystem=filesystem).num_rows})
        values = pq.read_table(path, columns=[self.where], filesystem=filesystem).column(0)
        counted = values.value_counts().to_pylist()
        return Counter({_write_value(found["values"]): found["counts"] for found in counted})

    def read_typed(
        self, spark: SparkSession, files: Sequence[LandingFile], root: str, source_file: SparkColumn
    ) -> DataFrame | None:
        """Reads the columns as the files have them; declared fields, if that loses nothing.

        Raises:
            LandingError: if a file has a column `source_file`.
        """
        if self.origins:
            return None
        frames: list[DataFrame] = []
        for names, uris in self._group_alike(files):
            if LANDED_FILE in map(str.lower, names):
                raise LandingError(
                    f"{self.owner} has a column `{LANDED_FILE}`, which says where a record landed: "
                    "declare the fields to read, without it; nothing was written"
                )
            rows, texts = self.open(spark, names, root, uris)
            types = {field.name: field.dataType for field in rows.schema.fields}
            fields = self.fields or [Column(name, types[name].simpleString()) for name in names]
            typed = {field.name: _type_value(field, types) for field in fields}
            record = F.to_json(F.struct(*map(_quote, names)), {"ignoreNullFields": "false"})
            why = F.coalesce(*(_find_why(field, typed, types) for field in fields))
            frames.append(
                rows.select(
                    *(value.alias(name) for name, value in typed.items()),
                    (texts[self.where] if self.where else F.lit(None).cast("string")).alias(WHERE),
                    source_file.alias(LANDED_FILE),
                    why.alias(REJECT_REASON),
                    record.alias(REJECTED_LINE),
                )
            )
        return reduce(lambda rows, more: rows.unionByName(more, allowMissingColumns=True), frames)

    def open(
        self, spark: SparkSession, columns: Sequence[str], root: str, uris: tuple[str, ...]
    ) -> tuple[DataFrame, dict[str, SparkColumn]]:
        """Opens files; values of nested types are written as JSON."""
        rows = find_engine(spark).read_files(spark, LandedFiles(root, uris, "parquet"))
        types = {field.name: field.dataType for field in rows.schema.fields}
        texts = {name: _write_text(F.col(f"`{name}`"), types[name]) for name in columns}
        return rows.withColumn(_BROKEN, F.lit(None).cast("string")), texts


def _quote(name: str) -> SparkColumn:
    return F.col(f"`{name}`")


def _type_value(field: Column, types: Mapping[str, T.DataType]) -> SparkColumn:
    if field.name not in types:
        return F.lit(None).cast(field.type)
    return _quote(field.name).try_cast(field.type)


def _find_why(
    field: Column, typed: Mapping[str, SparkColumn], types: Mapping[str, T.DataType]
) -> SparkColumn:
    """Builds why a record is rejected, STRING; null where the field is as it is declared."""
    value, why = typed[field.name], F.lit(None).cast("string")
    if field.name in types:
        read, type_ = _quote(field.name), types[field.name].simpleString()
        if Column(field.name, type_).type != field.type:
            is_lost = read.isNotNull() & ~value.try_cast(type_).eqNullSafe(read)
            text = F.left(_write_text(read, types[field.name]), F.lit(40))
            why = F.when(is_lost, F.concat(F.lit(f"`{field.name}` is not {field.type}: "), text))
    if field.nullable:
        return why
    return F.coalesce(why, F.when(value.isNull(), F.lit(f"`{field.name}` is missing")))


_UNDECLARED = Column("undeclared", "STRING", "")


def _write_value(value: object) -> str | None:
    """Writes a value as `_write_text` does."""
    if isinstance(value, dt.datetime):
        is_aware = value.tzinfo is not None
        moment = value.astimezone(dt.UTC) if is_aware else value
        return f"{moment:%Y-%m-%dT%H:%M:%S.%f}{'Z' * is_aware}"
    return None if value is None else str(value)


def _write_text(value: SparkColumn, type_: T.DataType) -> SparkColumn:
    """Writes a value as JSON's text of it would be: dates and times as ISO 8601 has them."""
    match type_:
        case T.TimestampType():
            return F.date_format(value, "yyyy-MM-dd'T'HH:mm:ss.SSSSSS'Z'")
        case T.TimestampNTZType():
            return F.date_format(value, "yyyy-MM-dd'T'HH:mm:ss.SSSSSS")
        case T.BinaryType():
            return F.base64(value)
        case T.StructType() | T.ArrayType() | T.MapType():
            return F.to_json(value)
        case _:
            return value.cast("string")


def _parse_day(text: SparkColumn) -> SparkColumn:
    return F.when(text.rlike(r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"), text.try_cast("date"))


_NESTED = ("ARRAY", "STRUCT", "MAP")


def _write_field(field: Column, name: str, text: SparkColumn) -> SparkColumn:
    """Writes a field as JSON has it: what can be a number or a boolean, and is to be, as that."""
    in_array = F.to_json(F.array(text))
    written = F.substring(in_array, F.lit(2), F.length(in_array) - 2)
    if field.type in BARE or field.type.startswith("DECIMAL"):
        written = F.when(text.rlike(_NUMBER_OR_BOOLEAN), text).otherwise(written)
    elif field.type.startswith(_NESTED):
        written = F.coalesce(text, F.lit("null"))
    return F.concat(F.lit(f"{json.dumps(name)}:"), written)


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


@dataclass(frozen=True)
class JsonFiles(PatternFiles):
    """JSON, maybe gzipped: a record a line, or one array a file, whichever a file begins with."""

    suffixes: ClassVar[tuple[str, ...]] = (".json", ".json.gz", ".jsonl", ".jsonl.gz", ".ndjson")
    format: ClassVar[str] = "json"

    def find_fault(self, file: LandingFile) -> str:
        """Finds why a file's begin can't be read; empty if it can."""
        try:
            self._is_array(file)
        except _UNREADABLE:
            return "can't be read as json: land it again"
        return ""

    def count_by_text(self, file: LandingFile) -> Counter[str | None]:
        """Counts the records by what their field `where` holds.

        Raises:
            ValueError: if a record is no JSON object, whose field Spark may find all the same.
        """
        is_array = self._is_array(file)
        if not is_array and not self.where:
            return Counter({None: count_lines(file)})
        text = b"".join(read_pieces(file)).decode("utf-8-sig")
        records = json.loads(text) if is_array else _parse_lines(text)
        if not self.where:
            return Counter({None: len(records)})
        return Counter(_find_text(record, self.where) for record in records)

    def read_records(
        self, spark: SparkSession, files: Sequence[LandingFile], root: str, source_file: SparkColumn
    ) -> DataFrame:
        """Reads the records as they came, without the byte order mark of their file."""
        frames: list[DataFrame] = []
        for is_array in (True, False):
            uris = tuple(file.uri for file in files if self._is_array(file) is is_array)
            if uris:
                landed = LandedFiles(root, uris, "text", options={"wholetext": is_array})
                lines = find_engine(spark).read_files(spark, landed)
                text = F.ltrim(F.regexp_replace(LANDED_LINE, f"^{_BYTE_ORDER_MARK}", ""))
                line = F.explode_outer(F.from_json(text, "array<string>")) if is_array else text
                frames.append(lines.select(line.alias(LANDED_LINE), source_file.alias(LANDED_FILE)))
        where = (
            F.get_json_object(LANDED_LINE, f"$['{self.where}']")
            if self.where
            else F.lit(None).cast("string")
        )
        rows = reduce(DataFrame.unionByName, frames).where(F.col(LANDED_LINE).rlike(r"\S"))
        return rows.select(LANDED_LINE, where.alias(WHERE), LANDED_FILE)

    def _is_array(self, file: LandingFile) -> bool:
        for piece in read_pieces(file):
            if begin := piece.removeprefix(_BYTE_ORDER_MARK.encode()).lstrip():
                return begin.startswith(b"[")
        return False


def _parse_lines(text: str) -> list[object]:
    return [json.loads(line) for line in text.splitlines() if line.strip()]


def _find_text(record: object, name: str) -> str | None:
    if not isinstance(record, dict):
        raise ValueError("no object")
    value = record.get(name)
    return value if isinstance(value, str) or value is None else json.dumps(value)
