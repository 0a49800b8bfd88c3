"""Arrow's file systems by URI: local disks and object stores alike, without a JVM."""

import re
import tempfile
from pathlib import Path

from pyarrow import fs

from backfill_engine.errors import SettingsError
from backfill_engine.uris import arrow_uri, is_local, local_path

_SCHEMES = ("s3a", "s3", "gs", "gcs", "abfss", "abfs", "hdfs", "viewfs")
"""Of the stores that Arrow and delta-rs both know."""

_LANDING = "BACKFILL_LANDING"
_PATTERN = re.compile(r"[\[\]{}*?\\]")  # escaped, it is itself; but Hadoop then trips over colons

_ROOM = 64 * 1024
"""Bytes that must find room before a step begins; a full disk has a few left."""


def open_filesystem(uri: str) -> tuple[fs.FileSystem, str]:
    """Opens the file system, and finds the path of `uri` on it.

    Raises:
        OSError: if the store can't be reached.
        ValueError: if nothing is known of its scheme.
    """
    if is_local(uri):
        return fs.LocalFileSystem(), str(local_path(uri))
    return fs.FileSystem.from_uri(arrow_uri(uri))


def check_root(root: str, setting: str) -> None:
    """Refuses a root below which nothing can ever be: to readers it looks like an empty one.

    Raises:
        SettingsError: naming the setting.
    """
    if not is_local(root):
        _check_scheme(root, setting)
        return
    nearest = _find_nearest(root, setting)
    if not nearest.is_dir():
        raise SettingsError(
            f"nothing can be below {root}, as {nearest} is no folder: {_name_cure(setting)}"
        )


def check_landing_root(root: str) -> None:
    """Refuses a root of the landing zone that can't be read.

    Raises:
        SettingsError: naming the setting.
    """
    check_root(root, _LANDING)
    path = str(local_path(root)) if is_local(root) else root.partition("://")[2]
    if ":" in path and _PATTERN.search(path):
        raise SettingsError(
            f"{root}: Spark can't read a path that has a colon and one of [ ] {{ }} * ? \\: set "
            f"{_LANDING} to a place without them"
        )


def check_writable(root: str, setting: str) -> None:
    """Refuses a root where nothing can be written, before anything starts that would.

    Raises:
        SettingsError: naming the setting.
    """
    check_root(root, setting)
    if not is_local(root):
        return  # a store says so only when it is asked to write
    nearest = _find_nearest(root, setting)
    try:
        with tempfile.TemporaryFile(dir=nearest) as file:
            file.write(bytes(_ROOM))
    except OSError as error:
        raise SettingsError(
            f"nothing can be written to {nearest} ({error.strerror}): make room, let this user "
            f"write there, or {_name_cure(setting)}"
        ) from error


def _find_nearest(root: str, setting: str) -> Path:
    """Finds the root, or the nearest path above it that is there."""
    path = local_path(root)
    for above in (path, *path.parents):
        try:
            above.lstat()
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:  # such as a name that is too long
            raise SettingsError(
                f"{root} is no path ({error.strerror}): {_name_cure(setting)}"
            ) from error
        return above
    return path


def _check_scheme(uri: str, setting: str) -> None:
    scheme = uri.partition("://")[0]
    if scheme not in _SCHEMES:
        raise SettingsError(
            f"{uri}: not all of Spark, Arrow and delta-rs know {scheme}://: set {setting} to a "
            f"path, or to a URI with {', '.join(_SCHEMES)}"
        )


def _name_cure(setting: str) -> str:
    return f"set {setting} to a folder, or to the URI of an object store"
