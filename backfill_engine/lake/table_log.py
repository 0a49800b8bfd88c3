"""The Delta log of a table, read by delta-rs: versions, commits, files, counts. No JVM, no rows.

What a commit says is in `lake.commits`; whoever needs rows reads them at a version of the log.
"""

import time
from bisect import bisect_right
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import accumulate, chain
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from backfill_engine.errors import HistoryError, TableError, UnknownRunError
from backfill_engine.grains.whole import WHOLE_KEY
from backfill_engine.lake.commit_files import (
    CommitReader,
    PublishIndex,
    count_file_rows,
    find_missing_files,
    is_as_read,
    is_newest,
    read_index,
    write_index,
)
from backfill_engine.lake.commits import (
    RUNS_KEPT,
    Commit,
    Publish,
    describe_foreign_changes,
    find_foreign_changes,
    group_publishes,
    keep_publishes,
)
from backfill_engine.lake.partitions import (
    Partition,
    find_folder,
    find_keys_in_folders,
    find_partitions_in_folder,
    sort_partitions,
)
from backfill_engine.lake.warehouse import Warehouse
from backfill_engine.lake.whole_files import find_id
from backfill_engine.tables.column_types import spell_stored_type
from backfill_engine.tables.declarations import Table

_DELETION_VECTORS = "deletionVectors"
"""What the protocol of a table calls them."""


@dataclass(frozen=True, eq=False)
class TableLog:
    """The log of one table up to the version that was the newest when it was read.

    It never changes: a step reads it once, works by it, and calls `reread` for another one where it
    must see what was committed meanwhile. Commits and files are fetched when they are asked for,
    once.

    Attributes:
        warehouse: where the table is.
        table: its declaration.
        snapshot: the table as delta-rs opened it; None if it doesn't exist.
        earlier: an earlier reading, so that only the commits since then are read.
        given_index: the index of publishes to go by; None to read that of the table.
        read_at: when the snapshot was opened, in seconds since 1970.
    """

    warehouse: Warehouse
    table: Table
    snapshot: DeltaTable | None
    earlier: "TableLog | None" = None
    given_index: PublishIndex | None = None
    read_at: float = field(default_factory=time.time)

    @property
    def exists(self) -> bool:
        """Whether the table has been created."""
        return self.snapshot is not None

    @cached_property
    def version(self) -> int:
        """The newest version; -1 if the table doesn't exist."""
        return -1 if self.snapshot is None else self.snapshot.version()

    @property
    def uri(self) -> str:
        """Where the table is."""
        return self.warehouse.uri(self.table)

    @cached_property
    def index(self) -> PublishIndex:
        """What is kept of commits beside the table; empty if there is nothing."""
        if self.given_index is not None:
            return self.given_index
        if self.earlier is not None and self.earlier.exists:
            return self.earlier.index
        if self.snapshot is None:
            return PublishIndex()
        return read_index(self.warehouse, self.table, self.snapshot)

    @property
    def commits(self) -> tuple[Commit, ...]:
        """All that the log still has, newest first."""
        return tuple(self.list_commits_after(-1))

    @cached_property
    def known_commits(self) -> tuple[Commit, ...]:
        """The commits since the index, and what that keeps of the others, newest first."""
        return (*self.list_commits_after(self.index.version), *self.index.commits)

    @cached_property
    def publishes(self) -> dict[str, Publish]:
        """The last publish of each partition, by key; absent where nothing was ever published.

        Of a partition that was published before `known_since` nothing may be known either. One of a
        name that isn't declared any longer is none.
        """
        publishes = group_publishes(self.known_commits)
        is_known = self.table.grain.is_known
        return {key: newest for key, (newest, *_) in publishes.items() if is_known(key)}

    @cached_property
    def foreign_changes(self) -> dict[str, Commit]:
        """The partitions that another program changed since their last publish.

        By key, the newest commit that changed the partition; of one that was never published, too.
        Of a table that nobody publishes here there are none: all commits are its writer's.
        """
        if not self.table.is_published:
            return {}
        return find_foreign_changes(self.known_commits, self.publishes)

    @cached_property
    def checksums(self) -> dict[str, str]:
        """What whoever reads a partition gets, by key: the checksum of its last publish.

        Of a partition that another program changed since, words that say so in its place: no
        publish has them, so that what reads the partition is never taken for the same. Of a table
        that nobody publishes here, the version that changed the partition last.
        """
        if not self.table.is_published:
            return self._describe_last_changes(self.count_rows())
        published = {key: publish.checksum for key, publish in self.publishes.items()}
        changed = describe_foreign_changes(self.foreign_changes)
        return {**published, **changed}

    @cached_property
    def table_id(self) -> str:
        """What tells the table from another one at the same place; empty if it doesn't exist."""
        return "" if self.snapshot is None else str(self.snapshot.metadata().id)

    @cached_property
    def known_since(self) -> int:
        """The oldest version since which all commits are known, by the log or the index."""
        return self.begins_with if self.lacks_commits else self.index.since

    @property
    def lacks_commits(self) -> bool:
        """Whether the log has lost commits of which the index doesn't know yet."""
        newer = self.list_commits_after(self.index.version)
        return len(newer) < self.version - self.index.version

    @property
    def begins_with(self) -> int:
        """The oldest version since which the log still has all commits."""
        return self._commits.begins_with

    @property
    def extra_fields(self) -> tuple[str, ...]:
        """Columns that the stored table has beyond its declaration, in stored order."""
        stored = self.snapshot.schema().fields if self.snapshot is not None else ()
        return tuple(field.name for field in stored if field.name not in self.table.column_names)

    @property
    def properties(self) -> Mapping[str, str]:
        """The table's properties; none of one that doesn't exist."""
        return self.snapshot.metadata().configuration if self.snapshot is not None else {}

    def reread(self) -> "TableLog":
        """Reads the log as it is now; the same, where nothing was committed since.

        Only the commits since then are read.
        """
        if self.exists and is_newest(self.uri, self.version, read_at=self.read_at):
            return self
        return read_log(self.warehouse, self.table, earlier=self)

    def keep_publishes(self, *, certified: Iterable[Commit] = ()) -> "TableLog":
        """Writes the index anew, if it lacks commits of this log; returns the log that goes by it.

        Args:
            certified: commits that neither has, as certificates tell them.
        """
        if self.snapshot is None or self.index.version == self.version:
            return self
        # What the log lost may lie between what it still has.
        commits = sorted(
            (*self.known_commits, *certified), key=lambda commit: commit.version, reverse=True
        )
        index = PublishIndex(self.version, self.known_since, keep_publishes(commits))
        write_index(self.warehouse, self.table, self.snapshot, index)
        return replace(self, earlier=None, given_index=index)

    def open_snapshot(self) -> DeltaTable:
        """Returns the table as delta-rs opened it; it must exist."""
        assert self.snapshot is not None, f"{self.table.key} does not exist"
        return self.snapshot

    def require(self) -> "TableLog":
        """Returns the same log, of a table that is there.

        Raises:
            TableError: if the table doesn't exist.
        """
        if not self.exists:
            raise TableError(
                f"table {self.table.key} does not exist at {self.uri}: {self.table.cure_absence}"
            )
        if not self.table.is_published:
            stored = {field.name for field in self.open_snapshot().schema().fields}
            if lacking := [name for name in self.table.column_names if name not in stored]:
                raise TableError(
                    f"{self.table.key} at {self.uri} has no column `{lacking[0]}`: declare the "
                    f"columns that there are: {', '.join(sorted(stored))}"
                )
        return self

    def as_of(self, version: int) -> "TableLog":
        """Returns the log as it was when `version` was the newest; below 0 there was no table.

        Raises:
            HistoryError: if the log no longer has the version.
        """
        if version < 0:
            return TableLog(self.warehouse, self.table, None)
        if version == self.version:
            return self
        earlier = self if self.version < version else None
        try:
            then = read_log(self.warehouse, self.table, version=version, earlier=earlier)
        except DeltaError as error:
            raise HistoryError(
                f"{self.table.key}: version {version} is no longer in the log, which begins with "
                f"version {self.begins_with} and ends with {self.version}"
            ) from error
        return then if earlier else replace(then, given_index=self._find_index_before(version))

    def with_columns_of(self, version: int) -> "TableLog":
        """Returns the log with only the columns that the table had at `version`.

        Of these its checksums were then. If the log no longer has the version, the oldest that it
        has decides.
        """
        try:
            then = self.as_of(max(version, self.begins_with))
            stored = {field.name for field in then.open_snapshot().schema().fields}
        except HistoryError:
            return self
        columns = tuple(
            column for column in self.table.columns if column.find_stored_name(stored) is not None
        )
        if len(columns) == len(self.table.columns):
            return self
        return replace(self, table=replace(self.table, columns=columns, rules=(), versions=()))

    def find_partitions_with_lost_history(
        self, keys: Collection[str], then: "TableLog"
    ) -> list[str]:
        """Finds the partitions of which isn't known what had published them last by `then`.

        The log no longer has that commit, and the index keeps later ones only.
        """
        lost = sorted(set(keys).difference(then.publishes)) if self.begins_with else []
        publishes = group_publishes(self.index.commits)
        return [
            key
            for key in lost
            if self.known_since
            or len({publish.record.run_id for publish in publishes.get(key, ())}) >= RUNS_KEPT
        ]

    def list_commits_after(self, version: int) -> list[Commit]:
        """Lists the commits of the versions above `version`, newest first.

        Those that the log no longer has are left out.
        """
        return self._commits.list_after(version)

    def iterate_commits(self) -> Iterator[Commit]:
        """Goes through all that the log still has, newest first, and reads as far as is asked."""
        return self._commits.iterate()

    def had(self, version: int, then: float) -> bool:
        """Tells whether the log had this version at a time, and not another one of its number.

        A log that has lost its end, as a copy that is put back has, gives the numbers of what it
        lost to what is committed next.

        Args:
            version: of the table.
            then: in seconds since 1970.
        """
        versions, newest = self._made_until
        place = bisect_right(versions, version)
        return version <= self.version and (place == 0 or newest[place - 1] <= then)

    def has_transaction(self, application_id: str) -> bool:
        """Tells whether a commit with this transaction identifier was ever made."""
        found = self.snapshot and self.snapshot.transaction_version(application_id)
        return found is not None

    def find_version_before(self, keys: Collection[str], run: str) -> tuple[str, int]:
        """Finds the version before a run's first commit to some partitions.

        Args:
            keys: the partitions.
            run: its id, or the beginning of it.

        Returns:
            The run's whole id, and the version.

        Raises:
            UnknownRunError: if no such run, or more than one, published any of them, or the
                beginning is too short to tell.
        """
        versions: dict[str, list[int]] = {}
        for commit in self.commits:
            record = commit.record
            if record is not None and commit.find_changed(keys):
                versions.setdefault(record.run_id, []).append(commit.version)
        run_id = find_id(run, versions)
        if run_id is None:
            known = f" since version {self.begins_with}" if self.begins_with else ""
            raise UnknownRunError(
                f"{self.table.key}: no run {run} has published any of these partitions{known}; "
                f"`backfill-assets history {self.table.key}` lists those that have"
            )
        return run_id, min(versions[run_id]) - 1

    def count_rows(self) -> dict[str, int]:
        """Counts the rows per partition key.

        From file statistics; where partitions are finer than folders, from what the commits
        counted.
        """
        if self.table.folder_by is not None:
            return {key: publish.rows for key, publish in self.publishes.items()}
        return {
            key: rows
            for folder, rows in self.count_folder_rows().items()
            for key in self._find_keys(folder)
        }

    def _find_keys(self, folder: str) -> tuple[str, ...]:
        """Finds the key of a folder; none of a name that isn't declared any longer."""
        if self.table.grain.is_named:
            return find_keys_in_folders(self.table, [folder])
        return (find_partitions_in_folder(self.table, folder)[0].key,)

    def count_folder_rows(self) -> dict[str, int]:
        """Counts the rows per folder (its value as text), from file statistics.

        Of files that another program wrote without statistics, from the files themselves. Rows that
        deletion vectors leave out don't count.
        """
        counts, deleted = self.list_files("num_records", "path"), self._count_deleted_rows()
        missing = [path for _, rows, path in counts if rows is None]
        counted = count_file_rows(self.uri, missing) if missing else {}
        sums: Counter[str] = Counter()
        for folder, rows, path in counts:
            stored = counted[path] if rows is None else rows
            sums[folder] += stored - deleted.get(unquote(path), 0)
        return dict(sums)

    def _count_deleted_rows(self) -> dict[str, int]:
        """Counts the rows that deletion vectors leave out, by path of the data file."""
        snapshot = self.snapshot
        if snapshot is None or _DELETION_VECTORS not in (snapshot.protocol().reader_features or ()):
            return {}
        return {
            unquote(uri.removeprefix(snapshot.table_uri)): kept.values.false_count
            for batch in snapshot.deletion_vectors()
            for uri, kept in zip(
                batch.column(0).to_pylist(), pa.array(batch.column(1)), strict=True
            )
        }

    def count_folder_files(self) -> dict[str, int]:
        """Counts the data files per folder (its value as text)."""
        return dict(Counter(folder for folder, _ in self.list_files("path")))

    def sum_folder_bytes(self) -> dict[str, int]:
        """Sums the bytes of data files per folder (its value as text)."""
        sums: Counter[str] = Counter()
        for folder, size in self.list_files("size_bytes"):
            sums[folder] += size
        return dict(sums)

    def list_files(self, *columns: str) -> list[tuple[Any, ...]]:
        """Lists the folder (its value as text) and some figures of each data file.

        Args:
            columns: of delta-rs's `get_add_actions`: `path`, `num_records`, `size_bytes`.

        Returns:
            A tuple a file: the folder, then a figure for each of `columns`, in their order.
        """
        if self.snapshot is None:
            return []
        files = self.snapshot.get_add_actions(flatten=True)
        figures = [files.column(column).to_pylist() for column in columns]
        if not self.table.folder_column:
            # Whatever folders somebody else's table has: all of it is read.
            return list(zip([WHOLE_KEY] * files.num_rows, *figures, strict=True))
        if f"partition.{self.table.folder_column}" not in files.schema.names:
            raise TableError(
                f"{self.table.key}: the table at {self.uri} has no folders by "
                f"`{self.table.folder_column}`: it is another table; move it away, restore it, or "
                "declare the column that it is partitioned by"
            )
        folders = files.column(f"partition.{self.table.folder_column}").to_pylist()
        return list(zip(map(str, folders), *figures, strict=True))

    def list_held_partitions(self) -> tuple[Partition, ...]:
        """Lists the partitions in whose folders there are rows, ascending."""
        folders = filter(self._find_keys, self.count_folder_rows())
        held = (find_partitions_in_folder(self.table, folder) for folder in folders)
        return sort_partitions(chain.from_iterable(held))

    def find_missing_files(self, partitions: Iterable[Partition]) -> list[str]:
        """Finds data files of the partitions' folders that are no longer there, by path."""
        folders = {find_folder(self.table, partition) for partition in partitions}
        paths = [path for folder, path in self.list_files("path") if folder in folders]
        return find_missing_files(self.uri, paths)

    def _describe_last_changes(self, keys: Iterable[str]) -> dict[str, str]:
        """Says of each key which version changed it last, and reads no commit below these."""
        versions, left, commits = dict[str, str](), set(keys), self._iterate_known_commits()
        while left and (commit := next(commits, None)):
            changed = commit.find_changed(left)
            versions |= dict.fromkeys(changed, str(commit.version))
            left -= changed
        if left:
            versions |= dict.fromkeys(left, f"before {self.known_since}")
        return {key: f"version {versions[key]} of {self.table_id}" for key in keys}

    def _iterate_known_commits(self) -> Iterator[Commit]:
        """Goes through what the log still has, and then through what the index has of the rest."""
        yield from self.iterate_commits()
        if not self.lacks_commits:
            yield from self.index.commits

    @cached_property
    def _made_until(self) -> tuple[list[int], list[float]]:
        """Known versions, ascending, and when the newest of all up to each was made."""
        commits = sorted(self.known_commits, key=lambda commit: commit.version)
        made = (commit.committed_at.timestamp() for commit in commits)
        return [commit.version for commit in commits], list(accumulate(made, max))

    @cached_property
    def _commits(self) -> CommitReader:
        earlier = self.earlier._commits if self.earlier and self.earlier.exists else None
        return CommitReader(self.uri, self.table, self.version, earlier)

    def _find_index_before(self, version: int) -> PublishIndex:
        """Finds what the index has of the commits that the log, up to a version, no longer has."""
        index, newest = self.index, min(version, self.begins_with - 1)
        if index.version < 0:
            return index
        kept = tuple(commit for commit in index.commits if commit.version <= newest)
        return PublishIndex(newest, index.since, kept)


def _continues(snapshot: DeltaTable | None, earlier: TableLog) -> bool:
    """Tells whether a table is the one that was read earlier, with all that it had then."""
    return (
        snapshot is not None
        and str(snapshot.metadata().id) == earlier.table_id
        and snapshot.version() >= earlier.version
        and is_as_read(earlier.uri, earlier.version, read_at=earlier.read_at)
    )


def read_log(
    warehouse: Warehouse,
    table: Table,
    *,
    version: int | None = None,
    earlier: TableLog | None = None,
) -> TableLog:
    """Reads the log of a table, which need not exist unless a version of it is asked for.

    Args:
        warehouse: where the table is.
        table: its declaration.
        version: the newest version to know of; None for all.
        earlier: an earlier reading of the same log.

    Raises:
        DeltaError: if the log no longer has the version.
        SettingsError: if nothing can ever be at the warehouse's root.
        TableError: if the log can't be read.
    """
    read_at = time.time()
    exists = version is not None or warehouse.exists(table)
    snapshot = warehouse.open(table, version=version) if exists else None
    if earlier is not None and earlier.exists and not _continues(snapshot, earlier):
        earlier = None
    if snapshot is not None and table.infers:
        stored = snapshot.schema().fields
        table = table.complete({field.name: spell_stored_type(field.type) for field in stored})
    return TableLog(warehouse, table, snapshot, earlier, read_at=read_at)
