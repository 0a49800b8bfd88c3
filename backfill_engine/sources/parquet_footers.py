"""Which integer keys a landed Parquet file holds, and as which columns, as its footer says."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import zip_longest

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import types

from backfill_engine.errors import LandingError
from backfill_engine.lake.landing import LandingFile, open_landing_zone, relative_name
from backfill_engine.lake.partitions import Partition
from backfill_engine.tables.column_types import ColumnType
from backfill_engine.tables.columns import Column


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


_FITS: Mapping[str, Callable[[pa.DataType], bool]] = {
    "BOOLEAN": types.is_boolean,
    "TINYINT": lambda found: types.is_int8(found),
    "SMALLINT": lambda found: types.is_signed_integer(found) and found.bit_width <= 16,
    "INT": lambda found: types.is_signed_integer(found) and found.bit_width <= 32,
    "BIGINT": types.is_signed_integer,
    "FLOAT": types.is_float32,
    "DOUBLE": lambda found: types.is_float64(found) or types.is_float32(found),
    "STRING": lambda found: (
        types.is_string(found) or types.is_large_string(found) or types.is_string_view(found)
    ),
    "BINARY": lambda found: types.is_binary(found) or types.is_large_binary(found),
    "DATE": types.is_date32,
    "TIMESTAMP": lambda found: types.is_timestamp(found) and found.unit in ("ms", "us"),
    "TIMESTAMP_NTZ": lambda found: (
        types.is_timestamp(found) and found.unit in ("ms", "us") and found.tz is None
    ),
}
"""By the declared type, the Arrow types that Spark reads as it without loss."""


def find_column_faults(schema: pa.Schema, fields: Sequence[Column]) -> list[str]:
    """Finds what is wrong with a file's columns, in words; columns beyond `fields` are none.

    Names are as they are written: one that differs by case is another. Two that differ by nothing
    else are a fault, as Spark couldn't tell them apart.
    """
    lower = [name.lower() for name in schema.names]
    faults: list[str] = []
    for field in fields:
        if field.name not in schema.names:
            faults.append(f"lacks the column {field.name}")
        elif lower.count(field.name.lower()) > 1:
            faults.append(f"has the column {field.name} more than once")
        elif not _fits(found := schema.field(field.name).type, field.parsed_type):
            faults.append(f"has {field.name} as {found}, not {field.type}")
    return faults


def _fits(found: pa.DataType, declared: ColumnType) -> bool:
    if types.is_dictionary(found):
        found = found.value_type
    match declared.kind:
        case "DECIMAL":
            precision, scale = declared.digits
            return (
                types.is_decimal128(found) and found.precision <= precision and found.scale == scale
            )
        case "ARRAY":
            is_list = types.is_list(found) or types.is_large_list(found)
            return is_list and _fits(found.value_type, declared.parts[0])
        case "MAP":
            of_key, of_value = declared.parts
            return (
                types.is_map(found)
                and _fits(found.key_type, of_key)
                and _fits(found.item_type, of_value)
            )
        case "STRUCT":
            return types.is_struct(found) and all(
                found.get_field_index(name) >= 0 and _fits(found.field(name).type, part)
                for name, part in zip(declared.names, declared.parts, strict=True)
            )
    return _FITS[declared.kind](found)


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
                names = (relative_name(copy.file.uri, root) for copy in (landed, earlier))
                copies.append((landed, " holds the same as ".join(names)))
    return copies


def _hold_same(file: LandingFile, other: LandingFile) -> bool:
    """Tells whether two files have the same rows in the same order, however they are packed."""
    try:
        with ExitStack() as opened:
            rows = [_read_rows(landed, opened) for landed in (file, other)]
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
