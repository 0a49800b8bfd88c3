"""Parquet files in the landing zone, whose footers say which integer keys they hold."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs

from backfill_assets.errors import LandingError
from backfill_assets.grains.buckets import Buckets
from backfill_assets.lake.landing import (
    LandingFile,
    compute_fingerprint,
    is_data_file,
    open_landing_zone,
    refuse_changes,
    relative_name,
)
from backfill_assets.lake.parquet_footers import ParquetFile, RowGroup, read_footer
from backfill_assets.lake.slices import Partition
from backfill_assets.uris import join_uri

_SUFFIXES = (".parquet",)


@dataclass(frozen=True)
class ParquetFolders:
    """The folders `<root>/<dataset>/<name>/` with Parquet files.

    Attributes:
        root: of the landing zone.
        dataset: a folder below it.
        keys: name of each kind of file, and its key column.
        grain: of the table that is computed from them.
        space_setting: the environment variable that sets the key space.
    """

    root: str
    dataset: str
    keys: tuple[tuple[str, str], ...]
    grain: Buckets
    space_setting: str

    def list_files(self, partitions: Iterable[Partition]) -> "ParquetListing":
        """Lists all files, and reads their footers.

        Raises:
            LandingError: if a footer can't be read or lacks what it takes, or if a key lies outside
                of the key space: no partition would ever hold it.
        """
        files = [
            read_footer(name, key, file, where=relative_name(file.uri, self.root))
            for name, key in self.keys
            for file in self.list_names(name)
        ]
        for landed in files:
            self._refuse_outside(landed)
        wanted = sorted(set(partitions), key=lambda partition: partition.slice.start)  # type: ignore[arg-type,return-value]
        return ParquetListing(self, tuple(wanted), tuple(files))

    def list_names(self, name: str) -> list[LandingFile]:
        """Lists the files of one kind, by name."""
        filesystem, base = open_landing_zone(join_uri(self.root, self.dataset, name))
        found = filesystem.get_file_info(
            fs.FileSelector(base, recursive=False, allow_not_found=True)
        )
        return sorted(
            LandingFile(
                join_uri(self.root, self.dataset, name, info.path[len(base) + 1 :]),
                size=info.size,
                modified_ns=info.mtime_ns or 0,
            )
            for info in found
            if is_data_file(info, _SUFFIXES)
        )

    def _refuse_outside(self, landed: ParquetFile) -> None:
        where = relative_name(landed.file.uri, self.root)
        for group in landed.row_groups:
            if group.smallest < 0:
                raise LandingError(
                    f"{where} holds keys from {group.smallest} on, and no partition holds negative "
                    "ones: nothing was written; land it with keys from 0 on"
                )
            if group.largest >= self.grain.space:
                raise LandingError(
                    f"{where} holds keys from {group.smallest} to {group.largest}, outside of the "
                    f"key space 0 to {self.grain.space - 1}, so no partition would hold them: "
                    f"nothing was written; set {self.space_setting} higher, then run again"
                )


@dataclass(frozen=True)
class ParquetListing:
    """A `Listing` of Parquet files; `files` are all that are there, in the order of their names."""

    folders: ParquetFolders
    partitions: tuple[Partition, ...]
    files: tuple[ParquetFile, ...]

    @property
    def dataset(self) -> str:
        """Its folder below the root."""
        return self.folders.dataset

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
    def unfinished(self) -> Mapping[str, str]:
        """The bucket that the sequence has come to, and not through."""
        largest, space = self.largest_key, self.folders.grain.space
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

    def find_uris(self, name: str) -> list[str]:
        """Finds the files of one kind that may hold keys of the partitions."""
        return [landed.file.uri for landed in self._overlapping if landed.name == name]

    def restrict(self, partitions: Collection[Partition]) -> "ParquetListing":
        """Returns the part of the listing that is about `partitions`."""
        kept = set(partitions)
        remaining = tuple(partition for partition in self.partitions if partition in kept)
        return replace(self, partitions=remaining)

    def fingerprint(self) -> str:
        """Computes the fingerprint of the files that may hold keys of the partitions."""
        return compute_fingerprint((landed.file for landed in self._overlapping), self.folders.root)

    def measure_bytes(self) -> Mapping[str, int]:
        """Sums the bytes of the files by partition key.

        Each part of a file is shared evenly among all buckets that it spans.
        """
        step = self.folders.grain.step
        sizes = dict.fromkeys((partition.key for partition in self.partitions), 0)
        for group in self._row_groups:
            share = group.bytes // (group.largest // step - group.smallest // step + 1)
            for partition in self.partitions:
                if group.overlaps(partition):
                    sizes[partition.key] += share
        return sizes

    def check_unchanged(self) -> None:
        """Lists again and compares, for after the files have been read.

        Raises:
            LandingError: if a file with keys of the partitions was rewritten or vanished, or if any
                appeared.
        """
        now = {file for name, _ in self.folders.keys for file in self.folders.list_names(name)}
        known = {landed.file for landed in self.files}
        gone = {
            partition.key
            for partition in self.partitions
            for landed in self.files
            if landed.file not in now and landed.overlaps(partition)
        }
        refuse_changes(gone or {partition.key for partition in self.partitions if now - known})

    def find_broken(self, error: str) -> list[tuple[Partition, str]]:
        """Finds the partitions that a file which can't be read may hold keys of."""
        broken = [landed for landed in self._overlapping if _is_broken(landed.file)]
        if not broken:
            broken = [landed for landed in self._overlapping if landed.file.uri in unquote(error)]
        return [
            (partition, relative_name(landed.file.uri, self.folders.root))
            for landed in broken
            for partition in self.partitions
            if landed.overlaps(partition)
        ]

    @cached_property
    def _overlapping(self) -> tuple[ParquetFile, ...]:
        return tuple(
            landed
            for landed in self.files
            if any(landed.overlaps(partition) for partition in self.partitions)
        )

    @property
    def _row_groups(self) -> Iterator[RowGroup]:
        return (group for landed in self.files for group in landed.row_groups)


def _is_broken(file: LandingFile) -> bool:
    filesystem, path = open_landing_zone(file.uri)
    try:
        with filesystem.open_input_file(path) as source:
            for _ in pq.ParquetFile(source).iter_batches():
                pass
    except (OSError, pa.ArrowException):
        return True
    return False
