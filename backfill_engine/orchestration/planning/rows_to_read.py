"""How many rows partitions would be computed from, as far as logs and footers say."""

from collections.abc import Collection, Mapping

from backfill_engine.lake.partitions import build_partitions
from backfill_engine.lake.table_log import TableLog
from backfill_engine.publishing.inputs import PinnedInputs


def count_rows_to_read(
    pinned: PinnedInputs, keys: Collection[str], coming: Mapping[str, Collection[str]]
) -> int | None:
    """Counts the rows of input of partitions; no file is opened.

    Of tables it is the rows of all partitions that the mapping gives, each counted once: more than
    are read where rows of it are for others. Of Parquet that landed the footers were read to list
    it.

    Args:
        pinned: what they would be computed from, with their windows.
        keys: of the partitions.
        coming: by input table, the partitions that are published before; one that never was counts
            as the mean of its table.

    Returns:
        None if nobody knows: of JSON that landed, of a file of several partitions of which only
        some are to be computed, and of tables that are yet to get their first rows.
    """
    if not keys:
        return 0
    counts = [
        _count_rows_of(
            pinned.inputs[name],
            set[str]().union(*(windows[key] for key in keys)),
            coming.get(name, ()),
        )
        for name, windows in pinned.windows.items()
    ]
    if pinned.listing is not None:
        counts.append(_count_landed(pinned, keys))
    known = [count for count in counts if count is not None]
    return sum(known) if len(known) == len(counts) else None


def _count_landed(pinned: PinnedInputs, keys: Collection[str]) -> int | None:
    listing = pinned.restrict(build_partitions(pinned.target.table, keys)).listing
    return listing.count_known() if listing is not None else None


def _count_rows_of(log: TableLog, read: Collection[str], coming: Collection[str]) -> int | None:
    rows = log.count_rows()
    new = set(read).intersection(coming).difference(rows)
    if new and not rows:
        return None
    counted = sum(rows.get(key, 0) for key in read)
    return counted + round(len(new) * sum(rows.values()) / len(rows)) if new else counted
