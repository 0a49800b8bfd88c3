"""What changed in a table between two versions, and that nothing else did."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from backfill_assets.contents.partition_contents import read_contents
from backfill_assets.errors import TableError
from backfill_assets.lake.slices import Partition
from backfill_assets.lake.table_log import TableLog
from backfill_assets.proof.row_comparison import PartitionDiff, build_diffs
from backfill_assets.proof.untouched import UntouchedProof, prove_untouched

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
) -> TableDiff:
    """Compares rows without Spark, key by key.

    Args:
        log: of the table, which must exist.
        partitions: which to compare.
        before: a version, or a run (its id or the beginning of it): the version before its first
            commit to the partitions.
        after: a later version; the newest if left out.

    Raises:
        TableError: if one of the versions doesn't exist, or they are reversed.
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
        raise TableError(
            f"{table.key}: no versions {older} and {newer} to compare: "
            f"give two of 0 to {newest}, the older one as --before"
        )
    contents = [read_contents(log.as_of(version), partitions) for version in (older, newer)]
    return TableDiff(
        table=table.key,
        before=older,
        after=newer,
        partitions=build_diffs(table, *contents),
        untouched=prove_untouched(log, keys, versions=range(older + 1, newer + 1)),
    )
