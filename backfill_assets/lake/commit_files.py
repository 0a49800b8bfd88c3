"""The commit files of a Delta log, as they are: `_delta_log/<version>.json`, an action a line.

delta-rs's `history` numbers what it finds from the version that it opened down, so that a commit
which came since, or one that the log has cleaned away, shifts all others. Names of files don't.
"""

import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from pyarrow import fs

from backfill_assets.lake.delta_logs import describe_unreadable, shorten_cause
from backfill_assets.lake.filesystems import open_filesystem

_READERS = 16
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


def read_touched_folders(uri: str, version: int, column: str) -> set[str] | None:
    """Reads of which folders a commit added or removed data.

    Args:
        uri: of the table.
        version: the commit.
        column: whose value names a folder.

    Returns:
        The values as text; None if the log no longer has the commit.

    Raises:
        TableError: if its file can't be read.
    """
    try:
        actions = read_actions(uri, version)
    except FileNotFoundError:
        return None
    files = (action.get("add") or action.get("remove") for action in actions)
    changed = [file for file in files if file and file.get("dataChange", True)]
    if not all(file.get("partitionValues") for file in changed):
        return None  # Delta need not say of which folder a removed file is.
    return {str(file["partitionValues"][column]) for file in changed}


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


def is_newest(uri: str, version: int) -> bool:
    """Tells whether the log has a commit and, as versions have no gaps, none after it."""
    filesystem, base = open_filesystem(uri)
    places = [_locate(base, one) for one in (version, version + 1)]
    found = [info.type == fs.FileType.File for info in filesystem.get_file_info(places)]
    return found == [True, False]


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
