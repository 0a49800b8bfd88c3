"""The files of a once-flow in the landing zone, by the days that their names say."""

import datetime as dt
import json
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce

from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from backfill_engine.audit_columns import ENGINE_PREFIX, LANDED_FILE, LANDED_LINE
from backfill_engine.errors import LandingError
from backfill_engine.lake.landing import (
    FileFault,
    LandingFile,
    compute_fingerprint,
    open_landing_zone,
    refuse_changes,
    relative_name,
    require_folder,
)
from backfill_engine.lake.partitions import Partition, build_predicate
from backfill_engine.rules.measured import Landed
from backfill_engine.sources.landed_lines import find_broken_files, find_same_in_groups
from backfill_engine.sources.landing_names import (
    BEING_WRITTEN,
    Entry,
    build_source_file,
    find_name_fault,
    is_hidden,
    list_folder,
    plan_reads,
)
from backfill_engine.sources.once_files import (
    CSV_OPTIONS,
    ISO_DAY,
    OnceFile,
    count_days,
    find_fault,
    read_columns,
)
from backfill_engine.sources.source import LineListing
from backfill_engine.tables.column_types import BARE
from backfill_engine.tables.columns import Column
from backfill_engine.tables.declarations import Table
from backfill_engine.tables.once_flows import Constant, DatePart, OnceFlow, Origin
from backfill_engine.uris import join_uri

_LISTED = 3


@dataclass(frozen=True)
class OnceSource:
    """The files of a once-flow, from its begin to its end.

    Attributes:
        flow: the flow.
        record_fields: all that a record of the table may have; those that the flow lacks are null.
    """

    flow: OnceFlow
    record_fields: tuple[Column, ...] = ()

    @property
    def dataset(self) -> str:
        """The folder below the root that holds all of its files."""
        named = []
        for part in self.flow.source.split("/")[:-1]:
            if "%" in part or "*" in part:
                break
            named.append(part)
        return "/".join(named)

    def refuse_table(self, table: Table) -> None:
        """Refuses a table whose records haven't the fields of the flow."""
        self.flow.check_fields(table.key, self.record_fields)

    def list_files(self, root: str, table: Table, partitions: Iterable[Partition]) -> "OnceListing":
        """Lists the files that hold the days of partitions, which the flow fills.

        Raises:
            LandingNotFoundError: if its folder isn't there.
            LandingError: if it can't be listed, or one file holds days that don't follow one
                another.
        """
        require_folder(root, self.dataset)
        wanted = tuple(sorted(set(partitions), key=lambda one: one.slice.start))  # type: ignore[arg-type,return-value]
        files: dict[str, LandingFile] = {}
        named_faults: dict[str, str] = {}
        for entry, name in self._list_folder(root):
            if fault := find_name_fault(entry.name, entry, self._suffixes):
                named_faults[name] = fault
            elif not entry.is_folder and not entry.fault and not is_hidden(entry.name):
                uri = join_uri(root, name)
                files[uri] = LandingFile(uri, entry.size, entry.modified_ns)
        patterns = self._list_patterns()
        days_of: dict[str, list[dt.date]] = defaultdict(list)
        for pattern, days in patterns.items():
            for uri in _match(pattern, files, root):
                days_of[uri] += days
        found = [self._build_file(files[uri], days, root) for uri, days in days_of.items()]
        faults = _find_faulty_days(named_faults, patterns)
        return OnceListing(self, root, table, wanted, tuple(sorted(found)), faults).restrict(wanted)

    @property
    def _suffixes(self) -> tuple[str, ...]:
        return (".csv", ".csv.gz") if self.flow.format == "csv" else (".parquet",)

    def _list_patterns(self) -> dict[str, list[dt.date]]:
        """Lists the patterns of all of the flow's files, with the days of each."""
        patterns: dict[str, list[dt.date]] = defaultdict(list)
        for number in range((self.flow.end - self.flow.begin).days):
            day = self.flow.begin + dt.timedelta(days=number)
            patterns[self.flow.find_pattern(day)].append(day)
        return patterns

    def _build_file(self, file: LandingFile, days: list[dt.date], root: str) -> OnceFile:
        first, last = min(days), max(days)
        if (last - first).days + 1 != len(days):
            raise LandingError(
                f"{relative_name(file.uri, root)} may hold several stretches of days by the "
                f"`source` of the once-flow {self.flow.name}: write one that says which"
            )
        return OnceFile(file, first, last)

    def _list_folder(self, root: str) -> Iterator[tuple[Entry, str]]:
        """Lists what lies there, with its name below the root; not what the flow is too new for."""
        uri = join_uri(root, self.dataset)
        base = len(open_landing_zone(root)[1].rstrip("/")) + 1
        since = self.flow.modified_after
        levels = self.flow.source.count("/") - self.dataset.count("/")
        for entry in list_folder(uri, levels=levels):
            is_new = since is None or entry.modified_ns > since.timestamp() * 1e9
            if is_new or entry.fault or entry.is_folder:
                yield entry, entry.path[base:]


def _find_faulty_days(
    named_faults: Mapping[str, str], patterns: Mapping[str, Collection[dt.date]]
) -> tuple[tuple[str, str, frozenset[dt.date]], ...]:
    """Finds the days of names that are faulty: those of the files that these may be, or hold."""
    found: list[tuple[str, str, frozenset[dt.date]]] = []
    for name, fault in named_faults.items():
        folder, _, base = name.rpartition("/")
        may_be_any = fault == BEING_WRITTEN and "." not in base.lstrip(".")
        days: set[dt.date] = set()
        for pattern, held in patterns.items():
            within, _, file = pattern.rpartition("/")
            if re.fullmatch(_write_form(within), folder) and (
                may_be_any or re.search(_write_form(file), base)
            ):
                days |= set(held)
        found.append((name, fault, frozenset(days)))
    return tuple(found)


def _write_form(pattern: str) -> str:
    return "[^/]*".join(map(re.escape, pattern.split("*")))


def _match(pattern: str, files: Collection[str], root: str) -> list[str]:
    """Finds the files whose names below the root match; `*` stands for any text of one part."""
    if "*" not in pattern:
        uri = join_uri(root, pattern)
        return [uri] if uri in files else []
    form = re.compile(_write_form(pattern))
    return [uri for uri in files if form.fullmatch(relative_name(uri, root))]


@dataclass(frozen=True)
class OnceListing(LineListing):
    """A `Listing` of a once-flow's files, each of which may hold records of several partitions.

    Attributes:
        source: what they are.
        root: of the landing zone.
        table: that is computed from them.
        partitions: days that the flow fills, ascending.
        files: those that hold them, by name.
        named_faults: names of what is half-written or can't be read, how, and the days of which it
            may hold records.
    """

    source: OnceSource
    root: str
    table: Table
    partitions: tuple[Partition, ...]
    files: tuple[OnceFile, ...]
    named_faults: tuple[tuple[str, str, frozenset[dt.date]], ...] = ()

    @property
    def dataset(self) -> str:
        """The folder below the root that holds all of its files."""
        return self.source.dataset

    @property
    def missing(self) -> tuple[Partition, ...]:
        """Listed partitions whose day no file holds."""
        return tuple(one for one in self.partitions if not self._by_key[one.key])

    @property
    def faults(self) -> list[FileFault]:
        """What is half-written or can't be read, and files without a column that the flow reads."""
        named = [
            FileFault(partition, name, fault)
            for name, fault, days in self.named_faults
            for partition in self.partitions
            if partition.slice.start in days
        ]
        return named + [
            FileFault(partition, self.name_file(one.file), fault)
            for partition in self.partitions
            for one in self._by_key[partition.key]
            if (fault := self._fault_of[one])
        ]

    def restrict(self, partitions: Collection[Partition]) -> "OnceListing":
        """Returns the part of the listing that is about `partitions`."""
        kept = set(partitions)
        left = replace(self, partitions=tuple(one for one in self.partitions if one in kept))
        files = {file for held in left._by_key.values() for file in held}
        return replace(left, files=tuple(sorted(files)))

    def fingerprint(self) -> str:
        """Hashes the files' names, sizes and modification times."""
        return compute_fingerprint((one.file for one in self.files), self.root)

    def list_landed(self) -> dict[str, list[LandingFile]]:
        """Lists the files that hold each partition's day, by its key."""
        return {key: [one.file for one in held] for key, held in self._by_key.items()}

    def count_records(self) -> dict[str, int]:
        """Counts nothing: a file holds records of other days too."""
        return {}

    def read_lines(self, spark: SparkSession) -> DataFrame:
        """Reads the records as the lines that the feed would have landed."""
        return _read_lines(spark, self)

    def count_lines(self) -> dict[str, int]:
        """Counts the records of each partition by reading its files whole, by its key.

        Raises:
            OSError, EOFError, zlib.error, UnicodeDecodeError, csv.Error, pyarrow.ArrowException: if
                one can't be read.
        """
        counted: Counter[dt.date] = Counter()
        for one in self.files:
            counted += count_days(one, self.source.flow)
        return {
            partition.key: counted[partition.slice.start]  # type: ignore[index]
            for partition in self.partitions
        }

    def measure_bytes(self) -> Mapping[str, int]:
        """Shares the bytes of each file evenly among the days that it holds, by partition key."""
        return {
            key: sum(one.file.size // one.days for one in held)
            for key, held in self._by_key.items()
            if held
        }

    def describe_landed(self) -> dict[str, Landed]:
        """Describes what is there, by partition key; compares its files.

        That a file has no record of a day is no evidence that there was none.
        """
        held = {tuple(files) for files in self._by_key.values()}
        same = find_same_in_groups([one.file for one in files] for files in held)
        copies = dict(zip(held, same, strict=True))
        return {
            partition.key: Landed(
                lack=self._find_lack(partition),
                cure="land it again",
                repeated=tuple(
                    f"{self.name_file(file)} holds the same as {self.name_file(earlier)}"
                    for file, earlier in copies[tuple(self._by_key[partition.key])]
                ),
            )
            for partition in self.partitions
        }

    def check_unchanged(self) -> None:
        """Lists again and compares, for after the files have been read.

        Raises:
            LandingError: if a file appeared, vanished or was rewritten meanwhile.
        """
        now = self.source.list_files(self.root, self.table, self.partitions).list_landed()
        refuse_changes({key for key, files in self.list_landed().items() if files != now[key]})

    def find_broken(self, error: str) -> list[FileFault]:
        """Finds the files that don't decompress, or that `error` names, with their partitions."""
        broken = find_broken_files([one.file for one in self.files], error)
        return [
            FileFault(partition, self.name_file(one.file), broken[one.file])
            for partition in self.partitions
            for one in self._by_key[partition.key]
            if one.file in broken
        ]

    def _find_lack(self, partition: Partition) -> str:
        if held := self._by_key[partition.key]:
            names = ", ".join(self.name_file(one.file) for one in held[:_LISTED])
            return f"its files hold no record of it ({names})"
        day = partition.slice.start
        assert isinstance(day, dt.date)
        return f"{self.source.flow.find_pattern(day)} isn't there"

    @cached_property
    def _fault_of(self) -> dict[OnceFile, str]:
        """Finds what is wrong with each file by reading where it says its columns."""
        return {one: find_fault(one, self.source.flow) for one in self.files}

    @cached_property
    def _by_key(self) -> dict[str, list[OnceFile]]:
        by_day: dict[object, list[OnceFile]] = defaultdict(list)
        for one in self.files:
            for number in range(one.days):
                by_day[one.first + dt.timedelta(days=number)].append(one)
        return {partition.key: by_day[partition.slice.start] for partition in self.partitions}


_BROKEN, _SOURCE_FILE = f"{ENGINE_PREFIX}broken", f"{ENGINE_PREFIX}source_file"
_NUMBER_OR_BOOLEAN = r"^(true|false|-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?)$"
_DATES = (T.DateType, T.TimestampType, T.TimestampNTZType)


def _read_lines(spark: SparkSession, listing: OnceListing) -> DataFrame:
    """Reads the records of the listed partitions, at least one.

    What can't be mapped stays as it came, so that it is rejected with its own text: a line with too
    many or too few columns, and a record whose date is none. A record that says no day of its file
    belongs to the first of them.

    Returns:
        `value` STRING, the line; the table's partition column, a DATE; `source_file` STRING.
    """
    by = listing.table.partition_by
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
) -> tuple[DataFrame, Mapping[str, SparkColumn]]:
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


def _write_text(value: SparkColumn, type_: T.DataType) -> SparkColumn:
    """Writes a value as JSON's text of it would be: dates and times as ISO 8601 has them."""
    if isinstance(type_, T.TimestampType):
        return F.date_format(value, "yyyy-MM-dd'T'HH:mm:ss.SSSSSS'Z'")
    return value.cast("string")


def _parse_day(text: SparkColumn) -> SparkColumn:
    return F.when(text.rlike(ISO_DAY), text.try_cast("date"))


def _build_line(listing: OnceListing, texts: Mapping[str, SparkColumn]) -> SparkColumn:
    source, flow = listing.source, listing.source.flow
    origins = dict(flow.fields)
    fields = (
        _write_field(
            field.name, _build_field(origins.get(field.name), texts), is_bare=field.type in BARE
        )
        for field in source.record_fields
    )
    parsed = {origin.column for origin in origins.values() if isinstance(origin, DatePart)}
    is_dated = reduce(
        SparkColumn.__and__,
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


def _write_field(name: str, text: SparkColumn, *, is_bare: bool) -> SparkColumn:
    """Writes a field as JSON has it: what can be a number or a boolean, and is to be, as that."""
    in_array = F.to_json(F.array(text))
    written = F.substring(in_array, F.lit(2), F.length(in_array) - 2)
    if is_bare:
        written = F.when(text.rlike(_NUMBER_OR_BOOLEAN), text).otherwise(written)
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


def _look_up(by_file: Mapping[str, str]) -> SparkColumn:
    names = F.create_map(*(F.lit(part) for entry in by_file.items() for part in entry))
    return names[F.col(_SOURCE_FILE)].cast("date")
