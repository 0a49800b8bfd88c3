"""What can be told of landed Parquet files apart from which keys they hold."""

from collections import defaultdict
from collections.abc import Iterable

import pyarrow as pa
import pyarrow.parquet as pq

from backfill_assets.lake.landing import LandingFile, open_landing_zone, relative_name
from backfill_assets.lake.parquet_footers import ParquetFile
from backfill_assets.lake.same_files import find_same_files
from backfill_assets.lake.slices import Partition


def find_copies(files: Iterable[ParquetFile], root: str) -> list[tuple[ParquetFile, str]]:
    """Finds the files that hold the same bytes as another of their kind, and says so in words."""
    kinds: dict[str, dict[LandingFile, ParquetFile]] = defaultdict(dict)
    for landed in files:
        if not landed.fault:
            kinds[landed.name][landed.file] = landed
    return [
        (
            of_kind[file],
            f"{relative_name(file.uri, root)} holds the same as {relative_name(earlier.uri, root)}",
        )
        for of_kind in kinds.values()
        for file, earlier in find_same_files(of_kind)
    ]


def measure_own_bytes(files: Iterable[ParquetFile], partition: Partition) -> dict[str, int]:
    """Sums the bytes of the row groups of a partition, uncompressed, by suffix.

    Nothing where one of them holds keys of other partitions too: a share of it says too little.
    """
    groups = [group for landed in files for group in landed.row_groups if group.overlaps(partition)]
    if not groups or not all(group.lies_in(partition) for group in groups):
        return {}
    return {".parquet": sum(group.bytes for group in groups)}


def is_broken(file: LandingFile) -> bool:
    """Tells whether any of its rows can't be read; it reads all of them."""
    filesystem, path = open_landing_zone(file.uri)
    try:
        with filesystem.open_input_file(path) as source:
            for _ in pq.ParquetFile(source).iter_batches():
                pass
    except (OSError, pa.ArrowException):
        return True
    return False
