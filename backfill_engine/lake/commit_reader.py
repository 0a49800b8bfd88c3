"""Reads the commits of a log newest first, as far down as they are asked for, and each once."""

import datetime as dt
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any

from backfill_engine.lake.commit_files import (
    list_versions,
    read_changed_folders,
    read_commit_infos,
)
from backfill_engine.lake.commits import Commit, CommitRecord
from backfill_engine.lake.partitions import find_keys_in_folders
from backfill_engine.tables.declarations import Table

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
        return Commit(
            version=version,
            committed_at=dt.datetime.fromtimestamp(info.get("timestamp", 0) / 1000, tz=dt.UTC),
            operation=info.get("operation", ""),
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
