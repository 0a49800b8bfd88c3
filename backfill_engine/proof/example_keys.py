"""Names some of the keys that differ between two contents (see `contents.partition_contents`)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from backfill_engine.contents.canonical_words import Longs, canonicalize
from backfill_engine.contents.partition_contents import Contents, hash_keys, hash_whole
from backfill_engine.contents.partition_index import PartitionIndex, find_column
from backfill_engine.proof.row_comparison import Differing, find_differing

Difference: TypeAlias = Literal["missing", "extra", "changed"]
"""Of a key: only before, only after, or on both sides with different values."""

_KINDS: tuple[Difference, ...] = ("changed", "missing", "extra")


@dataclass(frozen=True)
class ExampleKey:
    """A key that differs: the values of the key columns, of all compared columns without a key."""

    difference: Difference
    values: Mapping[str, Any]


def find_example_keys(
    before: Contents, after: Contents, *, limit: int = 5
) -> dict[str, tuple[ExampleKey, ...]]:
    """Names some keys that differ.

    Reads the partitions that differ again, their key columns alone.

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
    found = _choose_examples(find_differing(before, after), limit)
    lost = found.lost > 0
    values = {
        **_read_identities(before, found.take(lost)),
        **_read_identities(after, found.take(~lost)),
    }
    examples: dict[str, list[ExampleKey]] = {}
    for identity, owner, kind in zip(
        found.identities, found.owners, _find_kinds(found), strict=True
    ):
        if identity in values:  # else the golden data set was changed meanwhile
            key = before.partitions[owner].key
            examples.setdefault(key, []).append(ExampleKey(_KINDS[kind], values[identity]))
    return {key: tuple(found) for key, found in examples.items()}


def _find_kinds(found: Differing) -> Longs:
    """Finds the kind of each difference, as indices into `_KINDS`."""
    return np.select([found.gained == 0, found.lost == 0], [1, 2], 0)


def _choose_examples(found: Differing, limit: int) -> Differing:
    """Chooses up to `limit` of each partition.

    These are the first of each kind, then the second, and so on.
    """
    kinds = _find_kinds(found)
    order = np.lexsort((kinds, found.owners))
    by_kind, kinds = found.take(order), kinds[order]
    turns = _rank(by_kind.owners.astype(np.int64) * len(_KINDS) + kinds)
    by_turn = by_kind.take(np.lexsort((kinds, turns, by_kind.owners)))
    return by_turn.take(_rank(by_turn.owners) < limit)


def _rank(groups: NDArray[Any]) -> Longs:
    """Counts for each element how many of its group come before it; groups are ascending."""
    return np.arange(len(groups)) - np.searchsorted(groups, groups, side="left")


def _read_identities(contents: Contents, wanted: Differing) -> dict[np.uint64, dict[str, Any]]:
    """Reads the key columns' values of these identities, by identity.

    Without a key these are the values of all compared columns.
    """
    table = contents.source.table
    names = contents.keys or contents.compared
    columns = [find_column(table, name) for name in names]
    index = PartitionIndex(table, [contents.partitions[at] for at in np.unique(wanted.owners)])
    found: dict[np.uint64, dict[str, Any]] = {}
    for batch in contents.source.stream(columns, index):
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
