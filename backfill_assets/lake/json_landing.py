"""JSON lines in the landing zone, in a folder for each partition."""

import datetime as dt
import gzip
import zlib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from urllib.parse import unquote

from pyarrow import fs

from backfill_assets.lake.landing import (
    LandingFile,
    compute_fingerprint,
    is_data_file,
    open_landing_zone,
    refuse_changes,
    relative_name,
)
from backfill_assets.lake.slices import Partition
from backfill_assets.uris import join_uri

_SUFFIXES = (".json", ".json.gz")


@dataclass(frozen=True)
class JsonFolders:
    """The folders `<root>/<dataset>/year=YYYY/month=MM/day=DD[/hour=HH]/`, one JSON object a line.

    Attributes:
        root: of the landing zone.
        dataset: a folder below it.
    """

    root: str
    dataset: str

    def list_files(self, partitions: Iterable[Partition]) -> "JsonListing":
        """Lists the files that landed in the days or hours of `partitions`.

        One listing call a month, whatever their number: calls are what object stores are slow at.
        """
        filesystem, base = open_landing_zone(join_uri(self.root, self.dataset))
        wanted = sorted(set(partitions), key=lambda one: one.slice.start)  # type: ignore[arg-type,return-value]
        by_folder = {f"{base}/{_find_folder(one)}": one for one in wanted}
        files = [
            (
                by_folder[folder],
                LandingFile(
                    join_uri(self.root, self.dataset, info.path[len(base) + 1 :]),
                    size=info.size,
                    modified_ns=info.mtime_ns or 0,
                ),
            )
            for month in sorted({_find_month(one) for one in wanted})
            for info in filesystem.get_file_info(
                fs.FileSelector(f"{base}/{month}", recursive=True, allow_not_found=True)
            )
            if is_data_file(info, _SUFFIXES)
            and (folder := info.path.rpartition("/")[0]) in by_folder
        ]
        return JsonListing(self, tuple(wanted), tuple(sorted(files, key=lambda one: one[1])))


@dataclass(frozen=True)
class JsonListing:
    """A `Listing` of JSON lines; `files` are in the order of their names, with their partitions."""

    folders: JsonFolders
    partitions: tuple[Partition, ...]
    files: tuple[tuple[Partition, LandingFile], ...]

    @property
    def dataset(self) -> str:
        """Its folder below the root."""
        return self.folders.dataset

    @property
    def missing(self) -> tuple[Partition, ...]:
        """Listed partitions of which no file is there."""
        present = {partition for partition, _ in self.files}
        return tuple(one for one in self.partitions if one not in present)

    @property
    def unfinished(self) -> Mapping[str, str]:
        """None: a day or an hour is over when it becomes a partition."""
        return {}

    def restrict(self, partitions: Collection[Partition]) -> "JsonListing":
        """The part of the listing that is about `partitions`."""
        kept = set(partitions)
        return JsonListing(
            self.folders,
            tuple(one for one in self.partitions if one in kept),
            tuple(one for one in self.files if one[0] in kept),
        )

    def fingerprint(self) -> str:
        """Hash of the files' names, sizes and modification times: the version of this input."""
        return compute_fingerprint((file for _, file in self.files), self.folders.root)

    def measure_bytes(self) -> Mapping[str, int]:
        """Bytes of the files, compressed as they are, by partition key."""
        sizes: dict[str, int] = {}
        for partition, file in self.files:
            sizes[partition.key] = sizes.get(partition.key, 0) + file.size
        return sizes

    def check_unchanged(self) -> None:
        """Lists again and compares, for after the files have been read.

        Raises:
            LandingError: if a file appeared, vanished or was rewritten meanwhile.
        """
        now = self.folders.list_files(self.partitions)
        refuse_changes({partition.key for partition, _ in set(self.files) ^ set(now.files)})

    def find_broken(self, error: str) -> list[tuple[Partition, str]]:
        """The partitions with a file that doesn't decompress (or that `error` names)."""
        broken = [one for one in self.files if _is_broken(one[1])]
        if not broken:
            broken = [one for one in self.files if one[1].uri in unquote(error)]
        return [
            (partition, relative_name(file.uri, self.folders.root)) for partition, file in broken
        ]


def _find_folder(partition: Partition) -> str:
    start = partition.slice.start
    assert isinstance(start, dt.date)
    hour = f"/hour={start:%H}" if isinstance(start, dt.datetime) else ""
    return f"{_find_month(partition)}/day={start:%d}{hour}"


def _find_month(partition: Partition) -> str:
    start = partition.slice.start
    assert isinstance(start, dt.date)
    return f"year={start:%Y}/month={start:%m}"


def _is_broken(file: LandingFile) -> bool:
    if not file.uri.endswith(".gz"):
        return False
    filesystem, path = open_landing_zone(file.uri)
    try:
        with filesystem.open_input_file(path) as source, gzip.open(source) as content:
            while content.read(1 << 20):
                pass
    except (OSError, EOFError, zlib.error):
        return True
    return False
