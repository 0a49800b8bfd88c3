"""What lies in a folder of the landing zone, and what its names say: data, done, being written."""

import errno
import os
import re
import stat
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from pyarrow import fs
from pyspark.sql import Column
from pyspark.sql import functions as F

from backfill_engine.audit_columns import LANDED_FILE
from backfill_engine.engines.engine import FILE_PATH
from backfill_engine.errors import LandingError
from backfill_engine.lake.landing import open_landing_zone

BEING_WRITTEN = "is being written: run again when it is finished, or remove it"
"""What is wrong with a name that tells of a writer at work, or of one that died."""

_LEADS_NOWHERE = "is a link that leads nowhere: mend it or remove it"
_SPECIAL = "is neither a file nor a folder: remove it"
_FOLDER = "is a folder, and named as a file: move its files up, or remove it"
_NOT_UTF8 = "has a name that isn't UTF-8: rename it"

_DONE = frozenset({"_SUCCESS", "._SUCCESS.crc"})
"""What Hadoop leaves of a job that is done, whether it wrote any data or not."""

_HALF_WRITTEN = re.compile(
    # Folders that writers gather files in, until they are all there: of Hadoop, Spark, Hive, S3A.
    r"[._]+(temporary|tmp|temp|partial|staging|spark-staging|hive-staging|rsync|magic|distcp|"
    r"azdownload|unison|syncthing|uploads?|incoming|in[-_.]?progress)(?![a-z]).*"
    # Ends of names, until the file is whole: of browsers, FileZilla, rclone, Hadoop, Flink, vim.
    r"|.*[._~](tmp|temp|part|partial|crdownload|filepart|download|opdownload|in-?progress|"
    r"incomplete|unfinished|writing|uploading|copying|gstmp|aria2|lftp|swp)[._~]*"
    r"|.*\.(tmp|part|partial|in-?progress)\.[\w-]+",
    re.IGNORECASE | re.DOTALL,
)


class Entry(NamedTuple):
    """What is listed under one name.

    Attributes:
        path: on its file system.
        is_folder: whether it is one, maybe by a link.
        size: of a file, in bytes.
        modified_ns: when it was written, in nanoseconds.
        fault: why it can be read neither as a file nor as a folder, after its name.
    """

    path: str
    is_folder: bool
    size: int = 0
    modified_ns: int = 0
    fault: str = ""

    @property
    def name(self) -> str:
        """The last part of its path."""
        return self.path.rpartition("/")[2]


def list_folder(uri: str, *, levels: int = 1) -> list[Entry]:
    """Lists a folder; one that isn't there is empty.

    Args:
        uri: of the folder.
        levels: how deep, if the folders in it are to be listed too; object stores list all.

    Raises:
        LandingError: if it can't be listed. A folder in it that can't be has a fault.
    """
    filesystem, path = open_landing_zone(uri)
    try:
        if isinstance(filesystem, fs.LocalFileSystem):
            # Arrow leaves out links that lead nowhere, and follows those that lead round in rings.
            return list(_list_local(path, levels))
        selector = fs.FileSelector(path, recursive=levels > 1, allow_not_found=True)
        return [
            Entry(info.path, info.type == fs.FileType.Directory, info.size or 0, info.mtime_ns or 0)
            for info in filesystem.get_file_info(selector)
        ]
    except FileNotFoundError:
        return []
    except OSError as error:
        raise LandingError(f"can't list {uri}: {error}; nothing was written") from error


def is_hidden(name: str) -> bool:
    """Tells whether a name is hidden from whoever reads data, as Spark and Hadoop have it."""
    return name.startswith((".", "_"))


def is_done(name: str) -> bool:
    """Tells whether a name only says that its writer is done."""
    return name in _DONE


def find_name_fault(name: str, entry: Entry, suffixes: tuple[str, ...]) -> str:
    """Finds why records are missing where this lies, after its name; empty if none need be.

    Args:
        name: in the folder of the data.
        entry: what was listed, under this name or in a folder of this name.
        suffixes: of data.
    """
    is_folder = entry.is_folder or entry.name != name
    if entry.fault and entry.name == name and (entry.fault != _SPECIAL or name.endswith(suffixes)):
        return entry.fault
    if _is_being_written(name, suffixes):
        return BEING_WRITTEN
    return _FOLDER if is_folder and name.endswith(suffixes) and not is_hidden(name) else ""


def find_reason_unread(name: str, entry: Entry, suffixes: tuple[str, ...]) -> str:
    """Finds why this isn't read though nothing is wrong with it; empty for data."""
    if entry.is_folder or entry.name != name:
        return "a folder"
    if is_hidden(name):
        return "hidden"
    return "" if name.endswith(suffixes) and not entry.fault else f"not {' or '.join(suffixes)}"


def _is_being_written(name: str, suffixes: tuple[str, ...]) -> bool:
    if name.startswith("."):
        # Hidden until renamed: `.a.json`, and `.a.json.Ab3dE9` of rsync. A sum of Hadoop's is not.
        is_data = any(suffix in name.lower() for suffix in suffixes)
        return not name.endswith(".crc") and (is_data or bool(_HALF_WRITTEN.fullmatch(name)))
    return not name.endswith(suffixes) and bool(_HALF_WRITTEN.fullmatch(name))


def _list_local(path: str, levels: int) -> Iterator[Entry]:
    with os.scandir(path) as found:
        for item in found:
            entry = _describe(item)
            if entry is None:
                continue
            if not entry.is_folder or levels == 1:
                yield entry
                continue
            try:
                below = list(_list_local(entry.path, levels - 1))
            except OSError as error:
                yield entry._replace(fault=f"can't be listed ({error.strerror}): let it be listed")
            else:
                yield entry
                yield from below


def _describe(item: os.DirEntry[str]) -> Entry | None:
    """Describes what is listed; nothing, if it is gone meanwhile."""
    try:
        item.name.encode()
    except UnicodeEncodeError:
        shown = os.fsencode(item.path).decode(errors="replace")
        return Entry(shown, is_folder=False, fault=_NOT_UTF8)
    try:
        state = item.stat()
    except OSError as error:
        if item.is_symlink():
            leads_nowhere = error.errno in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)
            why = _LEADS_NOWHERE if leads_nowhere else f"is a link that fails ({error.strerror})"
            return Entry(item.path, is_folder=False, fault=why)
        if isinstance(error, FileNotFoundError):
            return None
        why = f"can't be looked at ({error.strerror}): let it be read, or remove it"
        return Entry(item.path, is_folder=False, fault=why)
    if stat.S_ISDIR(state.st_mode):
        return Entry(item.path, is_folder=True)
    fault = "" if stat.S_ISREG(state.st_mode) else _SPECIAL
    size, modified_ns = state.st_size, state.st_mtime_ns
    return Entry(item.path, is_folder=False, size=size, modified_ns=modified_ns, fault=fault)


def find_path_below_dataset(levels: int) -> Column:
    """Builds the path, STRING, of a row's file below its data set; percent-encoded.

    Args:
        levels: how many folders it lies in there.
    """
    return F.substring_index(FILE_PATH, "/", -levels - 1)


def build_source_file(dataset: str, levels: int) -> Column:
    """Builds the name, STRING, of a row's file below the landing root."""
    return F.concat_ws("/", F.lit(dataset), _decode(find_path_below_dataset(levels)))


def look_up_file(values: Mapping[str, object], type_: str) -> Column:
    """Builds the value of a row's file, of a type; null where it has none.

    Args:
        values: by name of a file below the landing root.
        type_: of the column.
    """
    if not values:
        return F.lit(None).cast(type_)
    by_file = F.create_map(*(F.lit(part) for entry in values.items() for part in entry))
    return by_file[F.col(LANDED_FILE)].cast(type_)


def _decode(path: Column) -> Column:
    """Undoes the percent-encoding of `FILE_PATH`; a plus sign is itself there."""
    decoded = F.url_decode(F.regexp_replace(path, r"\+", "%2B"))
    return F.when(path.contains("%"), decoded).otherwise(path)  # seldom, and dear
