"""Parquet files in the landing zone, whose footers say which integer keys they hold."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from itertools import chain
from typing import NamedTuple

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from backfill_engine.audit_columns import ENGINE_PREFIX, LANDED_FILE
from backfill_engine.engines.engine import FILE_PATH, LandedFiles
from backfill_engine.engines.sessions import find_engine
from backfill_engine.errors import DeclarationError, LandingError
from backfill_engine.grains.buckets import Buckets, require_buckets
from backfill_engine.lake.landing import (
    FileFault,
    LandingFile,
    compute_fingerprint,
    refuse_changes,
    relative_name,
    require_folder,
)
from backfill_engine.lake.partitions import Partition, build_predicate, sort_partitions
from backfill_engine.lake.reader import build_number
from backfill_engine.rules.measured import Landed
from backfill_engine.rules.rule import INTEGERS
from backfill_engine.sources.landed_lines import find_named_files
from backfill_engine.sources.landing_names import (
    BEING_WRITTEN,
    build_source_file,
    find_name_fault,
    find_reason_unread,
    is_hidden,
    list_folder,
    look_up_file,
)
from backfill_engine.sources.parquet_footers import (
    ParquetFile,
    RowGroup,
    find_copies,
    is_broken,
    measure_own_bytes,
    read_footer,
)
from backfill_engine.sources.source import Listing, Source
from backfill_engine.tables.columns import Column, build_ddl, check_columns
from backfill_engine.tables.declarations import Table
from backfill_engine.uris import join_uri

_SUFFIXES = (".parquet",)


@dataclass(frozen=True)
class ParquetLanding(Source):
    """Parquet files with an integer key, in whatever files the source cut them.

    At `<root>/<dataset>/<name>/*.parquet`; their footers say which keys a file holds.

    Attributes:
        dataset: its folder below the root.
        keys: name of each kind of file, and its key column, which decides the bucket.
        space_setting: the environment variable that sets the key space, for messages.
        fields: by name of a kind of file, the columns that it has, the key included. A file that
            lacks one, or has it as another type, holds its partitions back. Others aren't read.

    Raises:
        DeclarationError: when it is made, if it can't be as it is declared.
    """

    dataset: str
    keys: tuple[tuple[str, str], ...]
    space_setting: str
    fields: tuple[tuple[str, tuple[Column, ...]], ...] = ()

    def __post_init__(self) -> None:
        keys, owner = dict(self.keys), f"landing `{self.dataset}`"
        for kind, columns in self.fields:
            if kind not in keys:
                raise DeclarationError(
                    f"{owner}: `fields` are of `{kind}` files, and `keys` names no such kind: "
                    f"choose of {', '.join(keys)}"
                )
            check_columns(f"{owner}, {kind}", columns)
            if keys[kind] not in {c.name for c in columns if c.type in INTEGERS}:
                raise DeclarationError(
                    f"{owner}, {kind}: the key `{keys[kind]}` must be a declared column of integers"
                )

    @property
    def columns(self) -> Iterable[Column]:
        """The columns of all kinds of files."""
        return chain.from_iterable(columns for _, columns in self.fields)

    def refuse_table(self, table: Table) -> None:
        """Refuses a table that isn't partitioned by buckets."""
        if not isinstance(table.grain, Buckets):
            raise DeclarationError(
                f"{table.key}: Parquet lands by an integer key, and the table is partitioned by "
                f"{table.grain}: give it a JsonLanding, or buckets as its grain"
            )

    def describe_place(self, table: Table) -> tuple[str, str]:
        """Describes the files of all kinds."""
        return "parquet", f"{{{','.join(dict(self.keys))}}}/*.parquet"

    def list_files(
        self, root: str, table: Table, partitions: Iterable[Partition]
    ) -> "ParquetListing":
        """Lists all files, and reads their footers.

        Raises:
            LandingNotFoundError: if the dataset isn't there.
            LandingError: if it can't be listed, a footer doesn't say which keys there are, or if a
                key lies outside of the key space: no partition would ever hold it.
        """
        require_folder(root, self.dataset)
        space = require_buckets(table.grain, table.key).space
        listed = {name: self.list_kind(root, name) for name, _ in self.keys}
        files = [
            read_footer(
                name,
                key,
                file,
                where=relative_name(file.uri, root),
                fields=self.find_fields(name),
            )
            for name, key in self.keys
            for file in listed[name].files
        ]
        for landed in files:
            self._refuse_outside(landed, root, space)
        wanted = sort_partitions(partitions)
        not_read = tuple(other for kind in listed.values() for other in kind.not_read)
        faults = tuple(fault for kind in listed.values() for fault in kind.faults)
        return ParquetListing(self, root, table, tuple(wanted), tuple(files), not_read, faults)

    def find_fields(self, name: str) -> tuple[Column, ...]:
        """Finds the declared columns of one kind of file; none if it has no declaration."""
        return dict(self.fields).get(name, ())

    def list_kind(self, root: str, name: str) -> "KindContents":
        """Lists the folder of one kind of file."""
        uri = join_uri(root, self.dataset, name)
        contents = KindContents([], [], [])
        for entry in sorted(list_folder(uri)):
            file = LandingFile(join_uri(uri, entry.name), entry.size, entry.modified_ns)
            where = relative_name(file.uri, root)
            fault = find_name_fault(entry.name, entry, _SUFFIXES)
            # What is being written is no loss yet: nobody takes what lies there for all of a key.
            if fault and fault != BEING_WRITTEN:
                contents.faults.append((where, fault))
            elif why := find_reason_unread(entry.name, entry, _SUFFIXES):
                contents.not_read.extend([] if is_hidden(entry.name) else [f"{where} ({why})"])
            else:
                contents.files.append(file)
        return contents

    def _refuse_outside(self, landed: ParquetFile, root: str, space: int) -> None:
        where = relative_name(landed.file.uri, root)
        for group in landed.row_groups:
            if group.smallest < 0:
                raise LandingError(
                    f"{where} holds keys from {group.smallest} on, and no partition holds negative "
                    "ones: nothing was written; land it with keys from 0 on"
                )
            if group.largest >= space:
                raise LandingError(
                    f"{where} holds keys from {group.smallest} to {group.largest}, outside of the "
                    f"key space 0 to {space - 1}, so no partition would hold them: "
                    f"nothing was written; set {self.space_setting} higher, then run again"
                )


class KindContents(NamedTuple):
    """What the folder of one kind holds, by name: files; what isn't read, or can't be, and why."""

    files: list[LandingFile]
    not_read: list[str]
    faults: list[tuple[str, str]]


@dataclass(frozen=True)
class ParquetListing(Listing):
    """A `Listing` of Parquet files; `files` are all that are there, in the order of their names.

    What `not_read` and `named_faults` name may hold keys of any partition.
    """

    source: ParquetLanding
    files: tuple[ParquetFile, ...]
    not_read: tuple[str, ...] = ()
    named_faults: tuple[tuple[str, str], ...] = ()

    @property
    def grain(self) -> Buckets:
        """The table's."""
        return require_buckets(self.table.grain, self.table.key)

    @property
    def missing(self) -> tuple[Partition, ...]:
        """Listed partitions above the largest key: a sequence has not come so far."""
        largest = self.largest_key
        return tuple(
            partition
            for partition in self.partitions
            if largest is None or partition.slice.start > largest  # type: ignore[operator]
        )

    @property
    def faults(self) -> list[FileFault]:
        """Files that aren't whole or as declared, and what partitions they may hold keys of."""
        named = [
            FileFault(partition, name, fault)
            for name, fault in self.named_faults
            for partition in self.partitions
        ]
        found = {landed.file: landed.fault for landed in self.files if landed.fault}
        return named + self.list_faults(found)

    @property
    def unfinished(self) -> Mapping[str, str]:
        """The bucket that the sequence has come to, and not through."""
        largest, space = self.largest_key, self.grain.space
        if largest is None:
            return {}
        return {
            partition.key: f"{self.dataset} has landed up to {largest} of it"
            for partition in self.partitions
            if partition.slice.start <= largest < min(partition.slice.end, space) - 1  # type: ignore[operator,type-var]
        }

    @cached_property
    def largest_key(self) -> int | None:
        """Of all files; None if there are none."""
        return max((group.largest for group in self._row_groups), default=None)

    def find_files(self, name: str) -> list[ParquetFile]:
        """Finds the files of one kind that may hold keys of the partitions."""
        return [landed for landed in self.overlapping if landed.name == name]

    def fingerprint(self) -> str:
        """Computes the fingerprint of the files that may hold keys of the partitions."""
        return compute_fingerprint((landed.file for landed in self.overlapping), self.root)

    def list_landed(self) -> dict[str, list[LandingFile]]:
        """Lists the files that may hold keys of each partition, by its key."""
        return {
            partition.key: [landed.file for landed in self.files if landed.overlaps(partition)]
            for partition in self.partitions
        }

    def count_records(self) -> dict[str, int]:
        """Counts the rows, by the footers, of partitions with files that hold no other's keys."""
        counted: dict[str, int] = {}
        for partition in self.partitions:
            files = [landed for landed in self.files if landed.overlaps(partition)]
            if all(landed.lies_in(partition) for landed in files):
                counted[partition.key] = sum(landed.rows for landed in files)
        return counted

    @property
    def is_counted_by_reading(self) -> bool:
        """Whether counting reads all: listing has read the footers."""
        return False

    def count_known(self) -> int | None:
        """Counts the rows of the files, by the footers; None if one may hold others' keys."""
        step, listed = self.grain.step, {partition.slice.start for partition in self.partitions}
        files = self.overlapping
        spans = (
            range(group.smallest // step * step, group.largest + 1, step)
            for landed in files
            for group in landed.row_groups
        )
        if not all(keyed.keys_are_known for keyed in files) or not all(
            map(listed.issuperset, spans)
        ):
            return None
        return sum(landed.rows for landed in files)

    def read(self, spark: SparkSession, kind: str) -> DataFrame:
        """Reads the records of one kind that belong to the listed partitions.

        A record without a key belongs to the bucket of the smallest key of its file.

        Returns:
            The declared fields; the table's partition column; `source_file` STRING.

        Raises:
            LandingError: if no file of the kind is there.
        """
        return _read_records(spark, self, kind)

    def count(self, spark: SparkSession) -> dict[str, int]:
        """Counts the records by partition key, as many as the footers say that there are."""
        return _count_records(spark, self)

    def measure_bytes(self) -> Mapping[str, int]:
        """Sums the bytes of the files by partition key.

        Each part of a file is shared evenly among all buckets that it spans.
        """
        step = self.grain.step
        sizes = dict.fromkeys((partition.key for partition in self.partitions), 0)
        for group in self._row_groups:
            share = group.bytes // (group.largest // step - group.smallest // step + 1)
            for partition in self.partitions:
                if group.overlaps(partition):
                    sizes[partition.key] += share
        return sizes

    def describe_landed(self) -> dict[str, Landed]:
        """Describes what is there, by partition key; compares files of the same keys.

        A file says nothing of a bucket that it has no key of, so nothing is evidence.
        """
        copies = find_copies(self.overlapping, self.root)
        unfinished, missing = self.unfinished, set(self.missing)
        return {
            partition.key: Landed(
                lack=self._find_lack(partition, is_missing=partition in missing),
                cure="land it again",
                not_read=self.not_read,
                repeated=tuple(copy for landed, copy in copies if landed.overlaps(partition)),
                unfinished=unfinished.get(partition.key, ""),
                bytes=measure_own_bytes(self.files, partition),
            )
            for partition in self.partitions
        }

    def check_unchanged(self) -> None:
        """Lists again and compares, for after the files have been read.

        Raises:
            LandingError: if a file with keys of the partitions was rewritten or vanished, or if any
                appeared.
        """
        kinds = (self.source.list_kind(self.root, name) for name, _ in self.source.keys)
        now = {file for kind in kinds for file in kind.files}
        known = {landed.file for landed in self.files}
        gone = {
            partition.key
            for partition in self.partitions
            for landed in self.files
            if landed.file not in now and landed.overlaps(partition)
        }
        refuse_changes(gone or {partition.key for partition in self.partitions if now - known})

    def find_broken(self, error: str) -> list[FileFault]:
        """Finds the partitions that a file which can't be read may hold keys of."""
        files = [landed.file for landed in self.overlapping]
        named = find_named_files(files, error)
        broken = [file for file in files if file in named or is_broken(file)]
        return self.list_faults(dict.fromkeys(broken, "can't be read"))

    def _find_lack(self, partition: Partition, *, is_missing: bool) -> str:
        if is_missing:
            reached = "nothing" if self.largest_key is None else f"key {self.largest_key}"
            return f"{self.dataset} has landed up to {reached}"
        if any(landed.overlaps(partition) for landed in self.overlapping):
            return "the files whose keys are around it hold none of it"
        return "no file holds a key of it"

    @cached_property
    def overlapping(self) -> tuple[ParquetFile, ...]:
        """The files that may hold keys of the partitions."""
        return tuple(
            landed
            for landed in self.files
            if any(landed.overlaps(partition) for partition in self.partitions)
        )

    @property
    def _row_groups(self) -> Iterator[RowGroup]:
        return (group for landed in self.files for group in landed.row_groups)


_NUMBER, _KEY = f"{ENGINE_PREFIX}number", f"{ENGINE_PREFIX}key"


def _read_records(spark: SparkSession, listing: ParquetListing, name: str) -> DataFrame:
    if name not in dict(listing.source.keys):
        raise LandingError(
            f"{listing.dataset} has no kind of file called `{name}`: read one of "
            f"{', '.join(dict(listing.source.keys))}"
        )
    table, partitions = listing.table, listing.partitions
    of_kind = [landed for landed in listing.files if landed.name == name]
    if not of_kind:
        raise LandingError(f"nothing has landed in {listing.dataset}/{name}: land it, then run it")
    types = {column.name: column.type for column in table.columns}
    by = table.partition_by
    files = listing.find_files(name)
    key, fields = dict(listing.source.keys)[name], listing.source.find_fields(name)
    if not files and fields:
        columns = f"{build_ddl(fields, constraints=False)}, `{by}` {types[by]}"
        return spark.createDataFrame([], f"{columns}, {LANDED_FILE} string")
    # Where no file holds a key of the partitions, any file still tells the columns.
    rows = _open(spark, listing, name, files or of_kind[:1])
    wanted = build_predicate(key, (partition.slice for partition in partitions))
    homes = _find_homes(listing, files, partitions)
    if homes:
        is_homeless = F.col(key).isNull() & F.col(LANDED_FILE).isin(list(homes))
        rows = rows.where(f"({wanted}) OR `{key}` IS NULL").where(F.expr(wanted) | is_homeless)
    else:
        rows = rows.where(wanted)
    step = F.lit(listing.grain.step)
    bucket = F.coalesce(F.col(key) - F.pmod(F.col(key), step), look_up_file(homes, "bigint"))
    return rows.select(
        *(column for column in rows.columns if column != LANDED_FILE),
        bucket.cast(types[by]).alias(by),
        LANDED_FILE,
    )


def _count_records(spark: SparkSession, listing: ParquetListing) -> dict[str, int]:
    """Counts the records by partition key, as many as the footers say that there are.

    The files that span several buckets are read, only for their keys, and whatever their window;
    what a footer counts beyond these keys belongs to the bucket of the file's smallest key.
    """
    grain = listing.grain
    counted: Counter[int] = Counter()
    spanning: list[ParquetFile] = []
    for landed in listing.overlapping:
        if grain.find_number(landed.smallest) == grain.find_number(landed.largest):
            counted[grain.find_number(landed.smallest)] += landed.rows
        else:
            spanning.append(landed)
    by_file = _count_keys(spark, listing, spanning)
    for landed in spanning:
        keyed = by_file[listing.name_file(landed.file)]
        counted.update(keyed)
        counted[grain.find_number(landed.smallest)] += landed.rows - keyed.total()
    return {
        partition.key: counted[grain.find_number(partition.slice.start)]  # type: ignore[arg-type]
        for partition in listing.partitions
    }


def _count_keys(
    spark: SparkSession, listing: ParquetListing, files: Sequence[ParquetFile]
) -> dict[str, Counter[int]]:
    """Counts keys by file, below the root, and number of their bucket: in one job."""
    found = {listing.name_file(keyed.file): Counter[int]() for keyed in files}
    kinds: list[DataFrame] = []
    for name, key in listing.source.keys:
        of_kind = [landed for landed in files if landed.name == name]
        if of_kind:
            rows = _open(spark, listing, name, of_kind)
            kinds.append(rows.select(LANDED_FILE, F.col(key).cast("bigint").alias(_KEY)))
    if kinds:
        keys = reduce(DataFrame.unionByName, kinds).where(f"{_KEY} IS NOT NULL")
        number = build_number(listing.grain, _KEY).alias(_NUMBER)
        for row in keys.groupBy(LANDED_FILE, number).count().collect():
            found[row[0]][row[1]] = row[2]
    return found


def _open(
    spark: SparkSession, listing: ParquetListing, name: str, files: Iterable[ParquetFile]
) -> DataFrame:
    fields = listing.source.find_fields(name)
    uris = tuple(landed.file.uri for landed in files)
    schema = build_ddl(fields, constraints=False) if fields else None
    rows = find_engine(spark).read_files(spark, LandedFiles(listing.root, uris, "parquet", schema))
    if LANDED_FILE in map(str.lower, rows.columns):
        raise LandingError(
            f"{listing.dataset}/{name} has a column `{LANDED_FILE}`, which says where a record "
            "landed: declare the landing's fields without it; nothing was written"
        )
    return rows.withColumn(LANDED_FILE, build_source_file(listing.dataset, 1)).drop(FILE_PATH)


def _find_homes(
    listing: ParquetListing, files: Iterable[ParquetFile], partitions: Iterable[Partition]
) -> dict[str, int]:
    """Finds the first key of the bucket of records without one, by file that may hold any."""
    grain = listing.grain
    starts = {partition.slice.start for partition in partitions}
    homes = {
        listing.name_file(landed.file): landed.smallest // grain.step
        for landed in files
        if landed.null_keys != 0
    }
    return {
        name: number * grain.step for name, number in homes.items() if number * grain.step in starts
    }
