"""Compares a table with what someone else vouches for: a Delta table, Parquet files or a CSV."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from backfill_engine.contents.canonical_words import canonicalize, find_arrow_type
from backfill_engine.contents.rows import (
    PartitionIndex,
    RowBatch,
    build_conditions,
    find_column,
    read_delta_names,
    stream_rows,
)
from backfill_engine.errors import GoldenError
from backfill_engine.extras.comparison.contents import (
    Contents,
    hash_keys,
    hash_whole,
    read_contents,
    read_rows,
)
from backfill_engine.extras.comparison.rows import (
    Differing,
    PartitionDiff,
    compare_contents,
    find_differing,
)
from backfill_engine.lake.partitions import Partition
from backfill_engine.lake.table_log import TableLog
from backfill_engine.tables.declarations import Column, Table

if TYPE_CHECKING:
    import pyarrow.dataset

Difference: TypeAlias = Literal["missing", "extra", "changed"]
"""Of a key: only before, only after, or on both sides with different values."""

_KINDS: tuple[Difference, ...] = ("changed", "missing", "extra")


@dataclass(frozen=True)
class ExampleKey:
    """A key that differs: the values of the key columns, of all compared columns without a key."""

    difference: Difference
    values: Mapping[str, Any]


def find_example_keys(
    before: Contents, after: Contents, *, limit: int = 2
) -> dict[str, tuple[ExampleKey, ...]]:
    """Names some keys that differ.

    Reads the partitions that differ again, their key columns alone.

    Args:
        before: of the same partitions, keys and columns as `after`.
        after: what is judged.
        limit: most examples of each kind of difference in a partition.

    Returns:
        Examples per partition key, only of partitions that differ, ascending; which rows are chosen
        and their order depend on nothing but the contents.

    Raises:
        ValueError: as `compare_contents`.
        GoldenError, ArrowInvalid: as when they were read.
    """
    found = find_differing(before, after)
    kinds = np.select([found.gained == 0, found.lost == 0], [1, 2], 0)
    groups = found.owners.astype(np.int64) * len(_KINDS) + kinds
    order = np.argsort(groups, kind="stable")
    ranks = np.arange(len(order)) - np.searchsorted(groups[order], groups[order])
    chosen = order[ranks < limit]
    found, kinds = found.take(chosen), kinds[chosen]
    lost = found.lost > 0
    values = {
        **_read_identities(before, found.take(lost)),
        **_read_identities(after, found.take(~lost)),
    }
    examples: dict[str, list[ExampleKey]] = {}
    for identity, owner, kind in zip(found.identities, found.owners, kinds, strict=True):
        if identity in values:  # else the golden data set was changed meanwhile
            of_partition = examples.setdefault(before.partitions[owner].key, [])
            of_partition.append(ExampleKey(_KINDS[kind], values[identity]))
    return {key: tuple(keys) for key, keys in examples.items()}


def _read_identities(contents: Contents, wanted: Differing) -> dict[np.uint64, dict[str, Any]]:
    """Reads the key columns' values of these identities, by identity.

    Without a key these are the values of all compared columns.
    """
    table = contents.table
    names = contents.keys or contents.compared
    columns = [find_column(table, name) for name in names]
    index = PartitionIndex(table, [contents.partitions[at] for at in np.unique(wanted.owners)])
    found: dict[np.uint64, dict[str, Any]] = {}
    for batch in contents.stream(columns, index):
        words = {name: canonicalize(batch.values[name]) for name in names}
        if contents.keys:
            hashes = hash_keys(batch, words, names, index)
        else:
            hashes = hash_whole(batch, words)
        rows = np.flatnonzero(np.isin(hashes, wanted.identities))
        identities, first = np.unique(hashes[rows], return_index=True)
        for identity, row in zip(identities, rows[first], strict=True):
            found[identity] = {name: batch.values[name][int(row)].as_py() for name in names}
    return found


@dataclass(frozen=True)
class GoldenReport:
    """A table next to its golden.

    Attributes:
        table: `layer/name`.
        golden: path of the other side.
        keys: the columns by which rows are matched.
        not_compared: columns of the table that the golden lacks.
        partitions: by key: `removed` rows are missing in the table, `added` ones are extra,
            `changed` ones differ.
        examples: a few keys of partitions that differ.
        mismatches: rows that are missing, extra or different, over all partitions.
    """

    table: str
    golden: str
    keys: tuple[str, ...]
    not_compared: tuple[str, ...]
    partitions: Mapping[str, PartitionDiff]
    examples: Mapping[str, Sequence[ExampleKey]]
    mismatches: int


def compare_with_golden(
    log: TableLog, partitions: Sequence[Partition], path: Path, *, keys: Sequence[str]
) -> GoldenReport:
    """Reads both without Spark.

    Args:
        log: of the table, which must exist.
        partitions: which to compare.
        path: of the golden.
        keys: columns that identify a row.

    Raises:
        GoldenError: if the golden can't be read or compared.
    """
    table = log.table
    golden = read_golden(path, table, partitions, keys=keys)
    contents = read_contents(log, partitions, columns=golden.compared, keys=keys)
    changes = compare_contents(golden, contents)
    mismatches = sum(diff.mismatches for diff in changes.values())
    return GoldenReport(
        table=table.key,
        golden=str(path),
        keys=tuple(keys),
        not_compared=tuple(name for name in table.column_names if name not in golden.compared),
        partitions=changes,
        examples=find_example_keys(golden, contents) if mismatches else {},
        mismatches=mismatches,
    )


@dataclass(frozen=True)
class GoldenRows:
    """Rows that someone vouches for, in a Delta table, Parquet or CSV; read as a table's rows.

    Attributes:
        path: a folder with a Delta log (its newest version is read); a Parquet file, or a folder of
            them, also in Hive's `column=value` folders; or a CSV file with a header, `.csv` or
            `.csv.gz`.
        table: to whose types the values are cast. In CSV an empty field is null, `12.0` an integer,
            and a timestamp without a zone, or without a time, is UTC.
    """

    path: Path
    table: Table

    def read_column_names(self) -> frozenset[str]:
        """Reads the names of all columns that the data set has.

        Raises:
            GoldenError: if there is nothing at the path, or nothing readable.
        """
        with _naming(self.path):
            if not self.path.exists():
                raise FileNotFoundError("there is nothing")
            if self._is_delta():
                return read_delta_names(DeltaTable(str(self.path)))
            return frozenset(self._open_dataset().schema.names)

    def stream(self, columns: Sequence[Column], index: PartitionIndex) -> Iterator[RowBatch]:
        """Streams rows as a table's are.

        Rows of other partitions are read past, and their values never cast.

        Args:
            columns: that it has.
            index: of the partitions to read.

        Raises:
            GoldenError: if the file is unreadable, or a value can't be cast to its column's type.
        """
        if not index.partitions:
            return
        place = self.table.partition_by
        by = find_column(self.table, place) if place else columns[0]
        names = list(dict.fromkeys((by.name, *(column.name for column in columns))))
        with _naming(self.path):
            for batch in self._read_batches(names, by, index):
                stored = {name: _simplify(batch.column(name)) for name in names}
                starts = self._cast(stored[by.name], by)
                owners = index.find_owners(canonicalize(starts))
                if place:
                    owners[starts.is_null().to_numpy(zero_copy_only=False)] = -1
                inside = pa.array(owners >= 0)
                values = {
                    column.name: self._cast(stored[column.name].filter(inside), column)
                    for column in columns
                }
                yield RowBatch(owners[owners >= 0], values)

    def _read_batches(
        self, names: Sequence[str], by: Column, index: PartitionIndex
    ) -> Iterator[pa.RecordBatch]:
        if self._is_delta():
            contents = DeltaTable(str(self.path))
            stored = pa.schema(contents.schema().to_arrow()).field(by.name).type
            # Of another type, it can't be compared with the bounds before it is cast.
            is_readable = stored == find_arrow_type(by)
            place = self.table.partition_by if is_readable else ""
            conditions = build_conditions(place, index)
            yield from stream_rows(contents, names, conditions)
        else:
            yield from self._open_dataset().to_batches(
                columns=names, batch_size=65_536, batch_readahead=2, fragment_readahead=1
            )

    def _open_dataset(self) -> "pyarrow.dataset.Dataset":
        # Here, as it imports pandas, which takes each process half a second to start.
        from pyarrow import dataset

        if self.path.name.endswith((".csv", ".csv.gz")):
            texts = dataset.CsvFileFormat(
                parse_options=pyarrow.csv.ParseOptions(newlines_in_values=True),
                convert_options=pyarrow.csv.ConvertOptions(
                    null_values=[""], strings_can_be_null=True
                ),
            )
            names = dataset.dataset(str(self.path), format=texts).schema.names
            # Read as other types, values would be changed before they are cast.
            as_texts = pa.schema([(name, pa.string()) for name in names])
            return dataset.dataset(str(self.path), format=texts, schema=as_texts)
        return dataset.dataset(
            str(self.path),
            format=dataset.ParquetFileFormat(coerce_int96_timestamp_unit="us"),
            # The folders above a file are no part of it.
            partitioning="hive" if self.path.is_dir() else None,
        )

    def _cast(self, values: pa.Array, column: Column) -> pa.Array:
        type_ = find_arrow_type(column)
        try:
            return _cast_values(values, type_)
        except pa.ArrowException as error:
            raise GoldenError(
                f"golden {self.path}: column {column.name} holds "
                f"{_find_uncastable(values, type_)!r}, which is not a {column.type}: correct it "
                "(a column that is left out isn't compared)"
            ) from error

    def _is_delta(self) -> bool:
        return (self.path / "_delta_log").is_dir()


def read_golden(
    path: Path, table: Table, partitions: Sequence[Partition], *, keys: Sequence[str]
) -> Contents:
    """Reads what partitions of a table should hold; `GoldenRows` says from what, and how.

    The columns that both have are compared: read the table's side with `columns=golden.compared`
    and the same keys. Rows outside the partitions are ignored.

    Args:
        path: of a Delta table, a Parquet file or folder, or a CSV file.
        table: what it is golden for.
        partitions: in any order; disjoint.
        keys: columns that identify a row within its partition; empty if none do.

    Raises:
        GoldenError: if it is unreadable, lacks a key or the partition column, or holds a value that
            can't be cast to the declared type.
    """
    source = GoldenRows(path, table)
    needed = tuple(name for name in (table.partition_by, *keys) if name)
    if undeclared := sorted(set(needed) - set(table.column_names)):
        raise GoldenError(
            f"{table.key} has no columns {', '.join(undeclared)} to compare golden {path} by: "
            f"choose keys among {', '.join(table.column_names)}"
        )
    present = source.read_column_names()
    if lacking := [name for name in dict.fromkeys(needed) if name not in present]:
        raise GoldenError(
            f"golden {path} lacks columns {', '.join(lacking)}, by which it is compared with "
            f"{table.key}: add them, or compare by other keys"
        )
    return read_rows(table, source.stream, partitions, tuple(keys), present)


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Says which golden it was that couldn't be read."""
    try:
        yield
    except (pa.ArrowException, DeltaError, OSError) as error:
        reason = str(error).partition("\n")[0]
        raise GoldenError(
            f"golden {path} can't be read ({reason}): give a Delta table, a Parquet file or "
            "folder, or a CSV file whose name ends in .csv or .csv.gz"
        ) from error


def _simplify(values: pa.Array) -> pa.Array:
    """Removes the encodings of texts and bytes that Arrow can neither filter nor cast."""
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    if pa.types.is_large_string(values.type) or pa.types.is_string_view(values.type):
        return values.cast(pa.string())
    if pa.types.is_large_binary(values.type) or pa.types.is_binary_view(values.type):
        return values.cast(pa.binary())
    return values


def _cast_values(values: pa.Array, type_: pa.DataType) -> pa.Array:
    if pa.types.is_string(values.type) and pa.types.is_integer(type_):
        # What pandas writes of integers with nulls among them …
        values = _replace(values, r"\.0+$", "")
    elif pa.types.is_string(values.type) and pa.types.is_timestamp(type_):
        # … and of midnights; where no zone follows the time, it is UTC.
        values = _replace(values, r"^(\d{4}-\d\d-\d\d)$", r"\1 00:00:00")
        values = _replace(values, r"^([^ T]+[ T][^-+Z]+)$", r"\1Z")
    return values.cast(type_)


def _replace(texts: pa.Array, pattern: str, replacement: str) -> pa.Array:
    options = pc.ReplaceSubstringOptions(pattern, replacement)
    return pc.call_function("replace_substring_regex", [texts], options)


def _find_uncastable(values: pa.Array, type_: pa.DataType) -> Any:
    for at in range(len(values)):
        try:
            _cast_values(values.slice(at, 1), type_)
        except pa.ArrowException:
            return values[at].as_py()
    return None
