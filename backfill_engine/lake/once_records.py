"""Reads the records of a once-flow as the lines of JSON that its table's feed would have landed."""

import json
from collections.abc import Mapping, Sequence
from functools import reduce

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from backfill_engine.audit_columns import ENGINE_PREFIX, LANDED_FILE, LANDED_LINE
from backfill_engine.lake.once_files import CSV_OPTIONS, ISO_DAY, OnceFile, read_columns
from backfill_engine.lake.once_landing import OnceListing
from backfill_engine.lake.slices import build_predicate
from backfill_engine.lake.source_files import (
    build_source_file,
    plan_reads,
)
from backfill_engine.tables.once_flows import Constant, DatePart, OnceFlow, Origin

_BROKEN, _SOURCE_FILE = f"{ENGINE_PREFIX}broken", f"{ENGINE_PREFIX}source_file"
_NUMBER_OR_BOOLEAN = r"^(true|false|-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?)$"
_DATES = (T.DateType, T.TimestampType, T.TimestampNTZType)


def read_lines(spark: SparkSession, listing: OnceListing, by: str) -> DataFrame:
    """Reads the records of the listed partitions.

    What can't be mapped stays as it came, so that it is rejected with its own text: a line with too
    many or too few columns, and a record whose date is none. A record that says no day of its file
    belongs to the first of them.

    Args:
        spark: the session.
        listing: days of one flow, at least one, and their files.
        by: the table's partition column, a DATE.

    Returns:
        `value` STRING, the line; `by`; `source_file` STRING.
    """
    flow = listing.source.flow
    if not listing.files:
        return spark.createDataFrame([], f"value string, `{by}` date, {LANDED_FILE} string")
    alike: dict[tuple[tuple[str, str], ...], list[OnceFile]] = {}
    for one in listing.files:
        # Of Parquet files Spark would take the columns of one for those of all.
        alike.setdefault(read_columns(one.file, flow), []).append(one)
    lines = (
        _read_alike(spark, listing, [name for name, _ in columns], files, by, read)
        for columns, files in alike.items()
        for read in plan_reads(listing.root, (one.file.uri for one in files))
    )
    wanted = build_predicate(by, (partition.slice for partition in listing.partitions))
    return reduce(DataFrame.unionByName, lines).where(wanted)


def _read_alike(
    spark: SparkSession,
    listing: OnceListing,
    columns: Sequence[str],
    files: list[OnceFile],
    by: str,
    read: tuple[Mapping[str, str], list[str]],
) -> DataFrame:
    """Reads files that have the same columns, or those of them that a reader takes."""
    flow, levels = listing.source.flow, listing.source.flow.source.count("/")
    dataset = flow.source.partition("/")[0]
    opened, texts = _open(spark, flow, columns, read)
    rows = opened.withColumn(_SOURCE_FILE, build_source_file(dataset, levels - 1))
    first = _look_up({listing.name_file(one.file): one.first.isoformat() for one in files})
    last = _look_up({listing.name_file(one.file): one.last.isoformat() for one in files})
    day = _parse_day(texts[flow.day])
    place = F.when(day.between(first, last), day).otherwise(first)
    return rows.select(
        _build_line(listing, texts).alias(LANDED_LINE),
        place.alias(by),
        F.col(_SOURCE_FILE).alias(LANDED_FILE),
    )


def _open(
    spark: SparkSession,
    flow: OnceFlow,
    columns: Sequence[str],
    read: tuple[Mapping[str, str], list[str]],
) -> tuple[DataFrame, Mapping[str, Column]]:
    """Opens files; returns their rows, and by name of a column its text."""
    options, uris = read
    reader = spark.read.options(**options, **CSV_OPTIONS).options(**dict(flow.spark_options))
    if flow.format == "parquet":
        rows = reader.parquet(*uris)
        types = {field.name: field.dataType for field in rows.schema.fields}
        return rows.withColumn(_BROKEN, F.lit(None).cast("string")), {
            name: _write_text(F.col(f"`{name}`"), types[name]) for name in flow.columns
        }
    # By position, as names may differ by case alone; all of them, as with fewer Spark wouldn't see
    # that a line has too many.
    names = [f"_{at}" for at in range(len(columns))]
    schema = ", ".join(f"`{name}` string" for name in (*names, _BROKEN))
    rows = reader.options(
        header=True, mode="PERMISSIVE", columnNameOfCorruptRecord=_BROKEN, columnPruning=False
    ).csv(uris, schema=schema)
    return rows, {name: F.col(at) for name, at in zip(columns, names, strict=True)}


def _write_text(value: Column, type_: T.DataType) -> Column:
    """Writes a value as JSON's text of it would be: dates and times as ISO 8601 has them."""
    if isinstance(type_, T.TimestampType):
        return F.date_format(value, "yyyy-MM-dd'T'HH:mm:ss.SSSSSS'Z'")
    return value.cast("string")


def _parse_day(text: Column) -> Column:
    return F.when(text.rlike(ISO_DAY), text.try_cast("date"))


def _build_line(listing: OnceListing, texts: Mapping[str, Column]) -> Column:
    source, flow = listing.source, listing.source.flow
    origins = dict(flow.fields)
    fields = (
        _write_field(name, _build_field(origins.get(name), texts), is_bare=name in source.bare)
        for name in source.fields
    )
    parsed = {origin.column for origin in origins.values() if isinstance(origin, DatePart)}
    is_dated = reduce(
        Column.__and__,
        (_parse_day(texts[name]).isNotNull() for name in parsed),
        F.lit("true").cast("boolean"),
    )
    with_nulls = {"ignoreNullFields": "false"}
    as_it_came = F.struct(*(texts[name].alias(name) for name in flow.columns))
    return F.coalesce(
        _BROKEN,
        F.when(is_dated, F.concat(F.lit("{"), F.concat_ws(",", *fields), F.lit("}"))),
        F.to_json(as_it_came, with_nulls),
    )


def _write_field(name: str, text: Column, *, is_bare: bool) -> Column:
    """Writes a field as JSON has it: what can be a number or a boolean, and is to be, as that."""
    in_array = F.to_json(F.array(text))
    written = F.substring(in_array, F.lit(2), F.length(in_array) - 2)
    if is_bare:
        written = F.when(text.rlike(_NUMBER_OR_BOOLEAN), text).otherwise(written)
    return F.concat(F.lit(f"{json.dumps(name)}:"), written)


def _build_field(origin: Origin | None, texts: Mapping[str, Column]) -> Column:
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


def _look_up(by_file: Mapping[str, str]) -> Column:
    names = F.create_map(*(F.lit(part) for entry in by_file.items() for part in entry))
    return names[F.col(_SOURCE_FILE)].cast("date")
