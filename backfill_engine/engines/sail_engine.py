"""Sail: a Spark Connect server over DataFusion, in this process, without Java.

Its server has no catalog that lasts: a table has a name in a session, by which statements find it,
and is its folder and its log for all else.
"""

import atexit
import csv
import gzip
import os
import re
import shutil
import tempfile
import uuid
import zlib
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, partial
from hashlib import sha256
from pathlib import Path
from urllib.parse import quote, unquote

import psutil
import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema

from backfill_engine.audit_columns import LANDED_LINE
from backfill_engine.engines.delta_commits import write_empty_commit, write_new_columns
from backfill_engine.engines.engine import FILE_PATH, NOT_UTF8, Engine, LandedFiles, NewTable
from backfill_engine.errors import EngineError, TableError
from backfill_engine.filesystems import open_filesystem
from backfill_engine.uris import is_local

_STATEMENTS = ("DELETE", "MERGE")
_WAY = "only Spark can do that: do it with BACKFILL_ENGINE=spark"
_STRANGE = re.compile(r"[^\w/.,=+@~ -]")
"""What Sail takes for part of a URL, or of a pattern, in a path."""
_SCRATCH = "backfill-assets-sail-"
_BATCH_ROWS = 64 * 1024


class SailEngine(Engine):
    """Sail does what a run needs; what it can't do yet is refused by one line."""

    tells_mistyped_json = False

    def __init__(self) -> None:
        self._kept: dict[int, Path] = {}

    def read_files(self, spark: SparkSession, files: LandedFiles) -> DataFrame:
        """Reads files by Arrow, in Python functions, as Sail's readers tell no file's name."""
        schema = _find_schema(spark, files)
        arrow = to_arrow_schema(schema, timezone="UTC")
        match files.format:
            case "text":
                read = _read_whole if files.options.get("wholetext") else _read_lines
            case "csv":
                read = partial(_read_csv, schema=arrow, options=files.options)
            case "parquet":
                read = partial(_read_parquet, schema=arrow)
        uris = spark.createDataFrame([(uri,) for uri in files.uris], "uri string")

        def read_in_tasks(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for batch in batches:
                for uri in batch.column(0).to_pylist():
                    path = pa.scalar(quote(uri, safe="/:=+&$,;@!~*'()"), pa.string())
                    try:
                        for records in read(uri):
                            paths = pa.repeat(path, records.num_rows)
                            yield records.append_column(FILE_PATH, paths)
                    except (OSError, EOFError, ValueError, csv.Error, zlib.error) as error:
                        raise OSError(f"{uri} can't be read: {error}") from error

        return uris.mapInArrow(read_in_tasks, schema.add(FILE_PATH, T.StringType()))

    def keep(self, frame: DataFrame) -> DataFrame:
        """Writes a frame to scratch files, as Sail persists nothing, and reads them."""
        folder = _find_scratch() / uuid.uuid4().hex
        frame.write.option("compression", "lz4").parquet(str(folder))
        # Of no rows Sail may write no file, which would say the columns.
        spark = frame.sparkSession
        if any(folder.glob("*.parquet")):
            kept = spark.read.parquet(str(folder))
        else:
            kept = spark.createDataFrame([], frame.schema)
        self._kept[id(kept)] = folder
        return kept

    def release(self, kept: DataFrame) -> None:
        """Removes the scratch files of a frame."""
        if (folder := self._kept.pop(id(kept), None)) is not None:
            shutil.rmtree(folder, ignore_errors=True)

    def create_table(self, spark: SparkSession, table: NewTable) -> None:
        """Creates a table by a name in this session, unless another one made it."""
        if DeltaTable.is_deltatable(table.uri):
            return  # Sail would take its dates for other types than the declared ones.
        if found := _STRANGE.search(table.uri.partition("://")[2] or table.uri):
            self.require(f"a table at {table.uri}, with {found[0]} in its path,")
        if re.search(r"\b(VAR)?CHAR\(", table.columns):
            self.require("a new table with a CHAR or VARCHAR column")
        spark.sql(table.build_statement(_name_table(table.uri), location=_quote_path(table.uri)))

    def append(self, frame: DataFrame, uri: str) -> None:
        """Adds columns, and appends rows."""
        stored = {field.name for field in DeltaTable(uri).schema().fields}
        if missing := [field for field in frame.schema.fields if field.name not in stored]:
            self._add_fields(uri, missing)
        frame.write.format("delta").mode("append").save(uri)

    def add_columns(self, spark: SparkSession, uri: str, columns: str) -> None:
        """Adds columns by a commit of ours."""
        self._add_fields(uri, spark.createDataFrame([], columns).schema.fields)

    def _add_fields(self, uri: str, fields: Sequence[T.StructField]) -> None:
        # Sail has no statement for that, and merges no schema where a column is required.
        table = DeltaTable(uri)
        is_mapped = "delta.columnMapping.mode" in table.metadata().configuration
        if is_mapped or any(isinstance(field.dataType, T.TimestampNTZType) for field in fields):
            self.require("a new column of this table")
        write_new_columns(uri, [field.jsonValue() for field in fields])

    def run_statement(
        self, spark: SparkSession, uri: str, statement: str, **frames: DataFrame
    ) -> None:
        """Runs a statement by the table's name in this session."""
        if not statement.startswith(_STATEMENTS):
            self.require(re.match(r"\w+", statement)[0])  # type: ignore[index]
        name = _name_table(uri)
        spark.sql(f"CREATE TABLE IF NOT EXISTS {name} USING DELTA LOCATION '{_quote_path(uri)}'")
        spark.sql(statement.replace("{table}", name), None, **frames)

    def read_ahead(self, spark: SparkSession, uri: str) -> None:
        """Reads nothing: a log is read in milliseconds."""

    def overwrite(
        self,
        frame: DataFrame,
        uri: str,
        predicate: str | None,
        *,
        user_metadata: str = "",
        transaction: str | None = None,
    ) -> None:
        """Replaces rows, and does what Sail doesn't: refuses others, and commits no rows for none.

        A transaction is left to the lock of a local table, as Sail writes no identifiers.
        """
        if transaction is not None and not is_local(uri):
            self.require("append_once in an object store")
        if predicate is None:
            write_empty_commit(uri, user_metadata)
            return
        is_within = f"coalesce({predicate}, false)"
        rows, within = frame.selectExpr("count(*)", f"count_if({is_within})").head() or (0, 0)
        if rows > within:
            raise TableError(
                f"{rows - within:,} rows lie outside of what is to be replaced ({predicate}): "
                "nothing was written"
            )
        before = DeltaTable(uri).version()
        # Past a function, as the check for nulls would else see rows that a filter leaves out.
        writer = frame.mapInArrow(_pass_on, frame.schema).write.format("delta").mode("overwrite")
        writer = writer.option("replaceWhere", predicate).option("userMetadata", user_metadata)
        writer.save(uri)
        if not rows and DeltaTable(uri).version() == before:
            write_empty_commit(uri, user_metadata)

    def vacuum(self, spark: SparkSession, uri: str) -> None:
        """Removes the files that delta-rs finds; to commit, it lacks the times in our commits."""
        filesystem, root = open_filesystem(uri)
        for name in DeltaTable(uri).vacuum(dry_run=True):
            filesystem.delete_file(f"{root}/{unquote(name)}")

    def require(self, ability: str) -> None:
        """Refuses what only Spark can do."""
        raise EngineError(f"{ability}: {_WAY}; nothing was written")


SAIL = SailEngine()


def remove_scratch() -> None:
    """Removes the scratch files of processes that were killed."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_SCRATCH}*"):
        process = folder.name.removeprefix(_SCRATCH).partition("-")[0]
        if process.isdecimal() and not psutil.pid_exists(int(process)):
            shutil.rmtree(folder, ignore_errors=True)


@cache
def _find_scratch() -> Path:
    """Finds the folder of this process, which only its user can read."""
    folder = tempfile.mkdtemp(prefix=f"{_SCRATCH}{os.getpid()}-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)


def _pass_on(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield from batches


def _quote_path(uri: str) -> str:
    return uri.replace("\\", "\\\\").replace("'", "\\'")


def _name_table(uri: str) -> str:
    return f"table_{sha256(uri.encode()).hexdigest()[:24]}"


def _find_schema(spark: SparkSession, files: LandedFiles) -> T.StructType:
    if files.format == "text":
        return T.StructType().add(LANDED_LINE, T.StringType())
    if files.schema is not None:
        return spark.createDataFrame([], files.schema).schema
    filesystem, path = open_filesystem(files.uris[0])
    return from_arrow_schema(pq.read_schema(path, filesystem=filesystem))


def _read_content(uri: str) -> bytes:
    filesystem, path = open_filesystem(uri)
    with filesystem.open_input_file(path) as file:
        content = file.read()
    return gzip.decompress(content) if uri.endswith(".gz") else content


def _read_whole(uri: str) -> Iterator[pa.RecordBatch]:
    yield _build_lines([_read_content(uri)])


def _read_lines(uri: str) -> Iterator[pa.RecordBatch]:
    lines = _read_content(uri).splitlines()
    for first in range(0, len(lines), _BATCH_ROWS):
        yield _build_lines(lines[first : first + _BATCH_ROWS])


def _build_lines(lines: list[bytes]) -> pa.RecordBatch:
    try:
        texts = pa.array(lines, pa.binary()).cast(pa.string())
    except pa.ArrowInvalid:
        texts = pa.array(map(_decode, lines), pa.string())
    return pa.RecordBatch.from_arrays([texts], [LANDED_LINE])


def _decode(line: bytes) -> str:
    try:
        return line.decode()
    except UnicodeDecodeError:
        return NOT_UTF8 + line.decode(errors="replace")


def _read_csv(
    uri: str, *, schema: pa.Schema, options: Mapping[str, str | bool]
) -> Iterator[pa.RecordBatch]:
    """Reads columns of text, and in the last one a line that has more or fewer of them."""
    text = _read_content(uri).decode(str(options["encoding"]), errors="replace")
    lines = [line for line in re.split(r"\r\n|\r|\n", text.removeprefix("\ufeff")) if line.strip()]
    if options["header"]:
        del lines[:1]
    width, null = len(schema) - 1, options["nullValue"]
    quotechar, escapechar = str(options["quote"]), str(options["escape"])
    for first in range(0, len(lines), _BATCH_ROWS):
        batch = lines[first : first + _BATCH_ROWS]
        rows: list[list[str | None]] = []
        for line in batch:
            values = next(
                csv.reader(
                    [line],
                    delimiter=str(options["sep"]),
                    quotechar=quotechar,
                    escapechar=None if escapechar == quotechar else escapechar,
                )
            )
            read = [None if value == null else value for value in values[:width]]
            broken = None if len(values) == width else line
            rows.append([*read, *[None] * (width - len(read)), broken])
        columns = zip(*rows, strict=True)
        yield pa.RecordBatch.from_arrays(
            [pa.array(values, pa.string()) for values in columns], schema=schema
        )


def _read_parquet(uri: str, *, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    filesystem, path = open_filesystem(uri)
    with filesystem.open_input_file(path) as file:
        opened = pq.ParquetFile(file)
        stored = {name.lower(): name for name in opened.schema_arrow.names}
        names = [stored[name.lower()] for name in schema.names if name.lower() in stored]
        for batch in opened.iter_batches(_BATCH_ROWS, columns=names):
            columns = {name.lower(): batch.column(name) for name in names}
            yield pa.RecordBatch.from_arrays(
                [
                    columns[column.name.lower()].cast(column.type)
                    if column.name.lower() in columns
                    else pa.nulls(batch.num_rows, column.type)
                    for column in schema
                ],
                schema=schema,
            )
