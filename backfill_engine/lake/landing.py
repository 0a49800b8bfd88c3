"""The landing zone: what is there is listed once, and then pinned."""

import hashlib
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import NamedTuple

from pyarrow import fs

from backfill_engine.errors import LandingError, LandingNotFoundError
from backfill_engine.filesystems import open_filesystem
from backfill_engine.lake.partitions import Partition
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
        files: how many; 0 of a source without files, too.
        bytes: of all of them, as they lie there.
        fingerprint: hash of their names, sizes and modification times, or of the evidence of a
            source without files.
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


def summarize_files(files: Iterable[LandingFile], root: str) -> LandedFiles:
    """Counts the files, and hashes their names below the root, sizes and times."""
    digest, count, size = hashlib.sha256(), 0, 0
    for file in files:
        name = relative_name(file.uri, root)
        digest.update(f"{name}\0{file.size}\0{file.modified_ns}\n".encode())
        count += 1
        size += file.size
    return LandedFiles(count, size, digest.hexdigest()[:16])


def summarize_evidence(evidence: str) -> LandedFiles:
    """Hashes what a source without files says of a partition; empty if nothing is there."""
    return LandedFiles(0, 0, hashlib.sha256(evidence.encode()).hexdigest()[:16])


NOTHING_LANDED = summarize_evidence("")
"""What a partition has of which nothing is there."""


def compute_fingerprint(files: Iterable[LandingFile], root: str) -> str:
    """Writes how many files there are, and their fingerprint."""
    found = summarize_files(files, root)
    return f"{found.files} files {found.fingerprint}"


def relative_name(uri: str, root: str) -> str:
    """Returns a file's name below the root, the same wherever the landing zone is mounted."""
    return uri[len(root.rstrip("/")) + 1 :]


def refuse_changes(changed: Collection[str]) -> None:
    """Refuses partition keys whose files or rows changed, for `check_unchanged`.

    Raises:
        LandingError: if there are any.
    """
    if changed:
        raise LandingError(
            f"files or rows of {', '.join(sorted(changed))} changed while they were read; "
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
