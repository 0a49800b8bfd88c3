"""Which integer keys a landed Parquet file holds, as its footer says."""

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq

from backfill_assets.errors import LandingError
from backfill_assets.lake.landing import LandingFile, open_landing_zone
from backfill_assets.lake.slices import Partition


@dataclass(frozen=True)
class RowGroup:
    """A part of a file: the smallest and the largest key in it, and its bytes."""

    smallest: int
    largest: int
    bytes: int

    def overlaps(self, partition: Partition) -> bool:
        """Tells whether it may hold a key of the partition."""
        start, end = partition.slice.start, partition.slice.end
        return self.smallest < end and start <= self.largest  # type: ignore[operator]


@dataclass(frozen=True)
class ParquetFile:
    """A file, the kind of records in it, and its parts."""

    name: str
    file: LandingFile
    row_groups: tuple[RowGroup, ...]

    def overlaps(self, partition: Partition) -> bool:
        """Tells whether it may hold a key of the partition."""
        return any(group.overlaps(partition) for group in self.row_groups)


def read_footer(name: str, key: str, file: LandingFile, *, where: str) -> ParquetFile:
    """Reads a file's footer, and no rows.

    Args:
        name: of the kind of records in it.
        key: the column with the keys.
        file: the file.
        where: it is; for messages.

    Raises:
        LandingError: if the footer can't be read or doesn't say which keys there are.
    """
    filesystem, path = open_landing_zone(file.uri)
    try:
        footer = pq.read_metadata(path, filesystem=filesystem)
    except (OSError, pa.ArrowException) as error:
        raise LandingError(f"{where} can't be read as Parquet: land it again") from error
    schema = footer.schema
    places = [at for at in range(len(schema)) if schema.column(at).path == key]
    if not places or schema.column(places[0]).physical_type not in ("INT32", "INT64"):
        raise LandingError(f"{where} has no integer column {key}: land it as it was declared")
    groups: list[RowGroup] = []
    for number in range(footer.num_row_groups):
        group = footer.row_group(number)
        if not group.num_rows:
            continue
        statistics = group.column(places[0]).statistics
        if statistics is None or not statistics.has_min_max:
            raise LandingError(
                f"{where} doesn't say which {key} it holds: write it with statistics, and with "
                "keys that aren't null"
            )
        groups.append(RowGroup(statistics.min, statistics.max, group.total_byte_size))
    return ParquetFile(name, file, tuple(groups))
