"""The landing zone: files by the day on which they landed, listed once and then pinned."""

import datetime as dt
import gzip
import hashlib
import zlib
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from functools import cached_property

from pyarrow import fs

from backfill_assets.errors import LandingError
from backfill_assets.lake.filesystems import open_filesystem
from backfill_assets.lake.uris import join_uri

_SUFFIXES = (".json", ".json.gz")


@dataclass(frozen=True, order=True)
class LandingFile:
    """One file: URI as Spark reads it, landing day, size in bytes, modification time in ns."""

    uri: str
    day: dt.date
    size: int
    modified_ns: int


@dataclass(frozen=True)
class Landing:
    """The folders `<root>/<dataset>/year=YYYY/month=MM/day=DD/` with one JSON object a line."""

    root: str
    dataset: str

    def list_files(self, days: Iterable[dt.date]) -> "LandingListing":
        """Lists the files that landed on `days`; hidden files and other suffixes are not data.

        One listing call a month, whatever the number of days: calls are what object stores are slow
        at.
        """
        filesystem, base = _open_filesystem(join_uri(self.root, self.dataset))
        days_by_folder = {f"{base}/year={day:%Y}/month={day:%m}/day={day:%d}": day for day in days}
        wanted = sorted(days_by_folder.values())
        files = [
            LandingFile(
                uri=join_uri(self.root, self.dataset, info.path[len(base) + 1 :]),
                day=day,
                size=info.size,
                modified_ns=info.mtime_ns or 0,
            )
            for month in sorted({(day.year, day.month) for day in wanted})
            for info in filesystem.get_file_info(_month_selector(base, *month))
            if _is_data_file(info)
            and (day := days_by_folder.get(info.path.rpartition("/")[0])) is not None
        ]
        return LandingListing(self, tuple(wanted), tuple(sorted(files)))

    def relative_name(self, uri: str) -> str:
        """The file's name below the root, the same wherever the landing zone is mounted."""
        return uri[len(self.root.rstrip("/")) + 1 :]


@dataclass(frozen=True)
class LandingListing:
    """What was in the landing zone when it was listed; only these files are read."""

    landing: Landing
    days: tuple[dt.date, ...]
    files: tuple[LandingFile, ...]

    @cached_property
    def days_without_files(self) -> tuple[dt.date, ...]:
        """Listed days on which nothing is there."""
        present = {file.day for file in self.files}
        return tuple(day for day in self.days if day not in present)

    def restrict(self, days: Collection[dt.date]) -> "LandingListing":
        """The part of the listing that is about `days`."""
        return LandingListing(
            self.landing,
            tuple(day for day in self.days if day in days),
            tuple(file for file in self.files if file.day in days),
        )

    def fingerprint(self) -> str:
        """Hash of the files' names, sizes and modification times: the version of this input."""
        digest = hashlib.sha256()
        for file in self.files:
            name = self.landing.relative_name(file.uri)
            digest.update(f"{name}\0{file.size}\0{file.modified_ns}\n".encode())
        return f"{len(self.files)} files {digest.hexdigest()[:16]}"

    def check_unchanged(self) -> None:
        """Lists again and compares, for after the files have been read.

        Raises:
            LandingError: if a file appeared, vanished or was rewritten meanwhile.
        """
        now = self.landing.list_files(self.days)
        changed = sorted({file.day for file in set(self.files) ^ set(now.files)})
        if changed:
            raise LandingError(
                f"landing files of {', '.join(map(str, changed))} changed while they were read; "
                "nothing was published: run these partitions again"
            )


def _open_filesystem(uri: str) -> tuple[fs.FileSystem, str]:
    try:
        return open_filesystem(uri)
    except (OSError, ValueError) as error:
        raise LandingError(f"can't open the landing zone {uri}: {error}") from error


def _month_selector(base: str, year: int, month: int) -> fs.FileSelector:
    folder = f"{base}/year={year:04}/month={month:02}"
    return fs.FileSelector(folder, recursive=True, allow_not_found=True)


def _is_data_file(info: fs.FileInfo) -> bool:
    hidden = info.base_name.startswith((".", "_"))
    return info.type == fs.FileType.File and not hidden and info.base_name.endswith(_SUFFIXES)


def find_broken_files(listing: LandingListing) -> list[LandingFile]:
    """The compressed files that don't decompress. Reads them all: for after a failure."""
    broken: list[LandingFile] = []
    for file in listing.files:
        if file.uri.endswith(".gz"):
            filesystem, path = _open_filesystem(file.uri)
            try:
                with filesystem.open_input_file(path) as source, gzip.open(source) as content:
                    while content.read(1 << 20):
                        pass
            except (OSError, EOFError, zlib.error):
                broken.append(file)
    return broken
