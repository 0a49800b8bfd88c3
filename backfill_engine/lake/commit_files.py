"""The commit files of a Delta log, as they are: `_delta_log/<version>.json`, an action a line.

delta-rs's `history` numbers what it finds from the version that it opened down, so that a commit
which came since, or one that the log has cleaned away, shifts all others. Names of files don't.

Delta removes the commits of a log that are older than its retention, and with them what they carry.
The index of publishes is what is left of them, for longer: a reading of the log up to a version,
made again from the last one and the commits since. It decides nothing that the log says otherwise:
one of another table, of a version that the log doesn't have, or of another commit of that number
counts as none. It lies at `<warehouse>/publishes/<layer>.<table>.jsonl`, a file of
`lake.whole_files`: a line that says of which table and version it is, and a line for each commit of
which something is kept, newest first.
"""

import datetime as dt
import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from urllib.parse import unquote

from deltalake import DeltaTable
from pyarrow import fs, parquet
from pydantic import TypeAdapter

from backfill_engine.filesystems import open_filesystem
from backfill_engine.grains.whole import WHOLE_KEY
from backfill_engine.lake.commits import MIGRATE, Commit, CommitRecord, MigrationRecord
from backfill_engine.lake.delta_logs import describe_unreadable, shorten_cause
from backfill_engine.lake.partitions import find_keys_in_folders
from backfill_engine.lake.warehouse import Warehouse
from backfill_engine.lake.whole_files import read_whole_file, write_whole_file
from backfill_engine.tables.declarations import Table
from backfill_engine.uris import join_uri

_READERS = 16
_CLOCK_SECONDS = 0.02
"""By so much a file's time may be behind: a kernel's clock ticks more coarsely than a process's."""
_FEW = 64
"""Commits that are read by their names, without a listing of the log."""


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


def read_migration(uri: str, version: int) -> MigrationRecord | None:
    """Reads the record of the migration that made a version of a table; None if none did."""
    ((_, info),) = read_commit_infos(uri, after=version - 1, up_to=version)
    return MigrationRecord.from_json(info.get("userMetadata"))


def read_changed_folders(uri: str, version: int, column: str) -> frozenset[str] | None:
    """Reads the folders (their values as text) whose data a commit changed, by its file actions.

    Actions that say that they change no data (`dataChange` is false: compaction) don't count, nor
    does a migration of columns. Where the commit has a change data feed, that alone says what
    changed, and not which files it wrote.

    Args:
        uri: of the table.
        version: of the commit.
        column: the folder column; empty of a table without partitions. With column mapping the
            actions have another name for it; the tables have one folder column, so that its name
            isn't needed then.

    Returns:
        None if an action doesn't say in which folder its file is, or the log no longer has the
        commit: any folder may have changed.

    Raises:
        TableError: if the commit's file can't be read.
    """
    filesystem, base = open_filesystem(uri)
    try:
        actions = _read_file(filesystem, uri, _locate(base, version))
    except FileNotFoundError:
        return None
    if any(_is_migration(action["commitInfo"]) for action in actions if "commitInfo" in action):
        return frozenset()
    written = (action.get("add") or action.get("remove") for action in actions)
    changed = [action["cdc"] for action in actions if "cdc" in action]
    changed = changed or [file for file in written if file and file.get("dataChange", True)]
    if not column:
        return frozenset({WHOLE_KEY} if changed else ())
    folders: set[str] = set()
    for file in changed:
        values = file.get("partitionValues") or _read_path_values(file["path"])
        if column not in values and len(values) != 1:
            return None
        folders.add(str(values.get(column, next(iter(values.values())))))
    return frozenset(folders)


def _is_migration(info: Mapping[str, Any]) -> bool:
    return MigrationRecord.from_json(info.get("userMetadata")) is not None


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


_PAGE = 32


class CommitReader:
    """The commits of one log up to a version.

    Args:
        uri: of the table.
        table: its declaration.
        version: the newest one; -1 of a table that doesn't exist.
        earlier: what was read up to an earlier version.
    """

    def __init__(
        self, uri: str, table: Table, version: int, earlier: "CommitReader | None" = None
    ) -> None:
        self._uri = uri
        self._table = table
        self._version = version
        self._floor = version
        self._commits: tuple[Commit, ...] = ()
        if earlier is not None:
            newer = self._read(after=earlier._version, up_to=version)
            self._floor, self._commits = earlier._floor, (*newer, *earlier._commits)

    @cached_property
    def begins_with(self) -> int:
        """The oldest version since which the log still has all commits."""
        begins_with = self._version + 1
        for version in list_versions(self._uri) if self._version >= 0 else ():
            if version == begins_with - 1:
                begins_with = version
        return begins_with

    def list_after(self, version: int) -> list[Commit]:
        """Lists the commits of the versions above `version`, newest first.

        Those that the log no longer has are left out.
        """
        if version < self._floor:
            older = self._read(after=version, up_to=self._floor)
            self._floor, self._commits = version, (*self._commits, *older)
        return [commit for commit in self._commits if commit.version > version]

    def iterate(self) -> Iterator[Commit]:
        """Goes through all that the log still has, newest first, and reads as far as is asked."""
        above, version = self._version, self._version
        while version >= 0:
            version = max(above - _PAGE, -1)
            page = [commit for commit in self.list_after(version) if commit.version <= above]
            yield from page
            if len(page) < above - version:  # of what is below, most is no longer there
                yield from (commit for commit in self.list_after(-1) if commit.version <= version)
                return
            above = version

    def _read(self, *, after: int, up_to: int) -> tuple[Commit, ...]:
        if after >= up_to:
            return ()
        found = read_commit_infos(self._uri, after=after, up_to=up_to)
        return tuple(self._build_commit(version, info) for version, info in found)

    def _build_commit(self, version: int, info: Mapping[str, Any]) -> Commit:
        record = CommitRecord.from_json(info.get("userMetadata"))
        if not (self._table.is_published or self._table.folder_column):
            record = None  # It tells of partitions, and the table is read whole.
        return Commit(
            version=version,
            committed_at=dt.datetime.fromtimestamp(info.get("timestamp", 0) / 1000, tz=dt.UTC),
            operation=MIGRATE if _is_migration(info) else info.get("operation", ""),
            record=record,
            foreign=() if record is not None else self._find_changed(version),
            restores=_find_restored(info),
        )

    def _find_changed(self, version: int) -> tuple[str, ...] | None:
        """Finds the partitions whose data a commit changed; None if it may be any."""
        folders = read_changed_folders(self._uri, version, self._table.folder_column)
        return None if folders is None else find_keys_in_folders(self._table, folders)


def _find_restored(info: Mapping[str, Any]) -> int | None:
    version = str(info.get("operationParameters", {}).get("version"))
    return int(version) if info.get("operation") == "RESTORE" and version.isdigit() else None


def find_missing_files(uri: str, paths: Sequence[str]) -> list[str]:
    """Finds which of a table's data files (paths as the log has them) are no longer there."""
    filesystem, base = open_filesystem(uri)
    names = [unquote(path) for path in paths]
    found = filesystem.get_file_info([f"{base}/{name}" for name in names])
    return [
        name for name, info in zip(names, found, strict=True) if info.type == fs.FileType.NotFound
    ]


def list_folder(uri: str) -> list[str]:
    """Lists the names in a table's folder, sorted, but for the log's and hidden ones.

    None of a folder that isn't there.
    """
    filesystem, base = open_filesystem(uri)
    found = filesystem.get_file_info(fs.FileSelector(base, allow_not_found=True))
    return sorted(info.base_name for info in found if not info.base_name.startswith(("_", ".")))


def count_file_rows(uri: str, paths: Sequence[str]) -> dict[str, int]:
    """Counts the rows of data files (paths as the log has them) by their footers, by path.

    0 of a file that is gone: whoever reads its rows is told so.
    """
    filesystem, base = open_filesystem(uri)

    def count(path: str) -> int:
        try:
            with filesystem.open_input_file(f"{base}/{unquote(path)}") as file:
                return parquet.read_metadata(file).num_rows
        except FileNotFoundError:
            return 0

    with ThreadPoolExecutor(_READERS) as pool:
        return dict(zip(paths, pool.map(count, paths), strict=True))


@dataclass(frozen=True)
class PublishIndex:
    """What is kept of a table's commits.

    Attributes:
        version: the newest commit that it knows of; -1 if none.
        since: the oldest commit that it was made from: what was published before is only known as
            far as certificates told of it. 0 if it was made from all.
        commits: newest first, each restricted to what is kept of it.
    """

    version: int = -1
    since: int = 0
    commits: tuple[Commit, ...] = ()


@dataclass(frozen=True)
class _Header:
    table_id: str
    version: int
    since: int
    commit_hash: str


_HEADERS = TypeAdapter(_Header)
_COMMITS = TypeAdapter(Commit)


def read_index(warehouse: Warehouse, table: Table, snapshot: DeltaTable) -> PublishIndex:
    """Reads the index of a table; an empty one if there is none that is whole and of its log.

    Args:
        warehouse: where the table is.
        table: its declaration.
        snapshot: the newest version of the table.
    """
    try:
        first, *lines = read_whole_file(_locate_index(warehouse, table))
        header = _HEADERS.validate_json(first)
        commits = tuple(_COMMITS.validate_json(line) for line in lines)
    except (FileNotFoundError, ValueError):  # made again by the next run
        return PublishIndex()
    if header.table_id != str(snapshot.metadata().id) or header.version > snapshot.version():
        return PublishIndex()
    now = _hash_commit(warehouse.uri(table), header.version)
    if now is not None and now != header.commit_hash:
        return PublishIndex()
    return PublishIndex(header.version, header.since, commits)


def write_index(
    warehouse: Warehouse, table: Table, snapshot: DeltaTable, index: PublishIndex
) -> None:
    """Writes the index of a table, whose log has the commit `index.version`.

    Of two runs that write at the same time either's is true.
    """
    commit_hash = _hash_commit(warehouse.uri(table), index.version)
    if commit_hash is None:  # cleaned away in this moment: the next run writes it
        return
    header = _Header(str(snapshot.metadata().id), index.version, index.since, commit_hash)
    lines = [_HEADERS.dump_json(header), *map(_COMMITS.dump_json, index.commits)]
    write_whole_file(_locate_index(warehouse, table), lines)


def _locate_index(warehouse: Warehouse, table: Table) -> str:
    return join_uri(warehouse.root, "publishes", f"{table.layer}.{table.name}.jsonl")


def _hash_commit(uri: str, version: int) -> str | None:
    """Hashes a commit's file; None if the log no longer has it."""
    filesystem, base = open_filesystem(uri)
    try:
        with filesystem.open_input_file(_locate(base, version)) as commit:
            return hashlib.sha256(commit.read()).hexdigest()
    except FileNotFoundError:
        return None
