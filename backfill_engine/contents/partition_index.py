"""Which partition a row belongs to, by the canonical word of its partition column."""

from collections.abc import Iterable, Sequence

import numpy as np
import pyarrow as pa

from backfill_engine.contents.canonical_words import Longs, canonicalize, find_arrow_type
from backfill_engine.grains.grain import SliceBound
from backfill_engine.lake.partitions import Partition
from backfill_engine.tables.declarations import Column, Table


class PartitionIndex:
    """Finds the partition that a value of the partition column belongs to.

    Args:
        table: whose partition column it is.
        partitions: in any order; disjoint.

    Attributes:
        partitions: ascending; an owner is an index into them.
        starts: the canonical word of each one's first value.
    """

    def __init__(self, table: Table, partitions: Iterable[Partition]) -> None:
        by = find_column(table, table.partition_by)
        ascending = sorted(partitions, key=lambda partition: partition.slice.start)  # type: ignore[arg-type]
        self.partitions = tuple(ascending)
        self.starts = _canonicalize_bounds(by, [partition.slice.start for partition in ascending])
        self._ends = _canonicalize_bounds(by, [partition.slice.end for partition in ascending])

    def find_owners(self, words: Longs) -> Longs:
        """Finds the owner of each canonical word; -1 for those in no partition."""
        owners = np.searchsorted(self.starts, words, side="right") - 1
        owners[words >= self._ends[owners]] = -1
        return owners


def find_column(table: Table, name: str) -> Column:
    """Finds the declared column of that name."""
    return table.columns[table.column_names.index(name)]


def _canonicalize_bounds(column: Column, bounds: Sequence[SliceBound]) -> Longs:
    type_ = find_arrow_type(column)
    # The end of the last slice may be one more than the type can hold.
    return canonicalize(pa.array(bounds, pa.int64() if pa.types.is_integer(type_) else type_))
