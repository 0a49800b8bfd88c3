"""The landing zone: what is there is listed once, and then pinned."""

import hashlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from pyarrow import fs

from backfill_engine.errors import LandingError, LandingNotFoundError
from backfill_engine.lake.filesystems import open_filesystem
from backfill_engine.lake.slices import Partition
from backfill_engine.rules.landed import Landed
from backfill_engine.uris import join_uri


@dataclass(frozen=True, order=True)
class LandingFile:
    """One file: URI as Spark reads it, size in bytes, modification time in ns."""

    uri: str
    size: int
    modified_ns: int


class LandedFiles(NamedTuple):
    """What files a partition was computed from, or is to be.

    Attributes:
        files: how many.
        bytes: of all of them, as they lie there.
        fingerprint: hash of their names, sizes and modification times.
    """

    files: int
    bytes: int
    fingerprint: str


class FileFault(NamedTuple):
    """A file that can't be read, of a partition that it holds, or may hold, records of.

    Attributes:
        partition: the partition.
        name: of the file, below the landing root.
        fault: why it can't be read, after its name.
    """

    partition: Partition
    name: str
    fault: str = "can't be read"


class Listing(Protocol):
    """What was in the landing zone when it was listed; only these files are read."""

    @property
    def dataset(self) -> str:
        """Its folder below the root."""
        ...

    @property
    def missing(self) -> Sequence[Partition]:
        """Listed partitions of which nothing is there."""
        ...

    @property
    def faults(self) -> Sequence[FileFault]:
        """What is known to be unreadable before any record is read."""
        ...

    @property
    def unfinished(self) -> Mapping[str, str]:
        """By partition key, why more of it is yet to land; in words."""
        ...

    def restrict(self, partitions: Collection[Partition]) -> "Listing":
        """Returns the part of the listing that is about `partitions`."""
        ...

    def fingerprint(self) -> str:
        """Hashes the files' names, sizes and modification times: the version of this input."""
        ...

    def describe_files(self) -> Mapping[str, LandedFiles]:
        """Describes the files that each listed partition is computed from, by its key."""
        ...

    def list_landed(self) -> Mapping[str, Sequence[LandingFile]]:
        """Lists the files that `describe_files` describes, by partition key."""
        ...

    def name_file(self, file: LandingFile) -> str:
        """Names a file below the root, the same wherever the landing zone is mounted."""
        ...

    def count_records(self) -> Mapping[str, int]:
        """Counts the records that landed, by partition key; without Spark.

        Absent are partitions of which that can't be told: a file can't be read, or it holds
        records of other partitions too and only its footer is.
        """
        ...

    def measure_bytes(self) -> Mapping[str, int]:
        """Measures bytes to read by partition key, as near as is known without reading them."""
        ...

    def describe_landed(self) -> Mapping[str, Landed]:
        """Describes what is there, by the key of each listed partition."""
        ...

    def check_unchanged(self) -> None:
        """Lists again and compares, for after the files have been read.

        Raises:
            LandingError: if a file appeared, vanished or was rewritten meanwhile.
        """
        ...

    def find_broken(self, error: str) -> Sequence[FileFault]:
        """Finds the files that can't be read, each with the partitions that it may hold.

        Reads all files: for after a failure. `error`, Spark's message, may name one that is
        readable here and that Spark can't read.
        """
        ...


def summarize_files(files: Iterable[LandingFile], root: str) -> LandedFiles:
    """Counts the files, and hashes their names below the root, sizes and times."""
    digest, count, size = hashlib.sha256(), 0, 0
    for file in files:
        name = relative_name(file.uri, root)
        digest.update(f"{name}\0{file.size}\0{file.modified_ns}\n".encode())
        count += 1
        size += file.size
    return LandedFiles(count, size, digest.hexdigest()[:16])


def compute_fingerprint(files: Iterable[LandingFile], root: str) -> str:
    """Writes how many files there are, and their fingerprint."""
    found = summarize_files(files, root)
    return f"{found.files} files {found.fingerprint}"


def relative_name(uri: str, root: str) -> str:
    """Returns a file's name below the root, the same wherever the landing zone is mounted."""
    return uri[len(root.rstrip("/")) + 1 :]


def refuse_changes(changed: Collection[str]) -> None:
    """Refuses partition keys whose files changed, for `check_unchanged`.

    Raises:
        LandingError: if there are any.
    """
    if changed:
        raise LandingError(
            f"landing files of {', '.join(sorted(changed))} changed while they were read; "
            "nothing was published: run these partitions again"
        )


def open_landing_zone(uri: str) -> tuple[fs.FileSystem, str]:
    """Opens the file system of the landing zone, and finds the path of `uri` on it.

    Raises:
        LandingError: if it can't be opened.
    """
    try:
        return open_filesystem(uri)
    except (OSError, ValueError) as error:
        raise LandingError(f"can't open the landing zone {uri}: {error}") from error


def require_folder(root: str, dataset: str) -> None:
    """Refuses a data set that isn't there.

    An empty listing of it would look like a source that took everything back.

    Raises:
        LandingNotFoundError: if the root or the folder of the data set isn't there, or is a file.
        LandingError: if that can't be told.
    """
    folder = join_uri(root, dataset)
    if _find_type(folder) == fs.FileType.Directory:
        return
    missing = root if _find_type(root) != fs.FileType.Directory else folder
    raise LandingNotFoundError(
        f"the landing folder {missing} isn't there: mount it or set BACKFILL_LANDING; "
        "nothing was written"
    )


def _find_type(uri: str) -> fs.FileType:
    filesystem, path = open_landing_zone(uri)
    try:
        return filesystem.get_file_info(path).type
    except OSError as error:
        raise LandingError(f"can't list {uri}: {error}; nothing was written") from error
