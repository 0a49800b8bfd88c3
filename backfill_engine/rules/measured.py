"""Holds what is measured of one partition before it is published. It is pure data.

Also the profile, which is the part that later partitions are compared with, and what is known of
the files that a partition is computed from.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

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

    def profile(self) -> "PartitionProfile":
        """Extracts what later partitions are compared with."""
        nulls, histograms = self._find_by_kind(NULLS), self._find_by_kind(BINS)
        return PartitionProfile(self.rows, nulls, histograms, self.kept_bytes)

    @property
    def kept_bytes(self) -> Mapping[str, int]:
        """Bytes of files that all rows are of; none where rows of other files stay beside them."""
        return {} if self.kept else self.landed_bytes

    def _find_by_kind(self, wanted: str) -> dict[str, Any]:
        return {name: value for (kind, name), value in self.figures.items() if kind == wanted}


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


@dataclass(frozen=True)
class Landed:
    """What the landing zone holds of one partition, beside its records.

    Attributes:
        evidence: what says that it is meant to have no records, in words; empty where nothing does.
        lack: why it may have none without that being meant, in words, where there is no evidence.
        cure: what would be evidence, in words.
        not_read: what lies there and isn't read, each with the reason.
        repeated: files that hold the same content as another, each with that.
        unfinished: why more of it is yet to land; empty if it is all there.
        bytes: of its files, by suffix; only of files that are wholly the partition's.
    """

    evidence: str = ""
    lack: str = ""
    cure: str = ""
    not_read: tuple[str, ...] = ()
    repeated: tuple[str, ...] = ()
    unfinished: str = ""
    bytes: Mapping[str, int] = field(default_factory=dict)

    @property
    def why_empty(self) -> str:
        """Why there are no records any more: the evidence; else what is lacking, and the cure."""
        accept = "or accept partition_is_complete with a reason"
        return self.evidence or f"{self.why_never_landed}, {accept}"

    @property
    def why_never_landed(self) -> str:
        """Why nothing was ever consumed: what is lacking, and the cure."""
        not_read = f" ({list_some(self.not_read)})" if self.not_read else ""
        return f"{self.lack}{not_read}: {self.cure}"


def list_some(names: tuple[str, ...] | list[str], most: int = 10) -> str:
    """Joins names for a message; of very many the first, and how many more there are."""
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
