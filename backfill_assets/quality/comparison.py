"""Compares the rows of two contents of a table, per partition and by key. No Spark, no Dagster.

A content is a version of the table, or a golden data set. Of each row only hashes are kept: rows
are equal if their canonical values (see `quality.checksums`) are, so floats to six decimals. Two
different rows are taken for equal with a chance of 1 in 2^64.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from backfill_assets.errors import GoldenError
from backfill_assets.lake.slices import Partition
from backfill_assets.lake.warehouse import Warehouse
from backfill_assets.quality.drift import MIN_VALUES, compute_psi
from backfill_assets.quality.rows import (
    GoldenRows,
    Hashes,
    Longs,
    PartitionIndex,
    RowBatch,
    RowSource,
    TableRows,
    canonicalize,
    find_column,
    hash_rows,
)
from backfill_assets.tables.declarations import Table
from backfill_assets.tables.rules import Drift

Difference: TypeAlias = Literal["missing", "extra", "changed"]
"""Of a key: only before, only after, or on both sides with different values."""

_KINDS: tuple[Difference, ...] = ("changed", "missing", "extra")
# Comparing sorts copies of the hashes; of a block at a time, so that there are few of them.
_BLOCKS = 16


@dataclass(frozen=True, eq=False)
class Contents:
    """What partitions hold, as hashes: 20 bytes a row, 12 without a key, whatever the columns.

    While it is read, another 8 bytes a row are taken.

    Attributes:
        source: where the rows are, to read them again.
        partitions: ascending.
        keys: columns that identify a row within its partition; empty where rows may repeat.
        compared: columns that the row hashes are of, in declared order.
        missing: declared columns that the source lacks; of a table they read as null and are
            compared, of a golden data set they aren't.
        owners: per row, the index of its partition.
        key_hashes: per row, of its partition and its key; None without a key.
        row_hashes: per row, of the compared columns.
        row_counts: rows per partition.
        nulls: null values per partition, by compared column.
        histograms: an array (partitions × bins) of rows, nulls in the last bin, by the `histogram`
            of each `Drift` rule of a compared column.
    """

    source: RowSource
    partitions: tuple[Partition, ...]
    keys: tuple[str, ...]
    compared: tuple[str, ...]
    missing: tuple[str, ...]
    owners: NDArray[np.int32]
    key_hashes: Hashes | None
    row_hashes: Hashes
    row_counts: Longs
    nulls: Mapping[str, Longs]
    histograms: Mapping[str, Longs]

    @property
    def identities(self) -> Hashes:
        """Per row, what makes it the same row in another content: its key, else all of it."""
        return self.row_hashes if self.key_hashes is None else self.key_hashes


@dataclass(frozen=True)
class RowChanges:
    """Rows of a partition by what became of them.

    Attributes:
        same: on both sides, equal in all compared columns.
        added: only after.
        removed: only before.
        changed: on both sides with the same key, but not equal; 0 without a key.
        duplicates: rows after, beyond the first of their key; 0 without a key.
    """

    same: int = 0
    added: int = 0
    removed: int = 0
    changed: int = 0
    duplicates: int = 0

    @property
    def equal(self) -> bool:
        """Whether both sides hold the same rows, each as often."""
        return not (self.added or self.removed or self.changed)


@dataclass(frozen=True)
class PartitionDiff:
    """How a partition differs between two contents.

    Attributes:
        rows_before: rows.
        rows_after: rows.
        added: as in `RowChanges`; likewise the next three.
        removed: only before.
        changed: same key, other values.
        duplicates: beyond the first of their key, after.
        null_shares: shares of nulls (0 to 1) before and after, by column; only of columns that have
            any on either side.
        psi: population stability index between before and after, by column with a `Drift` rule
            (the largest, if it has several); None where a side has too few values to say.
    """

    rows_before: int
    rows_after: int
    added: int
    removed: int
    changed: int
    duplicates: int
    null_shares: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    psi: Mapping[str, float | None] = field(default_factory=dict)

    @property
    def equal(self) -> bool:
        """Whether both sides hold the same rows, each as often."""
        return not (self.added or self.removed or self.changed)


@dataclass(frozen=True)
class ExampleKey:
    """A key that differs: the values of the key columns, of all compared columns without a key."""

    difference: Difference
    values: Mapping[str, Any]


def read_contents(
    warehouse: Warehouse,
    table: Table,
    partitions: Sequence[Partition],
    *,
    version: int,
    columns: Sequence[str] | None = None,
    keys: Sequence[str] | None = None,
) -> Contents:
    """Reads partitions of a table at a version, a batch of rows at a time; see `Contents`.

    Args:
        warehouse: where the table is.
        table: its declaration; other columns that it may have aren't read.
        partitions: in any order; disjoint. Files of others aren't opened.
        version: of the table. Declared columns that it lacked then read as null.
        columns: to compare, None for all; the keys and the partition column always are.
        keys: columns that identify a row within its partition; None for the natural key.

    Raises:
        TypeError: if a column's type has no canonical form.
        ValueError: if a column isn't declared.
        ArrowInvalid: if a data file is missing, or unreadable (another size than the log says).
    """
    keys = table.natural_key if keys is None else tuple(keys)
    wanted = {*(table.column_names if columns is None else columns), *keys, table.partition_by}
    if undeclared := sorted(wanted - set(table.column_names)):
        raise ValueError(f"{table.key} has no columns {', '.join(undeclared)}")
    source = TableRows(warehouse, table, version)
    return _read(source, partitions, keys, wanted, present=source.read_column_names())


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
        TypeError: if a column's type has no canonical form.
    """
    source = GoldenRows(path, table)
    needed = (table.partition_by, *keys)
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
    return _read(source, partitions, tuple(keys), present, present=present)


def compare_contents(before: Contents, after: Contents) -> dict[str, RowChanges]:
    """Compares row by row, as multisets.

    Rows equal in all compared columns cancel out, each as often as both sides have it. Of what is
    left, rows with the same key on both sides are `changed`, the others `removed` or `added`. While
    it runs it takes about 8 bytes a row beside the contents, and 60 if every row differs.

    Returns:
        Changes per partition key, partitions ascending.

    Raises:
        ValueError: if the two aren't of the same partitions, keys and columns.
    """
    found = _find_differing(before, after)
    changed = np.minimum(found.lost, found.gained)
    count = len(before.partitions)
    sums = {
        "removed": _sum_by_owner(found.owners, found.lost - changed, count),
        "added": _sum_by_owner(found.owners, found.gained - changed, count),
        "changed": _sum_by_owner(found.owners, changed, count),
        "duplicates": _count_duplicates(after),
    }
    sums["same"] = before.row_counts - sums["removed"] - sums["changed"]
    return {
        one.key: RowChanges(**{name: int(each[at]) for name, each in sums.items()})
        for at, one in enumerate(before.partitions)
    }


def build_diffs(table: Table, before: Contents, after: Contents) -> dict[str, PartitionDiff]:
    """Compares rows, null shares and distributions.

    Args:
        table: whose `Drift` rules apply, those of compared columns.
        before: of the same partitions, keys and columns as `after`.
        after: what is judged.

    Returns:
        Per partition key, partitions ascending.

    Raises:
        ValueError: as `compare_contents`.
    """
    changes = compare_contents(before, after)
    return {
        one.key: PartitionDiff(
            rows_before=int(before.row_counts[at]),
            rows_after=int(after.row_counts[at]),
            added=changes[one.key].added,
            removed=changes[one.key].removed,
            changed=changes[one.key].changed,
            duplicates=changes[one.key].duplicates,
            null_shares={
                name: shares
                for name in before.compared
                if any(shares := (_share_nulls(before, name, at), _share_nulls(after, name, at)))
            },
            psi=_compute_psi_by_column(table, before, after, at),
        )
        for at, one in enumerate(before.partitions)
    }


def find_example_keys(
    before: Contents, after: Contents, *, limit: int = 5
) -> dict[str, tuple[ExampleKey, ...]]:
    """Names some keys that differ. Reads the partitions that differ again, their key columns alone.

    Args:
        before: of the same partitions, keys and columns as `after`.
        after: what is judged.
        limit: most examples a partition; each kind of difference gets its turn.

    Returns:
        Examples per partition key, only of partitions that differ, ascending; which rows are chosen
        and their order depend on nothing but the contents.

    Raises:
        ValueError: as `compare_contents`.
        GoldenError, ArrowInvalid: as when they were read.
    """
    found = _choose_examples(_find_differing(before, after), limit)
    lost = found.lost > 0
    values = {
        **_read_identities(before, found.identities[lost], found.owners[lost]),
        **_read_identities(after, found.identities[~lost], found.owners[~lost]),
    }
    examples: dict[str, list[ExampleKey]] = {}
    for identity, owner, kind in zip(found.identities, found.owners, found.kinds, strict=True):
        if identity in values:  # else the golden data set was changed meanwhile
            key = before.partitions[owner].key
            examples.setdefault(key, []).append(ExampleKey(_KINDS[kind], values[identity]))
    return {key: tuple(some) for key, some in examples.items()}


def _read(
    source: RowSource,
    partitions: Sequence[Partition],
    keys: tuple[str, ...],
    wanted: set[str] | frozenset[str],
    *,
    present: frozenset[str],
) -> Contents:
    table = source.table
    index = PartitionIndex(table, partitions)
    count = len(index.partitions)
    columns = [one for one in table.columns if one.name in wanted]
    names = tuple(one.name for one in columns)
    drifts = [rule for rule in table.rules if isinstance(rule, Drift) and rule.column in names]
    nulls = {name: np.zeros(count, np.int64) for name in names}
    histograms = {one.histogram: np.zeros((count, len(one.edges) + 2), np.int64) for one in drifts}
    owners, key_hashes, row_hashes = [np.zeros(0, np.int32)], [_no_hashes()], [_no_hashes()]
    for batch in source.stream(columns, index):
        words = {name: canonicalize(batch.values[name]) for name in names}
        owners.append(batch.owners.astype(np.int32))
        row_hashes.append(_hash_whole(batch, words))
        if keys:
            key_hashes.append(_hash_keys(batch, words, keys, index))
        for name in names:
            if batch.values[name].null_count:
                absent = batch.values[name].is_null().to_numpy(zero_copy_only=False)
                np.add.at(nulls[name], batch.owners[absent], 1)
        for rule in drifts:
            bins = _find_bins(batch.values[rule.column], rule)
            np.add.at(histograms[rule.histogram], (batch.owners, bins), 1)
    joined = _join(owners)
    return Contents(
        source=source,
        partitions=index.partitions,
        keys=keys,
        compared=names,
        missing=tuple(name for name in table.column_names if name not in present),
        owners=joined,
        key_hashes=_join(key_hashes) if keys else None,
        row_hashes=_join(row_hashes),
        row_counts=np.bincount(joined, minlength=count),
        nulls=nulls,
        histograms=histograms,
    )


def _no_hashes() -> Hashes:
    return np.zeros(0, np.uint64)


def _join(parts: list[Any]) -> Any:
    """Forgets the parts, so that only one array is there twice at a time."""
    joined = np.concatenate(parts)
    parts.clear()
    return joined


def _hash_keys(
    batch: RowBatch, words: Mapping[str, Longs], keys: Sequence[str], index: PartitionIndex
) -> Hashes:
    """Of the partition and the key, for a row that moved has another identity."""
    return hash_rows([index.starts[batch.owners], *(words[name] for name in keys)])


def _hash_whole(batch: RowBatch, words: Mapping[str, Longs]) -> Hashes:
    values = [batch.values[name] for name in words]
    return hash_rows([*words.values(), *_flag_constants(values)])


def _flag_constants(values: Sequence[pa.Array]) -> Iterator[Longs]:
    """Bits that tell null, NaN and infinity from the numbers whose words are the same."""
    for first in range(0, len(values), 64):
        flags = np.zeros(len(values[0]), np.uint64)
        for bit, each in enumerate(values[first : first + 64]):
            if pa.types.is_floating(each.type):
                # Nulls become NaN.
                flagged = ~np.isfinite(each.to_numpy(zero_copy_only=False))
            elif each.null_count:
                flagged = each.is_null().to_numpy(zero_copy_only=False)
            else:
                continue
            flags |= flagged.astype(np.uint64) << np.uint64(bit)
        yield flags.view(np.int64)


def _find_bins(values: pa.Array, rule: Drift) -> Longs:
    """The same bins as when Spark measures: NaN counts as larger than any number."""
    numbers = pc.fill_null(values.cast(pa.float64(), safe=False), 0.0)
    bins = np.searchsorted(rule.edges, numbers.to_numpy(zero_copy_only=False), side="right")
    bins[values.is_null().to_numpy(zero_copy_only=False)] = len(rule.edges) + 1
    return bins


@dataclass(frozen=True, eq=False)
class _Differing:
    """Identities that differ, distinct and ascending or as chosen: rows lost and gained of each."""

    identities: Hashes
    owners: NDArray[np.int32]
    lost: Longs
    gained: Longs

    @property
    def kinds(self) -> Longs:
        """Indices into `_KINDS`."""
        return np.select([self.gained == 0, self.lost == 0], [1, 2], 0)

    def take(self, at: NDArray[Any]) -> "_Differing":
        return _Differing(self.identities[at], self.owners[at], self.lost[at], self.gained[at])


class _Rows(NamedTuple):
    """Some rows of contents; arrays as there, of one length."""

    owners: NDArray[np.int32]
    identities: Hashes
    row_hashes: Hashes


def _select_rows(contents: Contents, block: int) -> _Rows:
    """The rows whose identity is in one of `_BLOCKS` ranges of equal width; all those of a key."""
    width = 2**64 // _BLOCKS
    first, last = np.uint64(block * width), np.uint64(block * width + width - 1)
    within = (contents.identities >= first) & (contents.identities <= last)
    return _Rows(contents.owners[within], contents.identities[within], contents.row_hashes[within])


def _find_differing(before: Contents, after: Contents) -> _Differing:
    _check_comparable(before, after)
    blocks = [
        _find_differing_rows(_select_rows(before, block), _select_rows(after, block))
        for block in range(_BLOCKS)
    ]
    return _Differing(
        identities=np.concatenate([one.identities for one in blocks]),
        owners=np.concatenate([one.owners for one in blocks]),
        lost=np.concatenate([one.lost for one in blocks]),
        gained=np.concatenate([one.gained for one in blocks]),
    )


def _find_differing_rows(before: _Rows, after: _Rows) -> _Differing:
    lost_at, lost, gained_at, gained = _cancel_equal_rows(before.row_hashes, after.row_hashes)
    owners = np.concatenate([before.owners[lost_at], after.owners[gained_at]])
    identities, first, which = np.unique(
        np.concatenate([before.identities[lost_at], after.identities[gained_at]]),
        return_index=True,
        return_inverse=True,
    )
    sums = np.zeros((2, len(identities)), np.int64)
    np.add.at(sums[0], which[: len(lost_at)], lost)
    np.add.at(sums[1], which[len(lost_at) :], gained)
    return _Differing(identities, owners[first], lost=sums[0], gained=sums[1])


def _check_comparable(before: Contents, after: Contents) -> None:
    for what in ("partitions", "keys", "compared"):
        if getattr(before, what) != getattr(after, what):
            raise ValueError(f"contents differ in their {what}, and can't be compared")


def _cancel_equal_rows(before: Hashes, after: Hashes) -> tuple[Longs, Longs, Longs, Longs]:
    """Of each distinct row that one side has more often: where it is there, and how many more."""
    rows_before, counts_before = np.unique(before, return_counts=True)
    rows_after, counts_after = np.unique(after, return_counts=True)
    at_after, at_before = _match(rows_before, rows_after)
    common = np.minimum(counts_before[at_before], counts_after[at_after])
    counts_before[at_before] -= common
    counts_after[at_after] -= common
    lost, gained = counts_before > 0, counts_after > 0
    return (
        _locate(rows_before[lost], before),
        counts_before[lost],
        _locate(rows_after[gained], after),
        counts_after[gained],
    )


def _locate(wanted: Hashes, hashes: Hashes) -> Longs:
    """Where each of `wanted`, ascending and all there, is among `hashes`; any one of several."""
    found = np.zeros(len(wanted), np.int64)
    matching, which = _match(wanted, hashes)
    found[which] = matching
    return found


def _match(wanted: Hashes, hashes: Hashes) -> tuple[Longs, Longs]:
    """Which of `hashes` are among `wanted`, ascending: their indices here, and there."""
    if not len(wanted):
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    which = np.searchsorted(wanted, hashes)
    which[which == len(wanted)] = 0
    matching = np.flatnonzero(wanted[which] == hashes)
    return matching, which[matching]


def _count_duplicates(contents: Contents) -> Longs:
    """Rows per partition beyond the first of their key."""
    duplicates = np.zeros(len(contents.partitions), np.int64)
    for block in range(_BLOCKS if contents.keys else 0):
        rows = _select_rows(contents, block)
        keys, counts = np.unique(rows.identities, return_counts=True)
        repeated = counts > 1
        owners = rows.owners[_locate(keys[repeated], rows.identities)]
        np.add.at(duplicates, owners, counts[repeated] - 1)
    return duplicates


def _sum_by_owner(owners: NDArray[Any], values: Longs, count: int) -> Longs:
    sums = np.zeros(count, np.int64)
    np.add.at(sums, owners, values)
    return sums


def _share_nulls(contents: Contents, column: str, at: int) -> float:
    rows = int(contents.row_counts[at])
    return int(contents.nulls[column][at]) / rows if rows else 0.0


def _compute_psi_by_column(
    table: Table, before: Contents, after: Contents, at: int
) -> dict[str, float | None]:
    found: dict[str, float | None] = {}
    for rule in table.rules:
        if isinstance(rule, Drift) and rule.histogram in before.histograms:
            counts = after.histograms[rule.histogram][at, :-1].tolist()
            reference = before.histograms[rule.histogram][at, :-1].tolist()
            largest = found.setdefault(rule.column, None)
            if min(sum(counts), sum(reference)) >= MIN_VALUES:
                found[rule.column] = max(largest or 0.0, compute_psi(counts, reference))
    return found


def _choose_examples(found: _Differing, limit: int) -> _Differing:
    """Up to `limit` of each partition: the first of each kind, then the second, and so on."""
    by_kind = found.take(np.lexsort((found.kinds, found.owners)))
    turns = _rank(by_kind.owners.astype(np.int64) * len(_KINDS) + by_kind.kinds)
    by_turn = by_kind.take(np.lexsort((by_kind.kinds, turns, by_kind.owners)))
    return by_turn.take(_rank(by_turn.owners) < limit)


def _rank(groups: NDArray[Any]) -> Longs:
    """Of each element, how many of its group, ascending, come before it."""
    return np.arange(len(groups)) - np.searchsorted(groups, groups, side="left")


def _read_identities(
    contents: Contents, identities: Hashes, owners: NDArray[np.int32]
) -> dict[np.uint64, dict[str, Any]]:
    """The key columns' values of these identities, of all compared columns without a key."""
    wanted = np.sort(identities)
    table = contents.source.table
    names = tuple(contents.keys or contents.compared)
    columns = [find_column(table, name) for name in names]
    index = PartitionIndex(table, [contents.partitions[at] for at in np.unique(owners)])
    found: dict[np.uint64, dict[str, Any]] = {}
    for batch in contents.source.stream(columns, index):
        words = {name: canonicalize(batch.values[name]) for name in names}
        hashes = (
            _hash_keys(batch, words, names, index) if contents.keys else _hash_whole(batch, words)
        )
        matching, which = _match(wanted, hashes)
        distinct, first = np.unique(which, return_index=True)
        for identity, row in zip(wanted[distinct], matching[first], strict=True):
            found[identity] = {name: batch.values[name][int(row)].as_py() for name in names}
    return found
