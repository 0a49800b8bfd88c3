"""The last publishes of each partition, kept beside the tables for longer than their logs.

Delta removes the commits of a log that are older than its retention, and with them what they carry.
The index is what is left of them: a reading of the log up to a version, made again from the last
one and the commits since. It decides nothing that the log says otherwise: one of another table, of
a version that the log doesn't have, or of another commit of that number counts as none.

At `<warehouse>/publishes/<layer>.<table>.jsonl`, a file of `lake.whole_files`: a line that says of
which table and version it is, and a line for each commit of which something is kept, newest first.
"""

import hashlib
from dataclasses import dataclass

from deltalake import DeltaTable
from pydantic import TypeAdapter

from backfill_engine.lake.commit_files import read_commit_file
from backfill_engine.lake.commits import Commit
from backfill_engine.lake.warehouse import Warehouse
from backfill_engine.lake.whole_files import read_whole_file, write_whole_file
from backfill_engine.tables.declarations import Table
from backfill_engine.uris import join_uri


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
        first, *lines = read_whole_file(_locate(warehouse, table))
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
    write_whole_file(_locate(warehouse, table), lines)


def _locate(warehouse: Warehouse, table: Table) -> str:
    return join_uri(warehouse.root, "publishes", f"{table.layer}.{table.name}.jsonl")


def _hash_commit(uri: str, version: int) -> str | None:
    """Hashes a commit's file; None if the log no longer has it."""
    content = read_commit_file(uri, version)
    return None if content is None else hashlib.sha256(content).hexdigest()
