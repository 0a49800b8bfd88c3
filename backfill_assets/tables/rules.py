"""Rules that a partition must meet to be published. Pure data; `quality.judging` applies them.

Each rule belongs to one check, which answers one question:

- `partition_is_complete`: RowCount, Reconciled
- `partition_is_valid`: Rejects, Nulls, Values; and without being declared, that the natural key is
  unique and that no declared field of the source has disappeared
- `partition_is_stable`: Drift

A failed rule that blocks withholds the partition; one that doesn't is a warning.
"""

import zlib
from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, kw_only=True)
class RowCount:
    """Rows within bounds.

    Attributes:
        at_least: lower bound; an emptied partition (its source has no records) is exempt.
        at_most: upper bound; None for none.
        ratio: bounds of rows / median rows of its peers in the baseline; the grain says which
            partitions are peers. None to not compare.
        ratio_blocks: whether the ratio withholds; the absolute bounds always do.
    """

    at_least: int = 1
    at_most: int | None = None
    ratio: tuple[float, float] | None = None
    ratio_blocks: bool = True


@dataclass(frozen=True, kw_only=True)
class Reconciled:
    """Every record of the layer above is accounted for.

    Attributes:
        total_of: the column whose sum must equal the records above; None compares
            rows + duplicates dropped + rejects.
    """

    total_of: str | None = None


@dataclass(frozen=True, kw_only=True)
class Rejects:
    """Share of source records that could not become rows."""

    at_most: float = 0.01


@dataclass(frozen=True)
class Nulls:
    """Share of nulls in a column.

    Attributes:
        column: its name.
        at_most: absolute bound, 0 to 1.
        spike: bound of the increase over the baseline's median share; None to not compare.
        blocking: whether a failure withholds.
    """

    column: str
    at_most: float = 1.0
    spike: float | None = None
    blocking: bool = True


@dataclass(frozen=True)
class Values:
    """Values that are not null lie in `low … high`, both included."""

    column: str
    low: float
    high: float
    blocking: bool = True


@dataclass(frozen=True)
class Drift:
    """Population stability index of a column over fixed bins: PSI = Σ(pᵢ-qᵢ)·ln(pᵢ/qᵢ).

    Compared with the published version of the same partition if there is one, else the baseline.
    Nulls are counted but left out of the PSI: how many there are is for `Nulls` to judge, and on a
    day of cancellations (half of the flights, in a blizzard) they would drown the rest.

    Attributes:
        column: a numeric column.
        edges: ascending; n edges make n+1 bins, each from its lower edge, included.
        warn: PSI from which on it warns.
        fail: PSI from which on it fails.
        blocking: whether a failure withholds; False where the column swings by nature.
    """

    column: str
    edges: tuple[float, ...]
    warn: float = 0.1
    fail: float = 0.25
    blocking: bool = True

    @property
    def histogram(self) -> str:
        """Names the column's counts over just these bins; other edges are another histogram."""
        return f"{self.column}/{zlib.crc32(repr(self.edges).encode()):08x}"


Rule: TypeAlias = RowCount | Reconciled | Rejects | Nulls | Values | Drift
