"""Which integer keys a landed Parquet file holds, and as which columns, as its footer says."""

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq

from backfill_engine.errors import LandingError
from backfill_engine.lake.landing import LandingFile, open_landing_zone
from backfill_engine.lake.parquet_types import find_column_faults
from backfill_engine.lake.slices import Partition
from backfill_engine.tables.declarations import Column


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

    def lies_in(self, partition: Partition) -> bool:
        """Tells whether it holds no key but the partition's."""
        start, end = partition.slice.start, partition.slice.end
        return start <= self.smallest and self.largest < end  # type: ignore[operator]


@dataclass(frozen=True)
class ParquetFile:
    """A file, the kind of records in it, and its parts.

    Attributes:
        name: of the kind of records.
        file: the file.
        row_groups: those with keys.
        rows: in all of the file, whatever their key.
        null_keys: rows without a key; None if the footer doesn't say.
        fault: why it can't be read, after its name; empty if it can.
        keys_are_known: whether `row_groups` tells all keys; else it may hold any.
    """

    name: str
    file: LandingFile
    row_groups: tuple[RowGroup, ...]
    rows: int = 0
    null_keys: int | None = 0
    fault: str = ""
    keys_are_known: bool = True

    def overlaps(self, partition: Partition) -> bool:
        """Tells whether it may hold a key of the partition."""
        return not self.keys_are_known or any(
            group.overlaps(partition) for group in self.row_groups
        )

    def lies_in(self, partition: Partition) -> bool:
        """Tells whether all its keys are known, and are the partition's."""
        groups = self.row_groups
        return self.keys_are_known and all(group.lies_in(partition) for group in groups)

    @property
    def smallest(self) -> int:
        """Its smallest key; for a file with keys."""
        return min(group.smallest for group in self.row_groups)

    @property
    def largest(self) -> int:
        """Its largest key; likewise."""
        return max(group.largest for group in self.row_groups)


def read_footer(
    name: str, key: str, file: LandingFile, *, where: str, fields: Sequence[Column] = ()
) -> ParquetFile:
    """Reads a file's footer, and no rows.

    Args:
        name: of the kind of records in it.
        key: the column with the keys.
        file: the file.
        where: it is; for messages.
        fields: the columns that it must have; none to not look.

    Returns:
        The file, with its fault if it isn't Parquet, or not of the declared columns.

    Raises:
        LandingError: if the footer doesn't say which keys there are.
    """
    filesystem, path = open_landing_zone(file.uri)
    try:
        footer = pq.read_metadata(path, filesystem=filesystem)
        schema = footer.schema.to_arrow_schema()
    except (OSError, pa.ArrowException):
        fault = "can't be read as Parquet: land it again"
        return ParquetFile(name, file, (), fault=fault, keys_are_known=False)
    columns = footer.schema
    places = [at for at in range(len(columns)) if columns.column(at).path == key]
    if not places or columns.column(places[0]).physical_type not in ("INT32", "INT64"):
        fault = f"has no integer column {key}: land it as it was declared"
        return ParquetFile(name, file, (), footer.num_rows, fault=fault, keys_are_known=False)
    faults = "; ".join(find_column_faults(schema, fields))
    fault = f"{faults}: land it as it was declared" if faults else ""
    groups, null_keys, known = _read_row_groups(footer, places[0])
    if not known and not fault:
        raise LandingError(
            f"{where} doesn't say which {key} it holds: write it with statistics, and with "
            "keys that aren't null"
        )
    return ParquetFile(name, file, groups, footer.num_rows, null_keys, fault, known)


def _read_row_groups(
    footer: pq.FileMetaData, column: int
) -> tuple[tuple[RowGroup, ...], int | None, bool]:
    """Returns the row groups with keys, the rows without one, and whether that is all."""
    groups: list[RowGroup] = []
    null_keys: int | None = 0
    known = True
    for number in range(footer.num_row_groups):
        group = footer.row_group(number)
        statistics = group.column(column).statistics
        nulls = statistics.null_count if statistics and statistics.has_null_count else None
        if group.num_rows:
            null_keys = None if nulls is None or null_keys is None else null_keys + nulls
        if statistics is not None and statistics.has_min_max:
            groups.append(RowGroup(statistics.min, statistics.max, group.total_byte_size))
        elif group.num_rows != nulls:
            known = known and not group.num_rows
    # Of keys that are all null nobody could say which partition they belong to.
    return tuple(groups), null_keys, known and bool(groups or not footer.num_rows)
