"""Cuts a range into the chunks that a run was told to work in."""

from collections.abc import Collection, Sequence

from backfill_engine.grains.chunk_sizes import ChunkSize, cut_chunks
from backfill_engine.lake.landing import LandingFile
from backfill_engine.lake.slices import Partition
from backfill_engine.publishing.inputs import PinnedInputs


def cut_range(
    partitions: Sequence[Partition], size: ChunkSize | None, pinned: PinnedInputs
) -> list[tuple[Partition, ...]]:
    """Cuts partitions into the chunks that a run was told to work in; without a size, into one.

    Args:
        partitions: ascending, at least one.
        size: of a chunk.
        pinned: inputs, whose listing says how many files landed. A partition of a table is one
            file, so that of what reads tables each counts as one. A file that the partition before
            is in, too, counts once.
    """
    if size is None:
        return [tuple(partitions)]
    landed = pinned.listing.list_landed() if pinned.listing is not None else {}
    files: dict[str, int] = {}
    before: Collection[LandingFile] = ()
    for key, found in landed.items():
        files[key] = sum(one not in before for one in found)
        before = set(found)
    by_key = {partition.key: partition for partition in partitions}
    starts = [(partition.key, partition.slice.start) for partition in partitions]
    return [tuple(by_key[key] for key in chunk) for chunk in cut_chunks(starts, size, files)]
