"""What can be told of landed Parquet files apart from which keys they hold."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from itertools import zip_longest

import pyarrow as pa
import pyarrow.parquet as pq

from backfill_engine.lake.landing import LandingFile, open_landing_zone, relative_name
from backfill_engine.lake.parquet_footers import ParquetFile
from backfill_engine.lake.slices import Partition


def find_copies(files: Iterable[ParquetFile], root: str) -> list[tuple[ParquetFile, str]]:
    """Finds the files that hold the same as another of their kind, and says so in words.

    Rows are compared only of files that have as many of them, and the same ends of keys.
    """
    alike: dict[tuple[str, int, int, int], list[ParquetFile]] = defaultdict(list)
    for landed in files:
        if not landed.fault and landed.row_groups:
            alike[landed.name, landed.rows, landed.smallest, landed.largest].append(landed)
    copies: list[tuple[ParquetFile, str]] = []
    for group in alike.values():
        for at, landed in enumerate(group):
            same = (earlier for earlier in group[:at] if _hold_same(landed.file, earlier.file))
            if earlier := next(same, None):
                names = (relative_name(one.file.uri, root) for one in (landed, earlier))
                copies.append((landed, " holds the same as ".join(names)))
    return copies


def _hold_same(one: LandingFile, other: LandingFile) -> bool:
    """Tells whether two files have the same rows in the same order, however they are packed."""
    try:
        with ExitStack() as opened:
            rows = [_read_rows(file, opened) for file in (one, other)]
            return all(batch == same for batch, same in zip_longest(*rows))
    except (OSError, pa.ArrowException):
        return False


def _read_rows(file: LandingFile, opened: ExitStack) -> Iterator[pa.RecordBatch]:
    filesystem, path = open_landing_zone(file.uri)
    return pq.ParquetFile(opened.enter_context(filesystem.open_input_file(path))).iter_batches()


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
    try:
        with ExitStack() as opened:
            for _ in _read_rows(file, opened):
                pass
    except (OSError, pa.ArrowException):
        return True
    return False
