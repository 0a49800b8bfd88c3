"""Holds what is measured of one partition before it is published. It is pure data."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from backfill_engine.rules.profiles import BINS, NULLS, PartitionProfile

Figure: TypeAlias = tuple[str, str]
"""Names what a rule measures: its kind, such as `nulls`, and of what, such as a column."""


@dataclass(frozen=True)
class PartitionMeasures:
    """Says what one partition holds; all is zero where it has no rows.

    Attributes:
        rows: rows to publish.
        checksum: see `contents.checksums`.
        rejects: source records that can't become rows.
        rejects_before_first: those of them whose reason is `BEFORE_FIRST_PARTITION`.
        kept: rows of these that were published before and stay.
        filtered_out: computed rows that a filter leaves out.
        duplicates_dropped: source records that a later version of the same row replaced.
        key_duplicates: rows whose natural key another row has too, beyond the first.
        figures: what the rules asked for (`Rule.build_aggregates`): numbers, and arrays as tuples;
            0 for null. Empty for a partition without rows.
        fields_seen: fields that any good source record had; None where none was parsed.
        landed_bytes: of the files that it was computed from, by suffix; empty where unknown.
    """

    rows: int = 0
    checksum: str = "0" * 16
    rejects: int = 0
    rejects_before_first: int = 0
    kept: int = 0
    filtered_out: int = 0
    duplicates_dropped: int = 0
    key_duplicates: int = 0
    figures: Mapping[Figure, Any] = field(default_factory=dict)
    fields_seen: frozenset[str] | None = None
    landed_bytes: Mapping[str, int] = field(default_factory=dict)

    @property
    def computed(self) -> int:
        """Counts the rows that the run computed, whether they are to be published or not."""
        return self.rows - self.kept + self.filtered_out

    def profile(self) -> PartitionProfile:
        """Extracts what later partitions are compared with."""
        nulls, histograms = self._find_by_kind(NULLS), self._find_by_kind(BINS)
        return PartitionProfile(self.rows, nulls, histograms, self.kept_bytes)

    @property
    def kept_bytes(self) -> Mapping[str, int]:
        """Bytes of files that all rows are of; none where rows of other files stay beside them."""
        return {} if self.kept else self.landed_bytes

    def _find_by_kind(self, wanted: str) -> dict[str, Any]:
        return {name: value for (kind, name), value in self.figures.items() if kind == wanted}
