"""The commit files of a Delta log, as they are: `_delta_log/<version>.json`, an action a line.

delta-rs's `history` numbers what it finds from the version that it opened down, so that a commit
which came since, or one that the log has cleaned away, shifts all others. Names of files don't.
"""

import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import unquote

from pyarrow import fs

from backfill_engine.lake.delta_logs import describe_unreadable, shorten_cause
from backfill_engine.lake.filesystems import open_filesystem

_READERS = 16
_CLOCK_SECONDS = 0.02
"""By so much a file's time may be behind: a kernel's clock ticks more coarsely than a process's."""
_FEW = 64
"""Commits that are read by their names, without a listing of the log."""


def read_actions(uri: str, version: int) -> list[dict[str, Any]]:
    """Reads all actions of a commit, in the order in which they stand.

    Raises:
        FileNotFoundError: if the log no longer has the commit.
        TableError: if its file can't be read.
    """
    filesystem, base = open_filesystem(uri)
    return _read_file(filesystem, uri, _locate(base, version))


def read_commit_infos(uri: str, *, after: int, up_to: int) -> list[tuple[int, dict[str, Any]]]:
    """Reads version and `commitInfo` of the commits that the log still has, newest first.

    Args:
        uri: of the table, which must exist.
        after: the version before the oldest one that is wanted.
        up_to: the newest one that is wanted.

    Raises:
        TableError: if one of the files can't be read.
    """
    filesystem, base = open_filesystem(uri)
    wanted = list(range(up_to, after, -1))
    if len(wanted) > _FEW:
        wanted = [version for version in list_versions(uri) if after < version <= up_to]
    # At once, as an object store answers each request after the same while.
    with ThreadPoolExecutor(_READERS) as pool:
        infos = pool.map(
            lambda version: _read_info(filesystem, uri, _locate(base, version)), wanted
        )
        found = zip(wanted, infos, strict=True)
        return [(version, info) for version, info in found if info is not None]


def read_changed_folders(uri: str, version: int, column: str) -> frozenset[str] | None:
    """Reads the folders (their values as text) whose data a commit changed, by its file actions.

    Actions that say that they change no data (`dataChange` is false: compaction) don't count.

    Args:
        uri: of the table.
        version: of the commit.
        column: the folder column. With column mapping the actions have another name for it; the
            tables have one folder column, so that its name isn't needed then.

    Returns:
        None if an action doesn't say in which folder its file is, or the log no longer has the
        commit: any folder may have changed.

    Raises:
        TableError: if the commit's file can't be read.
    """
    try:
        actions = read_actions(uri, version)
    except FileNotFoundError:
        return None
    folders: set[str] = set()
    for action in actions:
        file = action.get("add") or action.get("remove")
        if file is None or not file.get("dataChange", True):
            continue
        values = file.get("partitionValues") or _read_path_values(file["path"])
        if column not in values and len(values) != 1:
            return None
        folders.add(str(values.get(column, next(iter(values.values())))))
    return frozenset(folders)


def _read_path_values(path: str) -> dict[str, str]:
    """Reads the values of the folders of a path, `name=value/…`."""
    pairs = (unquote(folder).partition("=") for folder in path.split("/")[:-1])
    return {name: value for name, _, value in pairs}


def list_versions(uri: str) -> list[int]:
    """Lists the versions whose commits the log still has, newest first.

    Raises:
        TableError: if the log can't be listed.
    """
    filesystem, base = open_filesystem(uri)
    try:
        listed = filesystem.get_file_info(fs.FileSelector(f"{base}/_delta_log"))
    except OSError as error:
        raise describe_unreadable(uri, shorten_cause(error)) from error
    names = (info.base_name.partition(".") for info in listed)
    versions = (int(stem) for stem, _, suffix in names if suffix == "json" and stem.isdigit())
    return sorted(versions, reverse=True)


def is_newest(uri: str, version: int, *, read_at: float) -> bool:
    """Tells whether the newest commit is still the one that was read.

    Versions have no gaps, so that no other one comes after a commit without the next.

    Args:
        uri: of the table.
        version: of the commit.
        read_at: when it was read, in seconds since 1970.
    """
    filesystem, base = open_filesystem(uri)
    commit, following = filesystem.get_file_info(
        [_locate(base, number) for number in (version, version + 1)]
    )
    if commit.type != fs.FileType.File or following.type == fs.FileType.File:
        return False
    return not _is_written_after(commit, read_at - _CLOCK_SECONDS)


def is_as_read(uri: str, version: int, *, read_at: float) -> bool:
    """Tells whether a commit that was read is still the same, or was cleaned away since.

    One that was written since is of another table at the same place, or of a log that had lost it.
    """
    filesystem, base = open_filesystem(uri)
    return not _is_written_after(filesystem.get_file_info(_locate(base, version)), read_at)


def _is_written_after(file: fs.FileInfo, then: float) -> bool:
    """Tells whether a file is there, and newer than a time."""
    return file.mtime_ns is not None and file.mtime_ns / 1e9 > then


def read_commit_file(uri: str, version: int) -> bytes | None:
    """Reads a commit's file as it is; None if the log no longer has it."""
    filesystem, base = open_filesystem(uri)
    try:
        with filesystem.open_input_file(_locate(base, version)) as commit:
            return commit.read()
    except FileNotFoundError:
        return None


def _read_info(filesystem: fs.FileSystem, uri: str, path: str) -> dict[str, Any] | None:
    """Reads the `commitInfo` of one commit file.

    Returns None where the log's cleanup has removed the commit; empty of one that says nothing.
    """
    try:
        actions = _read_file(filesystem, uri, path, containing=b'"commitInfo"')
    except FileNotFoundError:
        return None
    return next((action["commitInfo"] for action in actions if action.get("commitInfo")), {})


def _read_file(
    filesystem: fs.FileSystem, uri: str, path: str, *, containing: bytes = b""
) -> list[dict[str, Any]]:
    """Reads the actions of one file in whose lines `containing` stands."""
    name = path.rpartition("/")[2]
    try:
        with filesystem.open_input_file(path) as commit:
            lines = [line for line in commit.read().splitlines() if line]
        if not lines:
            raise describe_unreadable(uri, f"{name} is empty")
        return [json.loads(line) for line in lines if containing in line]
    except FileNotFoundError:
        raise
    except (OSError, ValueError) as error:
        raise describe_unreadable(
            uri, f"{name} is cut off or overwritten ({shorten_cause(error)})"
        ) from error


def _locate(base: str, version: int) -> str:
    return f"{base}/_delta_log/{version:020}.json"
