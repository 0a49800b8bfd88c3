"""Historical loads: history that predates what lands day by day, from files of another layout.

A historical load is a source with a begin and an end. An asset declares it beside its feed; from
there on its days are run like any others, and what is published of them is known by the table.
"""

import datetime as dt
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise, takewhile
from typing import ClassVar

from pyspark.sql import DataFrame, SparkSession

from backfill_engine.audit_columns import LANDED_FILE, LANDED_LINE
from backfill_engine.errors import DeclarationError, LandingError
from backfill_engine.grains.dates import DAYS
from backfill_engine.lake.landing import (
    FileFault,
    LandingFile,
    compute_fingerprint,
    open_landing_zone,
    require_folder,
)
from backfill_engine.lake.partitions import Partition, build_predicate
from backfill_engine.rules.measured import Landed
from backfill_engine.sources.historical_records import (
    DatedFile,
    RecordLayout,
    count_days,
    find_fault,
    read_records,
)
from backfill_engine.sources.landed_lines import find_same_in_groups
from backfill_engine.sources.landing_names import (
    BEING_WRITTEN,
    Entry,
    build_source_file,
    find_name_fault,
    is_hidden,
    list_folder,
)
from backfill_engine.sources.source import LineListing, Source
from backfill_engine.tables.declarations import Table
from backfill_engine.uris import join_uri

_LISTED = 3


@dataclass(frozen=True, kw_only=True)
class HistoricalLoad(RecordLayout, Source):
    """History that a table takes in once, from files of another layout than what lands daily.

    Attributes:
        source: its files below the landing root: a path in which `%Y`, `%m` and `%d` stand for the
            date of the records and `*` for any text within a name.
        begin: the first day of it.
        end: the day after its last. Both are bounds of files, too.
        modified_after: only files that were modified later; with a time zone.

    Raises:
        DeclarationError: when it is made, if it can't be as it is declared.
    """

    source: str
    begin: dt.date
    end: dt.date
    modified_after: dt.datetime | None = None
    reads_lines: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check_source()
        self._check_days()

    @property
    def dataset(self) -> str:  # type: ignore[override]
        """The folder below the root that holds all of its files."""
        folders = self.source.split("/")[:-1]
        return "/".join(takewhile(lambda name: not {"%", "*"} & {*name}, folders))

    def holds(self, day: dt.date) -> bool:
        """Tells whether the flow fills the partition of a day."""
        return self.begin <= day < self.end

    def find_pattern(self, day: dt.date) -> str:
        """Writes the source of one day: a path with `*` for any text within a name."""
        return day.strftime(self.source)

    def refuse_table(self, table: Table) -> None:
        """Refuses a table by anything but days, and one whose records haven't the fields."""
        if table.grain != DAYS:
            raise DeclarationError(
                f"{table.key}: historical loads fill days, and it is partitioned by {table.grain}: "
                "leave `history` out, or give it the grain DAYS"
            )
        declared, mapped = [field.name for field in self.record_fields], [*dict(self.fields)]
        if unknown := [name for name in mapped if name not in declared]:
            raise DeclarationError(
                f"{table.key}, historical load `{self.name}`: no record has a field "
                f"`{unknown[0]}`: choose of {', '.join(declared)}"
            )
        required = [field.name for field in self.record_fields if not field.nullable]
        if lacking := [f"`{name}`" for name in required if name not in mapped]:
            raise DeclarationError(
                f"{table.key}, historical load `{self.name}`: `fields` must say where "
                f"{', '.join(lacking)} comes from, which is required"
            )

    def describe_place(self, table: Table) -> tuple[str, str]:
        """Describes its files."""
        return self.format, self.source.removeprefix(f"{self.dataset}/")

    def list_files(
        self, root: str, table: Table, partitions: Iterable[Partition]
    ) -> "HistoricalListing":
        """Lists the files that hold the days of partitions, which the flow fills.

        Raises:
            LandingNotFoundError: if its folder isn't there.
            LandingError: if it can't be listed, or one file holds days that don't follow one
                another.
        """
        require_folder(root, self.dataset)
        files: dict[str, LandingFile] = {}
        name_faults: dict[str, str] = {}
        for entry, name in self._list_folder(root):
            if fault := find_name_fault(entry.name, entry, self.suffixes):
                name_faults[name] = fault
            elif not entry.is_folder and not entry.fault and not is_hidden(entry.name):
                files[name] = LandingFile(join_uri(root, name), entry.size, entry.modified_ns)
        patterns: dict[str, list[dt.date]] = defaultdict(list)
        for number in range((self.end - self.begin).days):
            day = self.begin + dt.timedelta(days=number)
            patterns[self.find_pattern(day)].append(day)
        days_of: dict[str, list[dt.date]] = defaultdict(list)
        for pattern, days in patterns.items():
            for name in _match(pattern, files):
                days_of[name] += days
        by_day: dict[dt.date, list[DatedFile]] = defaultdict(list)
        for name, days in sorted(days_of.items()):
            file = DatedFile(files[name], min(days), max(days))
            if file.days != len(days):
                raise LandingError(
                    f"{name} may hold several stretches of days by the `source` of the historical "
                    f"load {self.name}: write one that says which"
                )
            for day in days:
                by_day[day].append(file)
        wanted = sorted(set(partitions), key=lambda partition: partition.slice.start)  # type: ignore[arg-type,return-value]
        faults = _find_faulty_days(name_faults, patterns)
        return HistoricalListing(self, root, table, tuple(wanted), by_day, faults)

    def _list_folder(self, root: str) -> Iterator[tuple[Entry, str]]:
        """Lists what lies there, with its name below the root; not what the flow is too new for."""
        base = len(open_landing_zone(root)[1].rstrip("/")) + 1
        since = self.modified_after
        for entry in list_folder(join_uri(root, self.dataset), levels=self.levels):
            is_new = since is None or entry.modified_ns > since.timestamp() * 1e9
            if is_new or entry.fault or entry.is_folder:
                yield entry, entry.path[base:]

    @property
    def levels(self) -> int:
        """How many names below its folder a file has."""
        return self.source.count("/") - self.dataset.count("/")

    def _check_source(self) -> None:
        path = self.source
        if not path or path.startswith("/") or "://" in path or ".." in path.split("/"):
            raise self._refuse(
                f"`source` is a path below the landing zone, and not `{path}`: link or copy the "
                "files there"
            )
        if not self.dataset:
            raise self._refuse(
                f"`source` `{path}` begins with a pattern: begin with a folder of its own, as "
                "history/%Y/*.csv"
            )
        if re.sub("%[Ymd]", "", path).count("%"):
            raise self._refuse(f"`source` `{path}`: only %Y, %m and %d stand for dates there")
        if not path.endswith(self.suffixes):
            raise self._refuse(
                f"`source` `{path}` must end with {' or '.join(self.suffixes)}, as its format is "
                f"{self.format}"
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
        if self.modified_after is not None and self.modified_after.tzinfo is None:
            raise self._refuse("`modified_after` needs a time zone, such as UTC")


def check_flows(table: str, flows: Sequence[HistoricalLoad]) -> None:
    """Refuses flows of a table that fill the same days.

    Raises:
        DeclarationError: if two do.
    """
    for earlier, later in pairwise(sorted(flows, key=lambda flow: flow.begin)):
        if later.begin < earlier.end:
            raise DeclarationError(
                f"{table}: the historical loads `{earlier.name}` and `{later.name}` both fill "
                f"{later.begin}: leave each day to one of them"
            )


def _find_faulty_days(
    name_faults: Mapping[str, str], patterns: Mapping[str, Collection[dt.date]]
) -> tuple[tuple[str, str, frozenset[dt.date]], ...]:
    """Finds the days of names that are faulty: those of the files that these may be, or hold."""
    found: list[tuple[str, str, frozenset[dt.date]]] = []
    for name, fault in name_faults.items():
        base = name.rpartition("/")[2]
        may_be_any = fault == BEING_WRITTEN and "." not in base.lstrip(".")
        days: set[dt.date] = set()
        for pattern, held in patterns.items():
            folder, _, file = pattern.rpartition("/")
            if _match(f"{folder}/*" if may_be_any else f"{folder}/*{file}*", [name]):
                days |= set(held)
        found.append((name, fault, frozenset(days)))
    return tuple(found)


def _match(pattern: str, names: Collection[str]) -> list[str]:
    """Finds the names that match; `*` stands for any text of one part."""
    if "*" not in pattern:
        return [pattern] if pattern in names else []
    form = re.compile("[^/]*".join(map(re.escape, pattern.split("*"))))
    return [name for name in names if form.fullmatch(name)]


@dataclass(frozen=True)
class HistoricalListing(LineListing):
    """A `Listing` of a load's files, each of which may hold records of several partitions.

    Attributes:
        source: what they are.
        by_day: the files that hold each day, by name.
        name_faults: names of what is half-written or can't be read, how, and the days of which it
            may hold records.
    """

    source: HistoricalLoad
    by_day: Mapping[dt.date, Sequence[DatedFile]]
    name_faults: tuple[tuple[str, str, frozenset[dt.date]], ...] = ()

    @cached_property
    def files(self) -> list[DatedFile]:
        """The files that hold the partitions' days, by name."""
        return sorted({file for held in self._by_key.values() for file in held})

    @property
    def missing(self) -> tuple[Partition, ...]:
        """Listed partitions whose day no file holds."""
        return tuple(partition for partition in self.partitions if not self._by_key[partition.key])

    @property
    def faults(self) -> list[FileFault]:
        """What is half-written or can't be read, and files without a column that the flow reads."""
        named = [
            FileFault(partition, name, fault)
            for name, fault, days in self.name_faults
            for partition in self.partitions
            if partition.slice.start in days
        ]
        return named + self.list_faults(self._found_faults)

    @cached_property
    def _found_faults(self) -> dict[LandingFile, str]:
        """Finds what is wrong with files by reading where each says its columns."""
        found = {dated.file: find_fault(dated.file, self.source) for dated in self.files}
        return {file: fault for file, fault in found.items() if fault}

    def fingerprint(self) -> str:
        """Hashes the files' names, sizes and modification times."""
        return compute_fingerprint((dated.file for dated in self.files), self.root)

    def list_landed(self) -> dict[str, list[LandingFile]]:
        """Lists the files that hold each partition's day, by its key."""
        return {key: [dated.file for dated in held] for key, held in self._by_key.items()}

    def count_records(self) -> dict[str, int]:
        """Counts nothing: a file holds records of other days too."""
        return {}

    def read_lines(self, spark: SparkSession) -> DataFrame:
        """Reads the records as the lines that the feed would have landed."""
        by, flow = self.table.partition_by, self.source
        if not self.files:
            return spark.createDataFrame(
                [], f"{LANDED_LINE} string, `{by}` date, {LANDED_FILE} string"
            )
        source_file = build_source_file(flow.dataset, flow.levels - 1)
        lines = read_records(
            spark, flow, self.files, root=self.root, by=by, source_file=source_file
        )
        return lines.where(build_predicate(by, (partition.slice for partition in self.partitions)))

    def count_lines(self) -> dict[str, int]:
        """Counts the records of each partition by reading its files whole, by its key.

        Raises:
            OSError, EOFError, zlib.error, UnicodeDecodeError, csv.Error, pyarrow.ArrowException: if
                one can't be read.
        """
        counted: Counter[dt.date] = Counter()
        for file in self.files:
            counted += count_days(file, self.source)
        return {partition.key: counted[partition.slice.start] for partition in self.partitions}  # type: ignore[index]

    def measure_bytes(self) -> Mapping[str, int]:
        """Shares the bytes of each file evenly among the days that it holds, by partition key."""
        return {
            key: sum(dated.file.size // dated.days for dated in held)
            for key, held in self._by_key.items()
            if held
        }

    def describe_landed(self) -> dict[str, Landed]:
        """Describes what is there, by partition key; compares its files.

        That a file has no record of a day is no evidence that there was none.
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
        if held := self._by_key[partition.key]:
            names = ", ".join(self.name_file(dated.file) for dated in held[:_LISTED])
            return f"its files hold no record of it ({names})"
        day = partition.slice.start
        assert isinstance(day, dt.date)
        return f"{self.source.find_pattern(day)} isn't there"

    @cached_property
    def _by_key(self) -> dict[str, Sequence[DatedFile]]:
        return {
            partition.key: self.by_day.get(partition.slice.start, ())  # type: ignore[call-overload]
            for partition in self.partitions
        }
