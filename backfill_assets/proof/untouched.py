"""Which partitions a commit touched, from the actions in the Delta log: no rows are read."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from backfill_assets.errors import TableError
from backfill_assets.lake.filesystems import open_filesystem
from backfill_assets.lake.history import list_files
from backfill_assets.lake.warehouse import Warehouse
from backfill_assets.tables.declarations import Table


@dataclass(frozen=True)
class UntouchedProof:
    """That commits changed nothing outside of some partitions, or what they did change.

    Attributes:
        versions: the commits looked at, ascending.
        outside: by other partition value (as text), the versions that changed its data; empty is
            the proof.
        partitions: other partitions that the last of the versions holds.
        files: their data files.
    """

    versions: tuple[int, ...]
    outside: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    partitions: int = 0
    files: int = 0

    @property
    def holds(self) -> bool:
        """Whether nothing else changed."""
        return not self.outside


def prove_untouched(
    warehouse: Warehouse, table: Table, keys: Iterable[str], *, versions: Iterable[int]
) -> UntouchedProof:
    """Looks at every file that the commits added or removed.

    Data files never change, so a partition is what it was if no commit added or removed a file of
    it. What only rewrites data (`dataChange` is false: compaction) is no change.

    Args:
        warehouse: where the table is.
        table: whose folders are its partitions.
        keys: the partitions that were to change.
        versions: the commits.

    Raises:
        TableError: if the log no longer has one of the commits.
    """
    meant = set(keys)
    ascending = tuple(sorted(versions))
    outside: dict[str, list[int]] = {}
    for version in ascending:
        for value in sorted(_find_touched(warehouse, table, version) - meant):
            outside.setdefault(value, []).append(version)
    if not ascending:
        return UntouchedProof(())
    files = list_files(warehouse, table, "path", version=ascending[-1])
    others = [value for value, _ in files if value not in meant]
    return UntouchedProof(
        ascending,
        {value: tuple(changed) for value, changed in outside.items()},
        partitions=len(set(others)),
        files=len(others),
    )


def _find_touched(warehouse: Warehouse, table: Table, version: int) -> set[str]:
    """Partition values of which the commit added or removed data."""
    filesystem, base = open_filesystem(warehouse.uri(table))
    try:
        with filesystem.open_input_file(f"{base}/_delta_log/{version:020}.json") as commit:
            lines = commit.read().splitlines()
    except FileNotFoundError:
        raise TableError(
            f"{table.key}: the log no longer has version {version}, so nothing can be proven of it"
        ) from None
    actions = (json.loads(line) for line in lines if line)
    return {
        str(action["partitionValues"][table.partition_by])
        for entry in actions
        for action in (entry.get("add") or entry.get("remove"),)
        if action and action.get("dataChange", True)
    }
