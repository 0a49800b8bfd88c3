"""Files whose paths name the partitions that they hold: one a month, one an hour, in any format.

A path such as `trips/yellow_{partition:%Y-%m}.csv` says which files a partition is in. Several
partitions may share a file, as the days of a month do: then a column of its records tells them
apart, and a record that tells none of them belongs to the first of them, where it is rejected.
"""

import datetime as dt
import re
from abc import ABC, abstractmethod
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from itertools import groupby, takewhile
from string import Formatter
from typing import ClassVar, TypeGuard
from zoneinfo import ZoneInfo

from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from backfill_engine.audit_columns import (
    ELSEWHERE,
    ENGINE_PREFIX,
    LANDED_ELSEWHERE,
    LANDED_FILE,
    LANDED_LINE,
    REJECT_REASON,
    REJECTED_LINE,
)
from backfill_engine.errors import DeclarationError
from backfill_engine.grains.dates import Days
from backfill_engine.grains.grain import Grain, SliceBound
from backfill_engine.grains.names import Pair, Pairs
from backfill_engine.grains.overlaps import find_before
from backfill_engine.lake.landing import (
    FileFault,
    LandingFile,
    compute_fingerprint,
    open_landing_zone,
    relative_name,
    require_folder,
)
from backfill_engine.lake.partitions import Partition, build_predicate, sort_partitions
from backfill_engine.lake.reader import add_folder
from backfill_engine.rules.measured import Landed
from backfill_engine.rules.rule import INTEGERS
from backfill_engine.sources.landed_lines import find_same_in_groups
from backfill_engine.sources.landing_names import (
    BEING_WRITTEN,
    Entry,
    build_source_file,
    find_name_fault,
    is_hidden,
    list_folder,
    look_up_file,
)
from backfill_engine.sources.source import LineListing, Source
from backfill_engine.tables.columns import Column, check_columns
from backfill_engine.tables.declarations import Table
from backfill_engine.uris import join_uri

WHERE = f"{ENGINE_PREFIX}where"
"""STRING beside a read record: what it says of its partition."""

_NAMED = 3
"""Files that a message names."""

_EXAMPLE, _DAY = dt.datetime(2012, 1, 1, tzinfo=dt.UTC), dt.timedelta(days=1)


@dataclass(frozen=True, order=True)
class SpanningFile:
    """A file, and the partitions whose records it is to hold.

    Attributes:
        file: the file.
        start: the first value of the first of them.
        end: the first value after the last of them.
    """

    file: LandingFile
    start: SliceBound
    end: SliceBound


@dataclass(frozen=True)
class PatternFiles(Source, ABC):
    """Files of one format, whose path names their partition.

    Attributes:
        path: of the files below the landing root. `{partition:%Y-%m}` in it stands for the first
            value of a partition, written so; `{partition}` for its key; `*` for any text in a name.
        fields: what a record may hold.
        where: the field that says which partition a record is of; needed where partitions share a
            file.
        modified_after: only files that were modified later; with a time zone.
        bounds: the first value that files hold, and the first value after their last; None for all.
            A historical load sets it.

    Raises:
        DeclarationError: when it is made, if it can't be as it is declared.
    """

    path: str
    _: KW_ONLY
    fields: tuple[Column, ...] = ()
    where: str = ""
    modified_after: dt.datetime | None = None
    bounds: tuple[SliceBound, SliceBound] | None = None
    takes_new_fields: ClassVar[bool] = True
    reads_lines: ClassVar[bool] = True
    suffixes: ClassVar[tuple[str, ...]]
    """Ends of the names of its files."""
    format: ClassVar[str]

    def __post_init__(self) -> None:
        check_columns(self.owner, self.fields)
        self._check_path()

    @property
    def owner(self) -> str:
        """What it is called in messages."""
        return f"`{self.path}`"

    @property
    def record_fields(self) -> tuple[Column, ...]:  # type: ignore[override]
        """What a record may hold."""
        return self.fields

    @property
    def dataset(self) -> str:  # type: ignore[override]
        """The folder below the root that holds all of its files."""
        folders = self.path.split("/")[:-1]
        return "/".join(takewhile(lambda name: not {"{", "*"} & {*name}, folders))

    def find_pattern(self, grain: Grain, start: SliceBound) -> str:
        """Writes the path of one partition's files, with `*` for any text within a name."""
        path = self.path.replace("{partition}", grain.find_key(start))
        try:
            return path.format_map(grain.find_parts(start))
        except KeyError as error:
            raise DeclarationError(
                f"{self.owner}: nothing stands for {error} of a partition by {grain}: write "
                "{partition}"
            ) from error

    def refuse_table(self, table: Table) -> None:
        """Refuses a table whose partitions the path can't name, and one without the field."""
        if self.where and table.grain.is_named:
            raise DeclarationError(
                f"{table.key}: `where` of {self.owner} holds a day, a time or an integer, and the "
                f"table is partitioned by {table.grain}: leave `where` out, and give each "
                "partition files of its own"
            )
        try:
            self._check_stretches(table)
        except (ValueError, TypeError) as error:
            raise DeclarationError(
                f"{table.key}: {self.owner} can't name a partition by {table.grain} ({error}): "
                "write {partition} for its key"
            ) from error
        if not self.where or not self.fields:
            return
        field = next((field for field in self.fields if field.name == self.where), None)
        if field is None:
            raise DeclarationError(
                f"{table.key}: `where` of {self.owner} is `{self.where}`, and no record has that "
                f"field: choose of {', '.join(field.name for field in self.fields)}"
            )
        kind, bound_type = field.parsed_type.kind, table.grain.bound_type
        if not can_say(kind, table.grain):
            days = ", or partition by Days" if kind in INTEGERS and bound_type == "DATE" else ""
            raise DeclarationError(
                f"{table.key}: `where` of {self.owner} is `{self.where}`, which is {field.type} "
                f"and says no partition by {table.grain}: name a field of "
                f"{', '.join(sorted(_KINDS[bound_type]))}{days}"
            )

    def describe_place(self, table: Table) -> tuple[str, str]:
        """Describes its files."""
        return self.format, self.path.removeprefix(f"{self.dataset}/")

    def list_files(
        self, root: str, table: Table, partitions: Iterable[Partition]
    ) -> "PatternListing":
        """Lists the files that hold partitions.

        Raises:
            LandingNotFoundError: if its folder isn't there.
            LandingError: if it can't be listed.
        """
        require_folder(root, self.dataset)
        wanted = sort_partitions(partitions)
        patterns: dict[str, list[Partition]] = defaultdict(list)
        for partition in wanted:
            patterns[self.find_pattern(table.grain, partition.slice.start)].append(partition)
        files, name_faults = self._list_folders(root, patterns)
        by_key: dict[str, list[SpanningFile]] = {partition.key: [] for partition in wanted}
        for pattern, held in patterns.items():
            start, end = self.find_span(table.grain, held[0].slice.start)
            for name in sorted(match_names(pattern, files)):
                for partition in held:
                    by_key[partition.key].append(SpanningFile(files[name], start, end))
        faults = _find_faulty_partitions(name_faults, patterns)
        return PatternListing(self, root, table, wanted, by_key, faults)

    @abstractmethod
    def find_fault(self, file: LandingFile) -> str:
        """Finds why a file can't be read as it is declared, in words; empty if it can."""

    def find_where_fault(self, file: LandingFile, grain: Grain) -> str:
        """Finds why the type of a file's field `where` says no partition; empty if it has none."""
        return ""

    @abstractmethod
    def count_by_text(self, file: LandingFile) -> Counter[str | None]:
        """Counts a file's records by what their field `where` holds, without Spark.

        Raises:
            OSError, EOFError, zlib.error, ValueError: if it can't be read so.
        """

    @abstractmethod
    def read_records(
        self, spark: SparkSession, files: Sequence[LandingFile], root: str, source_file: SparkColumn
    ) -> DataFrame:
        """Reads the records of files, at least one, as lines.

        Returns:
            `value` STRING, the record as JSON, or as it came if it is none; `WHERE`, what its field
            `where` holds; `source_file` STRING.
        """

    def read_typed(
        self, spark: SparkSession, files: Sequence[LandingFile], root: str, source_file: SparkColumn
    ) -> DataFrame | None:
        """Reads the records of files as columns, where their format has types; else None.

        Returns:
            The declared fields, of their types, or all columns where none is declared; `WHERE` and
            `source_file` as `read_records`; `_reject_reason` STRING, of a value that is none of its
            type, and `_rejected_line` STRING, each record as JSON.
        """
        return None

    @property
    def levels(self) -> int:
        """How many names below its dataset a file has."""
        return self.path.count("/") - self.dataset.count("/")

    def _list_folders(
        self, root: str, patterns: Iterable[str]
    ) -> tuple[dict[str, LandingFile], dict[str, str]]:
        """Lists the folders that patterns name: files, and what is wrong with names, by name."""
        since = self.modified_after.timestamp() * 1e9 if self.modified_after else 0
        folders = {pattern.rpartition("/")[0] for pattern in patterns}
        listed = (
            [(self.dataset, self.levels)]
            if any("*" in folder for folder in folders)
            else [(folder, 1) for folder in sorted(folders)]
        )
        files: dict[str, LandingFile] = {}
        faults: dict[str, str] = {}
        for folder, levels in listed:
            for entry, name in self._list_below(root, folder, levels):
                if fault := find_name_fault(entry.name, entry, self.suffixes):
                    faults[name] = fault
                elif not (entry.is_folder or entry.fault or is_hidden(entry.name)) and (
                    entry.modified_ns > since
                ):
                    uri = join_uri(root, name)
                    files[name] = LandingFile(uri, entry.size, entry.modified_ns)
        return files, faults

    def _list_below(self, root: str, folder: str, levels: int) -> Iterator[tuple[Entry, str]]:
        base = len(open_landing_zone(root)[1].rstrip("/")) + 1
        for entry in list_folder(join_uri(root, folder), levels=levels):
            yield entry, entry.path[base:]

    def find_span(self, grain: Grain, start: SliceBound) -> tuple[SliceBound, SliceBound]:
        """Finds what partitions share the files of one: those around it of the same path."""
        end = grain.find_end(start)
        if not self.where:
            return start, end
        pattern = self.find_pattern(grain, start)
        while self._holds(end) and self.find_pattern(grain, end) == pattern:
            end = grain.find_end(end)
        before = find_before(grain, start)
        while self._holds(before) and self.find_pattern(grain, before) == pattern:
            start, before = before, find_before(grain, before)
        return start, end

    def _holds(self, value: SliceBound) -> bool:
        return self.bounds is None or self.bounds[0] <= value < self.bounds[1]  # type: ignore[operator]

    def _check_path(self) -> None:
        path = self.path
        if not path or path.startswith("/") or "://" in path or ".." in path.split("/"):
            raise DeclarationError(
                f"{self.owner} is no path below the landing zone: link or copy the files there"
            )
        try:
            list(Formatter().parse(path))
        except ValueError as error:
            raise DeclarationError(f"{self.owner}: {error}: write {{partition:%Y-%m}}") from error
        if not self.dataset:
            raise DeclarationError(
                f"{self.owner} begins with a pattern: begin with a folder of its own, as "
                f"trips/{path}"
            )
        if not path.endswith(self.suffixes):
            raise DeclarationError(f"{self.owner} must end with {' or '.join(self.suffixes)}")
        if self.modified_after is not None and self.modified_after.tzinfo is None:
            raise DeclarationError(f"{self.owner}: `modified_after` needs a time zone, such as UTC")

    def _check_stretches(self, table: Table) -> None:
        """Refuses a path that partitions share which don't follow one another."""
        grain = table.grain
        starts = _list_examples(grain)
        patterns = [self.find_pattern(grain, start) for start in starts]
        stretches = [pattern for pattern, _ in groupby(patterns)]
        if len(stretches) > len(set(stretches)) or len(set(stretches)) == 1:
            raise DeclarationError(
                f"{table.key}: {self.owner} is the same for partitions that don't follow one "
                "another: write a path that tells them apart, as {partition:%Y-%m}"
            )
        if len(stretches) < len(starts) and not self.where:
            raise DeclarationError(
                f"{table.key}: several partitions share a file of {self.owner}: name the field "
                "that tells them apart, as `where`"
            )


def _list_examples(grain: Grain) -> list[SliceBound]:
    """Lists starts of partitions that follow one another: of two years, or of buckets."""
    if not grain.cron:
        return [grain.find_start(key) for key in grain.list_keys()[:100]]
    if isinstance(grain, Pairs):
        places = range(len(grain.names.names[:3]))
        return [Pair(day, place) for day in _list_examples(grain.times) for place in places]  # type: ignore[arg-type]
    days = (_EXAMPLE + number * _DAY for number in range(2 * 366))
    is_date = grain.bound_type == "DATE"
    firsts = (grain.find_first(day.date() if is_date else day) for day in days)
    return list(dict.fromkeys(firsts))


def match_names(pattern: str, names: Collection[str]) -> list[str]:
    """Finds the names that match; `*` stands for any text of one part."""
    if "*" not in pattern:
        return [pattern] if pattern in names else []
    form = re.compile("[^/]*".join(map(re.escape, pattern.split("*"))))
    return [name for name in names if form.fullmatch(name)]


def _find_faulty_partitions(
    name_faults: Mapping[str, str], patterns: Mapping[str, Sequence[Partition]]
) -> tuple[tuple[str, str, frozenset[str]], ...]:
    """Finds the keys of faulty names: those of the files that these may be, or hold."""
    found: list[tuple[str, str, frozenset[str]]] = []
    for name, fault in name_faults.items():
        base = name.rpartition("/")[2]
        may_be_any = fault == BEING_WRITTEN and "." not in base.lstrip(".")
        keys: set[str] = set()
        for pattern, held in patterns.items():
            folder, _, file = pattern.rpartition("/")
            if match_names(f"{folder}/*" if may_be_any else f"{folder}/*{file}*", [name]):
                keys |= {partition.key for partition in held}
        found.append((name, fault, frozenset(keys)))
    return tuple(found)


@dataclass(frozen=True)
class PatternListing(LineListing):
    """A `Listing` of files, each of which may hold records of several partitions.

    Attributes:
        source: what they are.
        by_key: the files that hold each partition, by its key and by name.
        name_faults: names of what is half-written or can't be read, how, and the keys of which it
            may hold records.
    """

    source: PatternFiles
    by_key: Mapping[str, Sequence[SpanningFile]]
    name_faults: tuple[tuple[str, str, frozenset[str]], ...] = ()

    @cached_property
    def files(self) -> list[SpanningFile]:
        """The files that hold the partitions, by name."""
        held = (file for partition in self.partitions for file in self.by_key[partition.key])
        return sorted(set(held))

    @property
    def missing(self) -> tuple[Partition, ...]:
        """Listed partitions that no file holds."""
        return tuple(partition for partition in self.partitions if not self.by_key[partition.key])

    @property
    def faults(self) -> list[FileFault]:
        """What is half-written or can't be read, and files that aren't as they are declared."""
        named = [
            FileFault(partition, name, fault)
            for name, fault, keys in self.name_faults
            for partition in self.partitions
            if partition.key in keys
        ]
        return named + self.list_faults(self._found_faults)

    @cached_property
    def _found_faults(self) -> dict[LandingFile, str]:
        source, grain = self.source, self.table.grain
        found = {
            file: source.find_fault(file) or source.find_where_fault(file, grain)
            for file in dict.fromkeys(spanning.file for spanning in self.files)
        }
        return {file: fault for file, fault in found.items() if fault}

    def fingerprint(self) -> str:
        """Hashes the files' names, sizes and modification times."""
        return compute_fingerprint((spanning.file for spanning in self.files), self.root)

    def list_landed(self) -> dict[str, list[LandingFile]]:
        """Lists the files that hold each partition, by its key."""
        return {
            partition.key: [spanning.file for spanning in self.by_key[partition.key]]
            for partition in self.partitions
        }

    def count_records(self) -> dict[str, int]:
        """Counts nothing: where partitions share a file, only its records tell."""
        return {}

    def read_lines(self, spark: SparkSession) -> DataFrame:
        """Reads the records of the partitions as lines.

        Returns:
            `value` STRING, the line; the table's partition column; `source_file` STRING;
            `_elsewhere` BOOLEAN, whether the record says no partition of its file.
        """
        by, grain = self.table.partition_by, self.table.grain
        if not self.files:
            return spark.createDataFrame(
                [],
                f"{LANDED_LINE} string, `{by}` {grain.column_types[0]}, {LANDED_FILE} string, "
                f"{LANDED_ELSEWHERE} boolean",
            )
        rows = self.source.read_records(spark, *self._how_to_read)
        lines = self._place(rows).select(LANDED_LINE, by, LANDED_FILE, LANDED_ELSEWHERE)
        return add_folder(lines, self.table)

    def read_rows(self, spark: SparkSession) -> DataFrame | None:
        """Reads the records of the partitions as columns, where their format has types; else None.

        A record that says no partition of its file is rejected.
        """
        files, root, source_file = self._how_to_read
        rows = self.source.read_typed(spark, files, root, source_file) if files else None
        if rows is None:
            return None
        elsewhere = F.when(F.col(LANDED_ELSEWHERE), F.lit(ELSEWHERE))
        placed = self._place(rows).withColumn(REJECT_REASON, F.coalesce(elsewhere, REJECT_REASON))
        line = F.when(F.col(REJECT_REASON).isNotNull(), F.col(REJECTED_LINE))
        return placed.withColumn(REJECTED_LINE, line).drop(WHERE, LANDED_ELSEWHERE)

    @property
    def _how_to_read(self) -> tuple[list[LandingFile], str, SparkColumn]:
        files = list(dict.fromkeys(spanning.file for spanning in self.files))
        return files, self.root, build_source_file(self.dataset, self.source.levels - 1)

    def _place(self, rows: DataFrame) -> DataFrame:
        """Adds to records the partition that each is of, and whether it says none of its file."""
        by, grain, type_ = self.table.partition_by, self.table.grain, self.table.grain.bound_type
        slices = (partition.slice for partition in self.partitions)
        spans = {relative_name(spanning.file.uri, self.root): spanning for spanning in self.files}
        if grain.is_named:
            names = {name: str(grain.find_stored(span.start)) for name, span in spans.items()}
            no = F.lit(False)  # noqa: FBT003
            named = rows.withColumns({by: look_up_file(names, "STRING"), LANDED_ELSEWHERE: no})
            return named.where(build_predicate(by, slices, grain))
        start = look_up_file({name: str(span.start) for name, span in spans.items()}, type_)
        end = look_up_file({name: str(span.end) for name, span in spans.items()}, type_)
        value = build_partition_value(WHERE, grain)
        is_own = F.coalesce((value >= start) & (value < end), F.lit(False))  # noqa: FBT003
        placed = rows.withColumns(
            {
                by: F.when(is_own, value).otherwise(start),
                LANDED_ELSEWHERE: ~is_own & F.lit(bool(self.source.where)),
            }
        )
        stored = grain.stored_sql(grain.first_sql(f"`{by}`"))
        return placed.where(build_predicate(by, slices)).withColumn(by, F.expr(stored))

    def count_lines(self) -> dict[str, int]:
        """Counts the records of each partition by reading its files whole, by its key.

        Raises:
            What `count_by_text` of the source raises.
        """
        grain, counted = self.table.grain, Counter[int]()
        for spanning in self.files:
            for text, records in self.source.count_by_text(spanning.file).items():
                value = read_partition_value(text, grain)
                is_own = value is not None and spanning.start <= value < spanning.end  # type: ignore[operator]
                counted[grain.find_number(value if is_own else spanning.start)] += records
        return {
            partition.key: counted[grain.find_number(partition.slice.start)]
            for partition in self.partitions
        }

    def measure_bytes(self) -> Mapping[str, int]:
        """Shares the bytes of each file evenly among its partitions, by partition key."""
        number, is_shared = self.table.grain.find_number, bool(self.source.where)
        return {
            key: sum(
                span.file.size
                // (max(1, number(span.end) - number(span.start)) if is_shared else 1)
                for span in held
            )
            for key, held in self.by_key.items()
            if held
        }

    def describe_landed(self) -> dict[str, Landed]:
        """Describes what is there, by partition key; compares its files.

        That a file has no record of a partition is no evidence that there was none.
        """
        landed = self.list_landed()
        groups = {tuple(files) for files in landed.values()}
        copies = dict(zip(groups, find_same_in_groups(groups), strict=True))
        return {
            partition.key: Landed(
                lack=self._find_lack(partition),
                cure="land it again",
                repeated=self.describe_copies(copies[tuple(landed[partition.key])]),
            )
            for partition in self.partitions
        }

    def _find_lack(self, partition: Partition) -> str:
        if held := self.by_key[partition.key]:
            names = ", ".join(self.name_file(span.file) for span in held[:_NAMED])
            return f"its files hold no record of it ({names})"
        pattern = self.source.find_pattern(self.table.grain, partition.slice.start)
        return f"{pattern} isn't there"


_KINDS = {
    "DATE": frozenset({"DATE", "STRING", "TIMESTAMP", "TIMESTAMP_NTZ"}),
    "TIMESTAMP": frozenset({"STRING", "TIMESTAMP", "TIMESTAMP_NTZ"}),
    "BIGINT": INTEGERS | {"DECIMAL", "STRING"},
}
"""Kinds of types of fields that can say a value of a partition column."""

_DAY_FORM = r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
_OFFSET_FORM = "[+-](?:0[0-9]|1[0-7]):?[0-5][0-9]"
_SECONDS_FORM = rf":[0-9]{{2}}(?:\.[0-9]{{1,6}}0*)?(?:Z|{_OFFSET_FORM})?"
_TIME_FORM = f"[ T][0-9]{{2}}:[0-9]{{2}}(?:{_SECONDS_FORM})?"  # Spark wants seconds before a zone.
_ZONE_FORM = f"(?:Z|{_OFFSET_FORM})$"
_FORMS = {
    "DATE": f"^{_DAY_FORM}(?:{_TIME_FORM})?$",
    "TIMESTAMP": f"^{_DAY_FORM}{_TIME_FORM}$",
    "BIGINT": "^-?[0-9]{1,18}$",
}
"""How the value of a partition column is written, in Python and in Spark; a time is UTC's, if it
says no offset, and a day that of the grain's time zone."""


def can_say(kind: str, grain: Grain) -> bool:
    """Tells whether values of a kind of types can say a partition."""
    is_day = _writes_days(grain) and kind in INTEGERS
    return is_day or kind in _KINDS[grain.bound_type]


def _writes_days(grain: Grain) -> TypeGuard[Days]:
    """Tells whether the table's column holds days as texts or integers."""
    return isinstance(grain, Days) and grain.type != "DATE"


def _write_form(days: Days) -> str:
    """Writes the form of a day as a column holds it."""
    form = days.format.replace(".", r"\.").replace("%Y", "[0-9]{4}")
    return f"^{form.replace('%m', '[0-9]{2}').replace('%d', '[0-9]{2}')}$"


def build_partition_value(column: str, grain: Grain) -> SparkColumn:
    """Builds the value that a text says, of the grain's bounds; null if it says none.

    Args:
        column: that has the text.
        grain: of the table; `Days` are read as they write days, too.
    """
    text, type_ = F.col(column), grain.bound_type
    value = text.try_cast(type_)
    if type_ == "DATE":
        moment = F.from_utc_timestamp(text.try_cast("timestamp"), grain.time_zone).cast("date")
        day = F.substring(text, 1, 10).try_cast("date")
        value = F.when(text.rlike(_ZONE_FORM), moment).otherwise(day)
    value = F.when(text.rlike(_FORMS[type_]), value)
    if _writes_days(grain):
        written = F.expr(f"date_from_unix_date({grain.number_sql(column)})")
        return F.when(text.rlike(_write_form(grain)), written).otherwise(value)
    return value


def read_partition_value(text: str | None, grain: Grain) -> SliceBound | None:
    """Reads what `build_partition_value` builds."""
    if text is None:
        return None
    type_ = grain.bound_type
    try:
        if _writes_days(grain) and _is_written(text, _write_form(grain)):
            return grain.find_value(text)
        if not _is_written(text, _FORMS[type_]):
            return None
        if type_ == "BIGINT":
            return int(text)
        if type_ == "DATE" and not re.search(_ZONE_FORM, text):
            return dt.date.fromisoformat(text[:10])
        moment = dt.datetime.fromisoformat(text)
        moment = moment.astimezone(dt.UTC) if moment.tzinfo else moment.replace(tzinfo=dt.UTC)
        return moment.astimezone(ZoneInfo(grain.time_zone)).date() if type_ == "DATE" else moment
    except (ValueError, OverflowError):
        return None


def _is_written(text: str, form: str) -> bool:
    return re.match(form.replace("$", r"\Z"), text) is not None
