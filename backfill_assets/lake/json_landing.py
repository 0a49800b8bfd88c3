"""JSON lines in the landing zone, in a folder for each partition."""

import gzip
import zlib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from itertools import chain
from urllib.parse import unquote

from pyarrow import fs

from backfill_assets.grains.grain import Grain
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
    """The folders `<root>/<dataset>/year=YYYY/month=MM[/day=DD…]/`, one JSON object a line.

    Attributes:
        root: of the landing zone.
        dataset: a folder below it.
        grain: of the table that is computed from them; tells each partition's folder.
    """

    root: str
    dataset: str
    grain: Grain

    @property
    def uri(self) -> str:
        """Where the dataset is."""
        return join_uri(self.root, self.dataset)

    def list_files(self, partitions: Iterable[Partition]) -> "JsonListing":
        """Lists the files that landed in the folders of `partitions`.

        One listing call a month, whatever their number: calls are what object stores are slow at.
        """
        filesystem, base = open_landing_zone(self.uri)
        wanted = sorted(set(partitions), key=lambda partition: partition.slice.start)  # type: ignore[arg-type,return-value]
        by_folder = {
            self.grain.find_landing_folder(partition.slice.start): partition for partition in wanted
        }
        months = sorted({"/".join(folder.split("/")[:2]) for folder in by_folder})
        listed = (
            filesystem.get_file_info(
                fs.FileSelector(f"{base}/{month}", recursive=True, allow_not_found=True)
            )
            for month in months
        )
        found: list[tuple[Partition, LandingFile]] = []
        for info in chain.from_iterable(listed):
            path = info.path[len(base) + 1 :]
            folder = path.rpartition("/")[0]
            if folder in by_folder and is_data_file(info, _SUFFIXES):
                uri = join_uri(self.uri, path)
                file = LandingFile(uri, size=info.size, modified_ns=info.mtime_ns or 0)
                found.append((by_folder[folder], file))
        found.sort(key=lambda landed: landed[1])
        return JsonListing(self, tuple(wanted), tuple(found))


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
        return tuple(partition for partition in self.partitions if partition not in present)

    @property
    def unfinished(self) -> Mapping[str, str]:
        """None: a time is over when it becomes a partition."""
        return {}

    def restrict(self, partitions: Collection[Partition]) -> "JsonListing":
        """Returns the part of the listing that is about `partitions`."""
        kept = set(partitions)
        return JsonListing(
            self.folders,
            tuple(partition for partition in self.partitions if partition in kept),
            tuple(landed for landed in self.files if landed[0] in kept),
        )

    def fingerprint(self) -> str:
        """Hashes the files' names, sizes and modification times: the version of this input."""
        return compute_fingerprint((file for _, file in self.files), self.folders.root)

    def measure_bytes(self) -> Mapping[str, int]:
        """Sums the bytes of the files, compressed as they are, by partition key."""
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
        """Finds the partitions with a file that doesn't decompress (or that `error` names)."""
        broken = [landed for landed in self.files if _is_broken(landed[1])]
        if not broken:
            broken = [landed for landed in self.files if landed[1].uri in unquote(error)]
        return [
            (partition, relative_name(file.uri, self.folders.root)) for partition, file in broken
        ]


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
