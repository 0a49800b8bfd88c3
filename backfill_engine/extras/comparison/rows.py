"""Compares rows, null shares and distributions of two contents: `contents.partition_contents`."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from backfill_engine.contents.canonical_words import Hashes, Longs
from backfill_engine.extras.comparison.contents import Contents
from backfill_engine.rules.drift import Drift

# Comparing sorts copies of the hashes; of a block at a time, so that there are few of them.
_BLOCKS = 16


@dataclass(frozen=True)
class PartitionDiff:
    """How a partition differs between two contents; of equal ones only their rows are counted.

    Attributes:
        rows_before: rows.
        rows_after: rows.
        added: rows only after.
        removed: rows only before.
        changed: rows on both sides with the same key, but not equal; 0 without a key.
        duplicates: rows after, beyond the first of their key, 0 without a key; None where rows
            weren't compared.
        null_shares: shares of nulls (0 to 1) before and after, by column; only of columns that have
            any on either side.
        psi: population stability index between before and after, by column with a `Drift` rule
            (the largest, if it has several); None where a side has too few values to say.
        same: rows on both sides, equal in all compared columns; None where rows weren't compared.
    """

    rows_before: int
    rows_after: int
    added: int = 0
    removed: int = 0
    changed: int = 0
    duplicates: int | None = None
    null_shares: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    psi: Mapping[str, float | None] = field(default_factory=dict)
    same: int | None = None

    @property
    def mismatches(self) -> int:
        """Rows that are not the same on both sides."""
        return self.added + self.removed + self.changed

    @property
    def equal(self) -> bool:
        """Whether both sides hold the same rows, each as often."""
        return not self.mismatches


class Differing(NamedTuple):
    """Identities (see `Contents`) that differ, and the rows of each that don't cancel out.

    Attributes:
        identities: distinct.
        owners: the index of each one's partition.
        lost: rows only before.
        gained: rows only after.
    """

    identities: Hashes
    owners: NDArray[np.int32]
    lost: Longs
    gained: Longs

    def take(self, at: NDArray[Any]) -> "Differing":
        """Takes those at these indices, or where a mask is true."""
        return Differing._make(part[at] for part in self)


def compare_contents(before: Contents, after: Contents) -> dict[str, PartitionDiff]:
    """Compares row by row, as multisets, and null shares and distributions.

    Rows equal in all compared columns cancel out, each as often as both sides have it. Of what is
    left, rows with the same key on both sides are `changed`, the others `removed` or `added`. While
    it runs it takes about 8 bytes a row beside the contents, and 60 if every row differs.

    Args:
        before: of the same partitions, keys and columns as `after`; the `Drift` rules of its table
            apply.
        after: what is judged.

    Returns:
        By partition key, partitions ascending.

    Raises:
        ValueError: if the two aren't of the same partitions, keys and columns.
    """
    found = find_differing(before, after)
    both = np.minimum(found.lost, found.gained)
    count = len(before.partitions)
    changed = _sum_by_group(found.owners, both, count)
    removed = _sum_by_group(found.owners, found.lost - both, count)
    added = _sum_by_group(found.owners, found.gained - both, count)
    duplicates = count_duplicates(after)
    return {
        partition.key: PartitionDiff(
            rows_before=int(before.row_counts[at]),
            rows_after=int(after.row_counts[at]),
            added=int(added[at]),
            removed=int(removed[at]),
            changed=int(changed[at]),
            duplicates=int(duplicates[at]),
            null_shares=_share_nulls_by_column(before, after, at),
            psi=_compute_psi_by_column(before, after, at),
            same=int(before.row_counts[at] - removed[at] - changed[at]),
        )
        for at, partition in enumerate(before.partitions)
    }


def find_differing(before: Contents, after: Contents) -> Differing:
    """Cancels out equal rows, and groups the others by identity.

    Raises:
        ValueError: as `compare_contents`.
    """
    for what in ("partitions", "keys", "compared"):
        if getattr(before, what) != getattr(after, what):
            raise ValueError(f"contents differ in their {what}, and can't be compared")
    blocks = [_find_differing_in_block(before, after, block) for block in range(_BLOCKS)]
    return Differing._make(np.concatenate(parts) for parts in zip(*blocks, strict=True))


def count_duplicates(contents: Contents) -> Longs:
    """Counts rows beyond the first of their key, per partition, ascending; 0 without a key."""
    duplicates = np.zeros(len(contents.partitions), np.int64)
    for block in range(_BLOCKS if contents.keys else 0):
        at = _select_block(contents, block)
        _, first, counts = np.unique(contents.identities[at], return_index=True, return_counts=True)
        np.add.at(duplicates, contents.owners[at[first]], counts - 1)
    return duplicates


def _find_differing_in_block(before: Contents, after: Contents, block: int) -> Differing:
    older, newer = _select_block(before, block), _select_block(after, block)
    _, row, which = np.unique(
        np.concatenate([before.row_hashes[older], after.row_hashes[newer]]),
        return_index=True,
        return_inverse=True,
    )
    more = np.bincount(which[len(older) :], minlength=len(row))
    more -= np.bincount(which[: len(older)], minlength=len(row))
    row, more = row[more != 0], more[more != 0]
    identities, first, which = np.unique(
        np.concatenate([before.identities[older], after.identities[newer]])[row],
        return_index=True,
        return_inverse=True,
    )
    owners = np.concatenate([before.owners[older], after.owners[newer]])[row[first]]
    lost = _sum_by_group(which, np.maximum(-more, 0), len(identities))
    gained = _sum_by_group(which, np.maximum(more, 0), len(identities))
    return Differing(identities, owners, lost, gained)


def _select_block(contents: Contents, block: int) -> Longs:
    """Finds where the rows of one of `_BLOCKS` ranges of identities are.

    All rows of a key are in one.
    """
    width = 2**64 // _BLOCKS
    first, last = np.uint64(block * width), np.uint64(block * width + width - 1)
    return np.flatnonzero((contents.identities >= first) & (contents.identities <= last))


def _sum_by_group(groups: NDArray[Any], values: Longs, count: int) -> Longs:
    sums = np.zeros(count, np.int64)
    np.add.at(sums, groups, values)
    return sums


def _share_nulls_by_column(
    before: Contents, after: Contents, at: int
) -> dict[str, tuple[float, float]]:
    shares = {
        name: tuple(_share_nulls(contents, name, at) for contents in (before, after))
        for name in before.compared
    }
    return {name: (old, new) for name, (old, new) in shares.items() if old or new}


def _share_nulls(contents: Contents, column: str, at: int) -> float:
    return int(contents.nulls[column][at]) / max(1, int(contents.row_counts[at]))


def _compute_psi_by_column(before: Contents, after: Contents, at: int) -> dict[str, float | None]:
    found: dict[str, float | None] = {}
    for rule in before.table.rules:
        if isinstance(rule, Drift) and rule.histogram in before.histograms:
            name = rule.histogram
            older, newer = (side.histograms[name][at].tolist() for side in (before, after))
            psi, largest = rule.compare(newer, older), found.get(rule.column)
            found[rule.column] = largest if psi is None else max(largest or 0.0, psi)
    return found
