"""The files of a once-flow in the landing zone, by the days that their names say."""

import datetime as dt
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from backfill_engine.errors import LandingError
from backfill_engine.lake.landed_lines import find_broken_files
from backfill_engine.lake.landing import (
    FileFault,
    LandedFiles,
    LandingFile,
    compute_fingerprint,
    open_landing_zone,
    refuse_changes,
    relative_name,
    require_folder,
    summarize_files,
)
from backfill_engine.lake.landing_names import (
    BEING_WRITTEN,
    Entry,
    find_name_fault,
    is_hidden,
    list_folder,
)
from backfill_engine.lake.once_files import OnceFile, count_days, find_fault
from backfill_engine.lake.same_files import find_same_in_groups
from backfill_engine.lake.slices import Partition
from backfill_engine.rules.landed import Landed
from backfill_engine.tables.once_flows import OnceFlow
from backfill_engine.uris import join_uri

_LISTED = 3


@dataclass(frozen=True)
class OnceSource:
    """Where the history of a once-flow lies.

    Attributes:
        root: of the landing zone.
        flow: the flow.
        fields: all that a record of the table may have; those that the flow lacks are null.
        bare: those of which JSON has numbers or booleans, and no strings.
    """

    root: str
    flow: OnceFlow
    fields: tuple[str, ...]
    bare: frozenset[str] = frozenset()

    @property
    def folder(self) -> str:
        """The folder below the root that holds all of its files."""
        named = []
        for part in self.flow.source.split("/")[:-1]:
            if "%" in part or "*" in part:
                break
            named.append(part)
        return "/".join(named)

    def list_files(self, partitions: Iterable[Partition]) -> "OnceListing":
        """Lists the files that hold the days of `partitions`, which the flow fills.

        Raises:
            LandingNotFoundError: if its folder isn't there.
            LandingError: if it can't be listed, or one file holds days that don't follow one
                another.
        """
        require_folder(self.root, self.folder)
        wanted = tuple(sorted(set(partitions), key=lambda one: one.slice.start))  # type: ignore[arg-type,return-value]
        files: dict[str, LandingFile] = {}
        named_faults: dict[str, str] = {}
        for entry, name in self._list_folder():
            if fault := find_name_fault(entry.name, entry, self._suffixes):
                named_faults[name] = fault
            elif not entry.is_folder and not entry.fault and not is_hidden(entry.name):
                uri = join_uri(self.root, name)
                files[uri] = LandingFile(uri, entry.size, entry.modified_ns)
        patterns = self._list_patterns()
        days_of: dict[str, list[dt.date]] = defaultdict(list)
        for pattern, days in patterns.items():
            for uri in _match(pattern, files, self.root):
                days_of[uri] += days
        found = [self._build_file(files[uri], days) for uri, days in days_of.items()]
        faults = _find_faulty_days(named_faults, patterns)
        return OnceListing(self, wanted, tuple(sorted(found)), faults).restrict(wanted)

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

    def _build_file(self, file: LandingFile, days: list[dt.date]) -> OnceFile:
        first, last = min(days), max(days)
        if (last - first).days + 1 != len(days):
            raise LandingError(
                f"{relative_name(file.uri, self.root)} may hold several stretches of days by the "
                f"`source` of the once-flow {self.flow.name}: write one that says which"
            )
        return OnceFile(file, first, last)

    def _list_folder(self) -> Iterator[tuple[Entry, str]]:
        """Lists what lies there, with its name below the root; not what the flow is too new for."""
        uri = join_uri(self.root, self.folder)
        base = len(open_landing_zone(self.root)[1].rstrip("/")) + 1
        since = self.flow.modified_after
        levels = self.flow.source.count("/") - self.folder.count("/")
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
class OnceListing:
    """A `Listing` of a once-flow's files, each of which may hold records of several partitions.

    Attributes:
        source: where they lie.
        partitions: days that the flow fills, ascending.
        files: those that hold them, by name.
        named_faults: names of what is half-written or can't be read, how, and the days of which it
            may hold records.
    """

    source: OnceSource
    partitions: tuple[Partition, ...]
    files: tuple[OnceFile, ...]
    named_faults: tuple[tuple[str, str, frozenset[dt.date]], ...] = ()

    @property
    def dataset(self) -> str:
        """The folder below the root that holds all of its files."""
        return self.source.folder

    @property
    def root(self) -> str:
        """The landing zone's."""
        return self.source.root

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

    @property
    def unfinished(self) -> Mapping[str, str]:
        """None: history is over."""
        return {}

    def restrict(self, partitions: Collection[Partition]) -> "OnceListing":
        """Returns the part of the listing that is about `partitions`."""
        kept = set(partitions)
        left = replace(self, partitions=tuple(one for one in self.partitions if one in kept))
        files = {file for held in left._by_key.values() for file in held}
        return replace(left, files=tuple(sorted(files)))

    def fingerprint(self) -> str:
        """Hashes the files' names, sizes and modification times."""
        return compute_fingerprint((one.file for one in self.files), self.source.root)

    def list_landed(self) -> dict[str, list[LandingFile]]:
        """Lists the files that hold each partition's day, by its key."""
        return {key: [one.file for one in held] for key, held in self._by_key.items()}

    def name_file(self, file: LandingFile) -> str:
        """Names a file below the root."""
        return relative_name(file.uri, self.source.root)

    def describe_files(self) -> dict[str, LandedFiles]:
        """Describes the files that hold each partition's day, by its key."""
        summaries: dict[tuple[LandingFile, ...], LandedFiles] = {}
        found: dict[str, LandedFiles] = {}
        for key, files in self.list_landed().items():
            if (held := tuple(files)) not in summaries:
                summaries[held] = summarize_files(held, self.source.root)
            found[key] = summaries[held]
        return found

    def count_records(self) -> dict[str, int]:
        """Counts nothing: a file holds records of other days too."""
        return {}

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
        now = self.source.list_files(self.partitions).list_landed()
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
