"""What changed in a table between two versions, and that nothing else did."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from backfill_engine.contents.partition_contents import IN_THIS_PROCESS, UNREADABLE, PartitionReader
from backfill_engine.errors import SettingsError
from backfill_engine.extras.comparison.contents import read_contents, split_by_rows
from backfill_engine.extras.comparison.rows import PartitionDiff, compare_contents
from backfill_engine.lake.partitions import Partition
from backfill_engine.lake.table_log import TableLog
from backfill_engine.proof.untouched import UntouchedProof, prove_untouched

_VERSION = re.compile(r"[0-9]{1,7}")  # what is longer may be the beginning of a run


@dataclass(frozen=True)
class TableDiff:
    """Two versions of some partitions.

    Attributes:
        table: `layer/name`.
        before: the older version.
        after: the newer one.
        partitions: by key, ascending.
        untouched: of the partitions outside, from the log.
    """

    table: str
    before: int
    after: int
    partitions: Mapping[str, PartitionDiff]
    untouched: UntouchedProof


def diff_table(
    log: TableLog,
    partitions: Sequence[Partition],
    *,
    before: str,
    after: int | None = None,
    reader: PartitionReader = IN_THIS_PROCESS,
) -> TableDiff:
    """Compares checksums, and of partitions whose checksums differ rows, key by key.

    Rows are compared in this process, of a few partitions at a time. A row takes 20 to 28 bytes
    there, as many more while it is read, and up to 60 if all differ.

    Args:
        log: of the table, which must exist.
        partitions: which to compare.
        before: a version, or a run (its id or the beginning of it): the version before its first
            commit to the partitions.
        after: a later version; the newest if left out.
        reader: reads the checksums.

    Raises:
        SettingsError: if one of the versions doesn't exist, or they are reversed.
        HistoryError: if the run published none of the partitions, or the log no longer has one of
            the versions.
    """
    table, newest = log.table, log.version
    keys = {partition.key for partition in partitions}
    if _VERSION.fullmatch(before):
        older = int(before)
    else:
        _, older = log.find_version_before(keys, before)
    newer = newest if after is None else after
    if not 0 <= older < newer <= newest:
        raise SettingsError(
            f"{table.key}: no versions {older} and {newer} to compare: "
            f"give two of 0 to {newest}, the older one as --before"
        )
    versions = (log.as_of(older), log.as_of(newer))
    return TableDiff(
        table=table.key,
        before=older,
        after=newer,
        partitions=compare_partitions(*versions, partitions, reader=reader),
        untouched=prove_untouched(log, keys, versions=range(older + 1, newer + 1), reader=reader),
    )


def compare_partitions(
    before: TableLog,
    after: TableLog,
    partitions: Sequence[Partition],
    *,
    reader: PartitionReader = IN_THIS_PROCESS,
) -> dict[str, PartitionDiff]:
    """Compares what two tables of one declaration, or two versions of one, hold of partitions.

    Args:
        before: of the one; the table must exist.
        after: of the other, likewise.
        partitions: which to compare, ascending.
        reader: reads the checksums.

    Returns:
        By partition key, for each of `partitions`.
    """
    older, newer = (reader.read_back(log, partitions) for log in (before, after))
    # What can't be read on both sides isn't the same: to read its rows says which file it is.
    compared = {
        key: PartitionDiff(rows_before=found.rows, rows_after=found.rows)
        for key, found in newer.items()
        if found == older[key] and found != UNREADABLE
    }
    differing = [partition for partition in partitions if partition.key not in compared]
    rows = {key: found.rows + older[key].rows for key, found in newer.items()}
    for group in split_by_rows(differing, rows):
        contents = (read_contents(log, group) for log in (before, after))
        compared |= compare_contents(*contents)
    return {partition.key: compared[partition.key] for partition in partitions}
