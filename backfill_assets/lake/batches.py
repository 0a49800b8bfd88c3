"""Which batches the partitions of a table hold, as its commits tell: appended, and not undone."""

import hashlib
from collections.abc import Iterable, Mapping

from backfill_assets.lake.commits import WriteMode
from backfill_assets.lake.table_log import Commit
from backfill_assets.tables.declarations import Table


def find_batches(table: Table, commits: Iterable[Commit]) -> dict[str, dict[str, int]]:
    """Per partition key, the batches that it holds and the version that appended each.

    An overwrite forgets them. A rollback, and a run that takes its own commit back, restore what
    was there at the version that they name. A merge keeps them.

    Args:
        table: the table.
        commits: of it, newest first, as far back as they go.
    """
    oldest_first = list(reversed(list(commits)))
    restored = {_find_restored(table, one) for one in oldest_first}
    held: dict[str, dict[str, int]] = {}
    at_version: dict[int | None, dict[str, dict[str, int]]] = {}
    for commit in oldest_first:
        for key in commit.record.rows if commit.record else ():
            held[key] = _apply(table, commit, key, held.get(key, {}), at_version)
        if commit.version in restored:
            at_version[commit.version] = dict(held)
    return held


def _apply(
    table: Table,
    commit: Commit,
    key: str,
    before: dict[str, int],
    at_version: Mapping[int | None, Mapping[str, dict[str, int]]],
) -> dict[str, int]:
    record = commit.record
    assert record is not None
    match record.write_mode:
        case WriteMode.APPEND_ONCE:
            return {**before, record.batches[key]: commit.version}
        case WriteMode.MERGE:
            return before
        case WriteMode.ROLLBACK | WriteMode.TAKE_BACK:
            return at_version.get(_find_restored(table, commit), {}).get(key, {})
        case _:
            return {}


def _find_restored(table: Table, commit: Commit) -> int | None:
    """The version that a commit put back; None if it computed what it published."""
    record = commit.record
    if record is None or record.write_mode not in (WriteMode.ROLLBACK, WriteMode.TAKE_BACK):
        return None
    version = record.input_versions.get(table.key)
    return version if isinstance(version, int) else None


def build_transaction(
    table: Table, batches: Mapping[str, str], published: Mapping[str, Commit]
) -> str:
    """The application id of Delta's transaction identifier for an append.

    The same attempt has the same id: Delta itself then writes it once at most, also where two
    processes commit at the same time and nothing else keeps them apart. The commit that published
    each partition last is part of it, so that a batch can be appended again once it was undone.

    Args:
        table: the table.
        batches: what is appended, by partition key.
        published: the newest commit to each partition, by key; absent for those without.
    """
    digest = hashlib.sha256(table.key.encode())
    for key, batch in sorted(batches.items()):
        last = published[key].version if key in published else -1
        digest.update(repr((key, batch, last)).encode())
    return f"backfill_assets/{digest.hexdigest()[:32]}"
