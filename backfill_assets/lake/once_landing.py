"""The files of a once-flow in the landing zone, by the days that their names say."""

import datetime as dt
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from urllib.parse import unquote

from pyarrow import fs

from backfill_assets.errors import LandingError
from backfill_assets.lake.landed_lines import is_broken
from backfill_assets.lake.landing import (
    FileFault,
    LandedFiles,
    LandingFile,
    compute_fingerprint,
    is_hidden,
    list_folder,
    open_landing_zone,
    refuse_changes,
    relative_name,
    require_folder,
    summarize_files,
)
from backfill_assets.lake.once_files import OnceFile, count_days, find_fault
from backfill_assets.lake.same_files import find_same_files
from backfill_assets.lake.slices import Partition
from backfill_assets.rules.landed import Landed
from backfill_assets.tables.once_flows import OnceFlow
from backfill_assets.uris import join_uri

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
        files = {file.uri: file for file in self._list_folder()}
        days_of: dict[str, list[dt.date]] = defaultdict(list)
        for pattern, days in self._list_patterns().items():
            for name in _match(pattern, files, self.root):
                days_of[name] += days
        found = [self._build_file(files[uri], days) for uri, days in days_of.items()]
        listing = OnceListing(self, wanted, tuple(sorted(found)))
        return listing.restrict(wanted)

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

    def _list_folder(self) -> Iterator[LandingFile]:
        uri = join_uri(self.root, self.folder)
        base = len(open_landing_zone(uri)[1]) + 1
        since = self.flow.modified_after
        for info in list_folder(uri, recursive=True):
            if info.type != fs.FileType.File or is_hidden(info.base_name):
                continue
            if since is None or (info.mtime_ns or 0) > since.timestamp() * 1e9:
                name = join_uri(uri, info.path[base:])
                yield LandingFile(name, info.size or 0, info.mtime_ns or 0)


def _match(pattern: str, files: Collection[str], root: str) -> list[str]:
    """Finds the files whose names below the root match; `*` stands for any text of one part."""
    if "*" not in pattern:
        uri = join_uri(root, pattern)
        return [uri] if uri in files else []
    form = re.compile("[^/]*".join(map(re.escape, pattern.split("*"))))
    return [uri for uri in files if form.fullmatch(relative_name(uri, root))]


@dataclass(frozen=True)
class OnceListing:
    """A `Listing` of a once-flow's files, each of which may hold records of several partitions.

    Attributes:
        source: where they lie.
        partitions: days that the flow fills, ascending.
        files: those that hold them, by name.
    """

    source: OnceSource
    partitions: tuple[Partition, ...]
    files: tuple[OnceFile, ...]

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
        """Files without a column that the flow reads, or that can't be read."""
        return [
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
        """Describes what is there, by partition key; compares files of equal size.

        That a file has no record of a day is no evidence that there was none.

        Raises:
            LandingError: if one of these can't be read.
        """
        copies = {
            file: f"{self.name_file(file)} holds the same as {self.name_file(earlier)}"
            for file, earlier in find_same_files(one.file for one in self.files)
        }
        return {
            partition.key: Landed(
                lack=self._find_lack(partition),
                cure="land it again",
                repeated=tuple(
                    copies[one.file] for one in self._by_key[partition.key] if one.file in copies
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

    def find_broken(self, error: str) -> list[tuple[Partition, str]]:
        """Finds the partitions of a file that doesn't decompress, or that `error` names."""
        broken = {one for one in self.files if is_broken(one.file)}
        if not broken:
            broken = {one for one in self.files if one.file.uri in unquote(error)}
        return [
            (partition, self.name_file(one.file))
            for partition in self.partitions
            for one in self._by_key[partition.key]
            if one in broken
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
