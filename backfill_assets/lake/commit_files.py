"""The commit files of a Delta log, as they are: `_delta_log/<version>.json`, an action a line.

delta-rs's `history` numbers what it finds from the version that it opened down, so that a commit
which came since, or one that the log has cleaned away, shifts all others. Names of files don't.
"""

import json
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from pyarrow import fs

from backfill_assets.lake.filesystems import open_filesystem

_READERS = 16


def read_actions(uri: str, version: int) -> list[dict[str, Any]]:
    """Reads all actions of a commit, in the order in which they stand.

    Raises:
        FileNotFoundError: if the log no longer has the commit.
    """
    filesystem, base = open_filesystem(uri)
    return [json.loads(line) for line in _read_lines(filesystem, _locate(base, version))]


def read_commit_infos(uri: str, *, after: int, up_to: int) -> list[tuple[int, dict[str, Any]]]:
    """Reads version and `commitInfo` of the commits that the log still has, newest first.

    Args:
        uri: of the table, which must exist.
        after: the version before the oldest one that is wanted.
        up_to: the newest one that is wanted.
    """
    filesystem, base = open_filesystem(uri)
    listed = filesystem.get_file_info(fs.FileSelector(f"{base}/_delta_log"))
    names = (info.base_name.partition(".") for info in listed)
    versions = sorted(
        (int(stem) for stem, _, suffix in names if suffix == "json" and stem.isdigit()),
        reverse=True,
    )
    wanted = [version for version in versions if after < version <= up_to]
    # At once, as an object store answers each request after the same while.
    with ThreadPoolExecutor(_READERS) as pool:
        infos = pool.map(lambda version: _read_info(filesystem, _locate(base, version)), wanted)
        found = zip(wanted, infos, strict=True)
        return [(version, info) for version, info in found if info is not None]


def _read_info(filesystem: fs.FileSystem, path: str) -> dict[str, Any] | None:
    """Reads the `commitInfo` of one commit file.

    Returns None where the log's cleanup has removed the commit; empty of one that says nothing.
    """
    try:
        lines = _read_lines(filesystem, path)
    except FileNotFoundError:
        return None
    for line in lines:
        if b'"commitInfo"' in line and (info := json.loads(line).get("commitInfo")):
            return info
    return {}


def _read_lines(filesystem: fs.FileSystem, path: str) -> Sequence[bytes]:
    with filesystem.open_input_file(path) as commit:
        return [line for line in commit.read().splitlines() if line]


def _locate(base: str, version: int) -> str:
    return f"{base}/_delta_log/{version:020}.json"
