"""Which partitions of a table are to be computed again because rows of an input came late.

A partition mapping can't say that: a landing day may hold records of any day. The rows can, those
that the input has lost or gained since each partition was computed (dagster issue 13149).
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import pyarrow as pa
from dagster import AssetKey

from backfill_engine.contents.rows import PartitionIndex, find_moved_rows
from backfill_engine.errors import HistoryError, TableError
from backfill_engine.lake.commits import Commit, Publish, group_publishes
from backfill_engine.lake.partitions import build_partitions
from backfill_engine.lake.table_log import TableLog
from backfill_engine.orchestration.due.readiness import ROWS_FOR
from backfill_engine.orchestration.instance.dagster_internals import AssetGraph
from backfill_engine.tables.declarations import Table


class Movement(NamedTuple):
    """Rows for a partition that an input has lost or gained.

    Attributes:
        version: of the input, the newest that moved any.
        earliest: first key of the input's partitions that they are in.
    """

    version: int
    earliest: str


@dataclass(frozen=True)
class Movements:
    """What is known of one input up to a version; by key of the partition that reads the rows.

    It follows from the logs and the data files: if it is lost, it is found again.

    Attributes:
        version: of the input; movements up to it are looked up.
        outstanding: those that the partitions' publishes have not read yet.
        table_id: of the input; of another table at its place nothing is known.
        read_at: when the input was read, in seconds since 1970; nothing is known of it either where
            it has lost what it had then.
    """

    version: int
    outstanding: Mapping[str, Movement] = field(default_factory=dict)
    table_id: str = ""
    read_at: float = 0


def find_rows_for(graph: AssetGraph, asset_key: AssetKey) -> Mapping[str, str]:
    """Finds the inputs of an asset whose rows say who reads them: by table, the column."""
    return graph.get(asset_key).metadata.get(ROWS_FOR, {})


def find_movements(
    reader: TableLog, source: TableLog, column: str, keys: Collection[str], known: Movements | None
) -> Movements:
    """Finds rows of an input that moved since the partitions that read them were computed.

    Each commit to the input is looked up once: of the partitions whose checksum it changed the
    rows are read, before and after. Without `known` those since the oldest version that a
    published partition was computed from are. No JVM.

    Args:
        reader: log of the table that reads.
        source: log of its input.
        column: of the input; says which partition a row is for.
        keys: all partition keys of the reading table.
        known: what was found before.

    Raises:
        TableError: if rows that are there can't be read.
    """
    if known is not None and not (
        known.table_id == source.table_id and source.had(known.version, known.read_at)
    ):
        known = None
    consumed = find_consumed_versions(reader, source)
    since = known.version if known else min(consumed.values(), default=source.version)
    found = dict(known.outstanding) if known else {}
    readers: PartitionIndex | None = None
    for commit, changed in _list_changes(source, since):
        readers = readers or PartitionIndex(reader.table, build_partitions(reader.table, keys))
        for key, partitions in find_moved(source, commit.version, changed, column, readers).items():
            before = found.get(key)
            stands = before is not None and before.version > consumed.get(key, -1)
            earliest = min(partitions | ({before.earliest} if before and stands else set()))
            found[key] = Movement(commit.version, earliest)
    outstanding = {
        key: movement for key, movement in found.items() if movement.version > consumed.get(key, -1)
    }
    return Movements(source.version, outstanding, source.table_id, source.read_at)


def find_consumed_versions(reader: TableLog, source: TableLog) -> dict[str, int]:
    """Finds the version of an input that all rows of a published partition are of, by key.

    A publish of part of the rows leaves the others as they were computed before; where no whole
    publish is known, they may be of any version: -1. So may those of another table that was at the
    input's place.
    """
    newest = reader.publishes
    parts = [key for key, publish in newest.items() if publish.record.row_filter]
    earlier = group_publishes(reader.known_commits) if parts else {}
    whole = {
        key: next((publish for publish in earlier[key] if not publish.record.row_filter), None)
        for key in parts
    }
    found: dict[str, int] = {}
    for key, publish in newest.items():
        computed = whole.get(key, publish)
        if computed is None:
            found[key] = -1
            continue
        version = _find_consumed_version(computed, source)
        if version is not None:
            found[key] = version
    return found


def _find_consumed_version(publish: Publish, source: TableLog) -> int | None:
    """Finds the version of an input that a commit read; None if it didn't read it."""
    version = publish.record.input_versions.get(source.table.key)
    if version is None:
        return None
    is_same_table = publish.record.input_ids.get(source.table.key) == source.table_id
    stands = is_same_table and source.had(int(version), publish.commit.committed_at.timestamp())
    return int(version) if stands else -1


def find_moved(
    source: TableLog,
    version: int,
    changed: Collection[str],
    column: str,
    readers: PartitionIndex,
) -> dict[str, set[str]]:
    """Finds for whom a commit moved rows: the partitions that lost or gained some, by reader's key.

    Where the versions before and after it can no longer be read, all rows that are there now count.

    Args:
        source: a log that knows the version.
        version: of the commit.
        changed: partitions that it published.
        column: says which partition a row is for.
        readers: the reading partitions.

    Raises:
        TableError: if what is there now can't be read.
    """
    partitions = build_partitions(source.table, changed)
    try:
        before, after = source.as_of(version - 1), source.as_of(version)
        return find_moved_rows(before, after, partitions, column=column, readers=readers)
    except (HistoryError, pa.ArrowInvalid, OSError):
        nothing = source.as_of(-1)
    try:
        return find_moved_rows(nothing, source, partitions, column=column, readers=readers)
    except (pa.ArrowInvalid, OSError) as error:
        raise TableError(f"{source.table.key}: rows can't be read: {error}") from error


def find_moved_since(
    table: Table, source: TableLog, column: str, keys: Collection[str], *, since: int
) -> set[str]:
    """Finds the partitions of a table for which an input's rows moved since a version of it.

    Args:
        table: that reads the input.
        source: log of the input.
        column: of it; says which partition a row is for.
        keys: of the partitions.
        since: the version, whose own rows don't count.

    Raises:
        TableError: if rows that are there can't be read.
    """
    readers = PartitionIndex(table, build_partitions(table, keys))
    return {
        key
        for commit, changed in _list_changes(source, since)
        for key in find_moved(source, commit.version, changed, column, readers)
    }


def _list_changes(source: TableLog, since: int) -> Iterator[tuple[Commit, Collection[str]]]:
    """Yields commits above a version, oldest first, and the partitions that each may have changed.

    A publish of contents that were there already changes nothing.
    """
    newer = sorted(source.list_commits_after(since), key=lambda commit: commit.version)
    if not newer:
        return
    publishes = group_publishes(source.known_commits)
    foreign = set[str]()
    for commit in newer:
        if commit.record is None:
            changed = list(source.count_rows() if commit.foreign is None else commit.foreign)
            foreign.update(changed)
        else:
            changed = [
                key
                for key, checksum in commit.record.checksums.items()
                if key in foreign
                or _find_checksum_before(publishes[key], commit.version) != checksum
            ]
        if changed:
            yield commit, changed


def _find_checksum_before(publishes: Collection[Publish], version: int) -> str | None:
    """Finds what a partition held before a version; None if nothing was published."""
    return next((publish.checksum for publish in publishes if publish.version < version), None)
