"""Holds the part of a partition's measures that later partitions are compared with."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

NULLS, BINS = "nulls", "bins"
"""Kinds of the figures that profiles keep: null values by column, histograms by their name."""


@dataclass(frozen=True)
class PartitionProfile:
    """It is kept in the commit that published the partition.

    Attributes:
        rows: rows published.
        nulls: null values by column.
        histograms: rows per bin, nulls last, by `Drift.histogram`.
        landed_bytes: of the files that it was computed from, by suffix; empty where unknown.
    """

    rows: int
    nulls: Mapping[str, int] = field(default_factory=dict)
    histograms: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    landed_bytes: Mapping[str, int] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Gives JSON values with short names, for a commit may hold thousands of profiles."""
        values = {
            "r": self.rows,
            "n": dict(self.nulls),
            "h": {name: list(counts) for name, counts in self.histograms.items()},
        }
        return {**values, "b": dict(self.landed_bytes)} if self.landed_bytes else values

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> "PartitionProfile":
        """Reads what `to_json` gave; older commits have no bytes."""
        histograms = {name: tuple(counts) for name, counts in values["h"].items()}
        return cls(values["r"], dict(values["n"]), histograms, dict(values.get("b", {})))
