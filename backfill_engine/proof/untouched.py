"""Which partitions a commit touched, from the actions in the Delta log.

Rows are read only where a folder holds more than one partition: of its other partitions.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from backfill_engine.contents.partition_contents import IN_THIS_PROCESS, UNREADABLE, PartitionReader
from backfill_engine.errors import TableError
from backfill_engine.lake.commit_files import read_changed_folders
from backfill_engine.lake.partitions import (
    Partition,
    build_partitions,
    find_folder,
    find_partitions_in_folder,
)
from backfill_engine.lake.table_log import TableLog


@dataclass(frozen=True)
class UntouchedProof:
    """That commits changed nothing outside of some partitions, or what they did change.

    Attributes:
        versions: the commits looked at, ascending.
        outside: by other folder (its value as text) or partition key, the versions that changed its
            data; empty is the proof.
        partitions: other folders that the last of the versions holds; of a table with a folder for
            each partition these are the other partitions.
        files: their data files.
        compared: other partitions in the same folders, whose contents were compared.
    """

    versions: tuple[int, ...]
    outside: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    partitions: int = 0
    files: int = 0
    compared: int = 0

    @property
    def holds(self) -> bool:
        """Whether nothing else changed."""
        return not self.outside


def prove_untouched(
    log: TableLog,
    keys: Iterable[str],
    *,
    versions: Iterable[int],
    reader: PartitionReader = IN_THIS_PROCESS,
) -> UntouchedProof:
    """Looks at every file that the commits added or removed.

    Data files never change, so a folder holds what it held if no commit added or removed a file of
    it. What only rewrites data (`dataChange` is false: compaction) is no change. Where partitions
    share a folder, a commit rewrites files of its neighbours: their rows and checksums are read
    back before and after it.

    Args:
        log: of the table.
        keys: the partitions that were to change.
        versions: the commits.
        reader: reads the neighbours.

    Raises:
        TableError: if the log no longer has one of the commits, or a file that it takes is gone.
        HistoryError: if the log no longer has the version before a commit, and it takes that.
    """
    table = log.table
    partitions = build_partitions(table, keys)
    folders = {find_folder(table, partition) for partition in partitions}
    own = set(partitions)
    neighbours = [
        partition
        for folder in sorted(folders)
        for partition in find_partitions_in_folder(table, folder)
        if partition not in own
    ]
    ascending = tuple(sorted(versions))
    outside: dict[str, list[int]] = {}
    for version in ascending:
        touched = read_changed_folders(log.uri, version, table.folder_column)
        if touched is None:
            raise TableError(
                f"{table.key}: the log no longer has version {version}, or does not say what it "
                "changed, so nothing can be proven of it"
            )
        near = [partition for partition in neighbours if find_folder(table, partition) in touched]
        changed = _find_changed(reader, log, near, version) if near else set()
        for name in sorted(changed | (touched - folders)):
            outside.setdefault(name, []).append(version)
    if not ascending:
        return UntouchedProof(())
    files = log.as_of(ascending[-1]).list_files("path")
    others = [folder for folder, _ in files if folder not in folders]
    return UntouchedProof(
        ascending,
        {name: tuple(changed) for name, changed in outside.items()},
        partitions=len(set(others)),
        files=len(others),
        compared=len(neighbours),
    )


def _find_changed(
    reader: PartitionReader, log: TableLog, partitions: list[Partition], version: int
) -> set[str]:
    """Finds the partitions whose rows or checksum differ from the version before, by key."""
    if version == 0:
        return set()
    before, after = (
        reader.read_back(log.as_of(number), partitions) for number in (version - 1, version)
    )
    if UNREADABLE in (*before.values(), *after.values()):
        raise TableError(
            f"{log.table.key}: files of version {version}, or of the one before, are gone, so it "
            "can't be told whether partitions in the same folders changed"
        )
    return {key for key, found in after.items() if found != before[key]}
