"""JSON lines in the landing zone, in a folder for each partition."""

import datetime as dt
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar

from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from backfill_engine.audit_columns import ENGINE_PREFIX, LANDED_FILE, LANDED_LINE
from backfill_engine.engines.engine import LandedFiles
from backfill_engine.engines.sessions import find_engine
from backfill_engine.errors import DeclarationError
from backfill_engine.grains.grain import Grain
from backfill_engine.lake.landing import (
    FileFault,
    LandingFile,
    compute_fingerprint,
    open_landing_zone,
    require_folder,
)
from backfill_engine.lake.partitions import Partition, sort_partitions
from backfill_engine.lake.reader import add_folder
from backfill_engine.rules.measured import Landed
from backfill_engine.sources.landed_lines import (
    UNREADABLE,
    Pairs,
    count_lines,
    find_same_in_groups,
)
from backfill_engine.sources.landing_names import (
    Entry,
    build_source_file,
    find_name_fault,
    find_path_below_dataset,
    find_reason_unread,
    is_done,
    is_hidden,
    list_folder,
)
from backfill_engine.sources.source import LineListing, Source
from backfill_engine.tables.columns import Column, check_columns
from backfill_engine.tables.declarations import Table
from backfill_engine.uris import join_uri

EMPTY_MARKER = "_EMPTY"
"""Name of the file that says that a partition is meant to have no records."""

_SUFFIXES = (".json", ".json.gz")
_PATH = f"{ENGINE_PREFIX}path"
_NAMES = {"%Y": "YYYY", "%m": "MM", "%d": "DD", "%H": "HH", "%M": "MM"}
_EXAMPLE = dt.datetime(2013, 1, 1, tzinfo=dt.UTC)


@dataclass
class FolderContents:
    """What a partition's folder holds; `files` are those to read.

    Attributes:
        is_there: as a folder.
        is_file: whether a file is in its place.
        marker: the file that says that nothing is to come.
        files: the data.
        not_read: names of what else is there, and why it isn't read.
        faults: names below the data set of what is half-written or can't be read, and how.
    """

    is_there: bool = False
    is_file: bool = False
    marker: LandingFile | None = None
    files: list[LandingFile] = field(default_factory=list)
    not_read: dict[str, str] = field(default_factory=dict)
    faults: dict[str, str] = field(default_factory=dict)

    @property
    def consumed(self) -> list[LandingFile]:
        """The data, and the marker."""
        return [*self.files, *([self.marker] if self.marker else [])]

    def count_lines(self) -> int:
        """Counts the lines of the data that aren't blank.

        Raises:
            OSError, EOFError, zlib.error: if a file can't be read; see `UNREADABLE`.
        """
        return sum(map(count_lines, self.files))


@dataclass(frozen=True)
class JsonLanding(Source):
    """JSON lines in a folder for each partition, by the time at which the records landed.

    At `<root>/<dataset>/year=YYYY/month=MM[/day=DD[/hour=HH[/minute=MM]]]/*.json[.gz]`, as deep as
    the grain of the table that is computed from them.

    Attributes:
        dataset: its folder below the root.
        fields: what a record may hold.
        empty_marker: name of the file that says that a partition is meant to have no records. In an
            object store, which has no empty folders, nothing else does.

    Raises:
        DeclarationError: when it is made, if it can't be as it is declared.
    """

    dataset: str
    fields: tuple[Column, ...] = ()
    empty_marker: str = EMPTY_MARKER
    takes_new_fields: ClassVar[bool] = True
    reads_lines: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_columns(f"landing `{self.dataset}`", self.fields)

    @property
    def record_fields(self) -> tuple[Column, ...]:  # type: ignore[override]
        """What a record may hold."""
        return self.fields

    def refuse_table(self, table: Table) -> None:
        """Refuses a table that isn't partitioned by time."""
        if not table.grain.landing_format:
            raise DeclarationError(
                f"{table.key}: JSON lands in folders of a time, and the table is partitioned by "
                f"{table.grain}: give it a ParquetLanding, or a grain of time"
            )

    def describe_place(self, table: Table) -> tuple[str, str]:
        """Describes the files of a partition."""
        folder = re.sub("%.", lambda part: _NAMES[part.group()], table.grain.landing_format)
        return "json", f"{folder}/*.json[.gz]"

    def list_files(self, root: str, table: Table, partitions: Iterable[Partition]) -> "JsonListing":
        """Lists the files that landed in the folders of partitions.

        One listing call a month, whatever their number: calls are what object stores are slow at.

        Raises:
            LandingNotFoundError: if the dataset isn't there.
            LandingError: if it can't be listed.
        """
        require_folder(root, self.dataset)
        grain, dataset = table.grain, join_uri(root, self.dataset)
        wanted = sort_partitions(partitions)
        by_folder = {
            grain.find_landing_folder(partition.slice.start): partition for partition in wanted
        }
        levels = grain.landing_format.count("/") + 1
        contents = {partition: FolderContents() for partition in wanted}
        base = len(open_landing_zone(dataset)[1]) + 1
        for month in sorted({"/".join(folder.split("/")[:2]) for folder in by_folder}):
            for entry in list_folder(join_uri(dataset, month), levels=levels - 1):
                path = entry.path[base:].split("/", levels)
                folder = "/".join(path[:levels])
                if entry.fault and len(path) <= levels:
                    for other, partition in by_folder.items():
                        if other == folder or other.startswith(f"{folder}/"):
                            contents[partition].faults[folder] = entry.fault
                elif (partition := by_folder.get(folder)) is not None:
                    self._add(contents[partition], path[levels:], entry, dataset, base)
        for found in contents.values():
            found.files.sort()
        return JsonListing(self, root, table, tuple(wanted), contents)

    def list_landed_from(self, root: str, table: Table, begin: dt.date) -> list[str]:
        """Lists the keys, ascending, of partitions from a day on of which data or a marker landed.

        Raises:
            LandingError: if the folders can't be listed.
        """
        levels, dataset = table.grain.landing_format.count("/") + 1, join_uri(root, self.dataset)
        base = len(open_landing_zone(dataset)[1]) + 1
        folders: set[str] = set()
        years = [entry for entry in list_folder(dataset) if entry.is_folder]
        for year in (entry.name for entry in years if entry.name >= f"year={begin:%Y}"):
            for month in list_folder(join_uri(dataset, year)):
                if not month.is_folder or f"{year}/{month.name}" < f"{begin:year=%Y/month=%m}":
                    continue
                for entry in list_folder(join_uri(dataset, year, month.name), levels=levels - 1):
                    path = entry.path[base:].split("/")
                    is_data = not find_reason_unread(path[-1], entry, _SUFFIXES)
                    if len(path) == levels + 1 and (is_data or path[-1] == self.empty_marker):
                        folders.add("/".join(path[:levels]))
        keys = (_find_key(table.grain, folder, begin) for folder in folders)
        return sorted(key for key in keys if key)

    def _add(
        self, contents: FolderContents, below: list[str], entry: Entry, dataset: str, base: int
    ) -> None:
        """Sorts in what was listed; `below` is its path below the partition's folder, if any."""
        if not below:
            contents.is_there = entry.is_folder
            contents.is_file = not contents.is_there
            return
        contents.is_there = True  # object stores may list no folder of its own
        name, _, nested = below[0].partition("/")
        path = entry.path[base:]
        file = LandingFile(join_uri(dataset, path), entry.size, entry.modified_ns)
        if fault := find_name_fault(name, entry, _SUFFIXES):
            contents.faults[path.removesuffix(f"/{nested}") if nested else path] = fault
        elif name == self.empty_marker and not nested and not entry.is_folder:
            contents.marker = file
        elif is_done(name):
            return
        elif why := find_reason_unread(name, entry, _SUFFIXES):
            contents.not_read[name] = why
        elif not file.size and not name.endswith(".gz"):
            contents.not_read[name] = "0 bytes"
        else:
            contents.files.append(file)


@dataclass(frozen=True)
class JsonListing(LineListing):
    """A `Listing` of JSON lines, by partition, ascending."""

    source: JsonLanding
    contents: Mapping[Partition, FolderContents]

    @property
    def _listed(self) -> list[tuple[Partition, FolderContents]]:
        return [(partition, self.contents[partition]) for partition in self.partitions]

    @cached_property
    def files(self) -> list[LandingFile]:
        """The files to read, in the order of their names."""
        return sorted(file for _, contents in self._listed for file in contents.files)

    @property
    def missing(self) -> tuple[Partition, ...]:
        """Listed partitions of which no file is there, nor the marker of an empty one."""
        return tuple(partition for partition, contents in self._listed if not contents.consumed)

    @property
    def faults(self) -> list[FileFault]:
        """What is half-written or can't be read, by its name, its kind or its size.

        A gzip of no bytes is an upload that died, and no empty gzip.
        """
        named = [
            FileFault(partition, f"{self.dataset}/{name}", fault)
            for partition, contents in self._listed
            for name, fault in sorted(contents.faults.items())
        ]
        empty = {file: "has 0 bytes, which is no gzip" for file in self.files if not file.size}
        return named + self.list_faults(empty)

    def fingerprint(self) -> str:
        """Hashes the files' names, sizes and modification times: the version of this input."""
        markers = [contents.marker for _, contents in self._listed if contents.marker is not None]
        return compute_fingerprint([*self.files, *markers], self.root)

    def list_landed(self) -> dict[str, list[LandingFile]]:
        """Lists the files of each partition, and its marker, by its key."""
        return {partition.key: contents.consumed for partition, contents in self._listed}

    def measure_bytes(self) -> Mapping[str, int]:
        """Sums the bytes of the files, compressed as they are, by partition key."""
        return {
            partition.key: sum(file.size for file in contents.files)
            for partition, contents in self._listed
            if contents.files
        }

    def describe_landed(self) -> dict[str, Landed]:
        """Describes what is there, by partition key; compares its files."""
        same = find_same_in_groups(contents.files for _, contents in self._listed)
        return {
            partition.key: self._describe(contents, pairs)
            for (partition, contents), pairs in zip(self._listed, same, strict=True)
        }

    def read_lines(self, spark: SparkSession) -> DataFrame:
        """Reads the lines of the listed files, and where they are from; blank ones are no records.

        Returns:
            `value` STRING, the line; the table's partition column (and its folder column), as its
            folder says; `source_file` STRING.
        """
        table, grain = self.table, self.table.grain
        if not self.files:
            by = f"`{table.partition_by}` {grain.column_types[0]}"
            lines = spark.createDataFrame([], f"{LANDED_LINE} string, {by}, {LANDED_FILE} string")
            return add_folder(lines, table)
        levels = grain.landing_format.count("/") + 1
        below_dataset = find_path_below_dataset(levels)
        source_file = build_source_file(self.dataset, levels)
        files = LandedFiles(self.root, tuple(file.uri for file in self.files), "text")
        lines = (
            find_engine(spark)
            .read_files(spark, files)
            .where(F.col(LANDED_LINE).rlike(r"\S"))
            .select(LANDED_LINE, source_file.alias(LANDED_FILE), below_dataset.alias(_PATH))
            .withColumns(_cut_folder(_PATH, grain))
            .select(
                LANDED_LINE,
                F.expr(grain.stored_sql(grain.landing_start)).alias(table.partition_by),
                LANDED_FILE,
            )
        )
        return add_folder(lines, table)

    def count_lines(self) -> dict[str, int]:
        """Counts the lines that aren't blank, by partition key."""
        return {partition.key: contents.count_lines() for partition, contents in self._listed}

    def count_records(self) -> dict[str, int]:
        """Counts lines, of each partition whose files can be read, by its key."""
        counted: dict[str, int] = {}
        for partition, contents in self._listed:
            with suppress(*UNREADABLE):
                counted[partition.key] = contents.count_lines()
        return counted

    def _describe(self, contents: FolderContents, same: Pairs) -> Landed:
        not_read = {
            name: why
            for name, why in contents.not_read.items()
            # Beside these, what is hidden is nobody's loss, unless it is named as data are.
            if not contents.consumed or not is_hidden(name) or name.endswith(_SUFFIXES)
        }
        if contents.marker is not None and contents.files:
            not_read[self.source.empty_marker] = "a marker beside files"
        sizes: Counter[str] = Counter()
        for file in contents.files:
            sizes[_find_suffix(file)] += file.size
        return Landed(
            evidence=self._find_evidence(contents),
            lack=self._find_lack(contents),
            cure=f"land it again, or put a file {self.source.empty_marker} into its folder",
            not_read=tuple(f"{name} ({why})" for name, why in sorted(not_read.items())),
            repeated=self.describe_copies(same),
            bytes=sizes,
        )

    def _find_evidence(self, contents: FolderContents) -> str:
        if contents.marker is not None:
            return f"its folder holds {self.source.empty_marker}"
        if contents.is_there and not (contents.files or contents.not_read or contents.faults):
            return "its folder is there and empty"
        return ""

    def _find_lack(self, contents: FolderContents) -> str:
        if contents.files:
            names = ", ".join(self.name_file(file) for file in contents.files[:10])
            return f"its files hold no record ({names})"
        if contents.not_read:
            return "nothing in its folder is read"
        if contents.is_there:
            return "its folder is there and empty"
        return "a file is in its folder's place" if contents.is_file else "its folder isn't there"


def _find_key(grain: Grain, folder: str, begin: dt.date) -> str:
    """Finds the key of a partition by its folder; of none, or an earlier one, it is empty."""
    try:
        moment = dt.datetime.strptime(folder, grain.landing_format).replace(tzinfo=dt.UTC)
    except ValueError:
        return ""
    is_named_so = moment.strftime(grain.landing_format) == folder
    return moment.strftime(grain.key_format) * (is_named_so and moment.date() >= begin)


def _find_suffix(file: LandingFile) -> str:
    return next(suffix for suffix in _SUFFIXES if file.uri.endswith(suffix))


def _cut_folder(path: str, grain: Grain) -> dict[str, SparkColumn]:
    """Cuts out the integers that a landing folder is named by.

    `year=2013/month=01` gives `year`, `month`. They are found by their offsets, which the grain's
    format fixes: Spark's own discovery of partitions takes a fifth longer where there are thousands
    of folders.
    """
    offset, cut = 1, dict[str, SparkColumn]()
    for level in _EXAMPLE.strftime(grain.landing_format).split("/"):
        name, _, digits = level.partition("=")
        cut[name] = F.substring(path, offset + len(name) + 1, len(digits)).cast("int")
        offset += len(level) + 1
    return cut
