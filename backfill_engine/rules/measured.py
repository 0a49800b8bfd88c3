"""Holds what is measured of one partition before it is published. It is pure data.

Also the profile, which is the part that later partitions are compared with, the baseline, which
sums up profiles, and what is known of the files that a partition is computed from.
"""

from bisect import bisect_left, insort
from collections import defaultdict
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, TypeAlias

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
        duplicates_dropped: source records that another record of the same row replaced.
        identical_dropped: those of them that say the same as the record after them; None where
            the transform doesn't tell.
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
    identical_dropped: int | None = None
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
        counts = {**self._find_by_kind(NULLS_OF_MANY), **self._find_by_kind(NULLS)}
        nulls = {name: count for name, count in counts.items() if count != NOT_MEASURED}
        histograms = self._find_by_kind(BINS)
        return PartitionProfile(self.rows, nulls, histograms, self.kept_bytes)

    @property
    def kept_bytes(self) -> Mapping[str, int]:
        """Bytes of files that all rows are of; none where rows of other files stay beside them."""
        return {} if self.kept else self.landed_bytes

    def _find_by_kind(self, wanted: str) -> dict[str, Any]:
        return {name: value for (kind, name), value in self.figures.items() if kind == wanted}


NULLS, NULLS_OF_MANY, BINS = "nulls", "nulls_of_many", "bins"
"""Kinds of the figures that profiles keep: null values by column, also those that are counted only
where there are many rows, and histograms by their name."""

NOT_MEASURED = -1
"""Null values of a column in a partition with too few rows to compare others with."""


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

    def rename(self, names: Mapping[str, str]) -> "PartitionProfile":
        """Returns it with columns by other names; a histogram is called `column/bins`."""
        if not names:
            return self
        nulls = {names.get(name, name): count for name, count in self.nulls.items()}
        split = {name: name.rpartition("/") for name in self.histograms}
        histograms = {
            f"{names.get(column, column)}{slash}{bins}": self.histograms[name]
            for name, (column, slash, bins) in split.items()
        }
        return replace(self, nulls=nulls, histograms=histograms)


MIN_PARTITIONS = 4
"""With fewer there is no baseline: a median of three is one partition's word."""

_ROWS = "rows"
_MEASURED = "measured"


class Typical(NamedTuple):
    """It is a median, and how many partitions that is of."""

    median: float
    partitions: int


class Baseline:
    """Sums up what a partition is compared with: the profiles of the others, by partition key.

    Partitions without rows are kept but count as none. A fold over a range takes one partition out
    and puts one in per step. Medians are read from sorted lists and histograms are added and
    subtracted as integers, so a step costs about the same whether there are ten partitions or ten
    thousand, and the order of arrival leaves no trace.

    Args:
        profiles: to begin with.
        find_peer_group: takes a key; partitions for which it returns the same are peers, whose row
            counts are compared.
        is_lost: whether there were other partitions, of which profiles are no longer known: then
            that they are few is no reason to pass.
    """

    def __init__(
        self,
        profiles: Mapping[str, PartitionProfile],
        find_peer_group: Callable[[str], Hashable],
        *,
        is_lost: bool = False,
    ) -> None:
        self.is_lost = is_lost
        self._find_peer_group = find_peer_group
        self._profiles: dict[str, PartitionProfile] = {}
        self._ascending: dict[Hashable, list[float]] = defaultdict(list)
        self._histograms: dict[str, tuple[int, list[int]]] = {}
        for key, profile in profiles.items():
            self.put(key, profile)

    def put(self, key: str, profile: PartitionProfile) -> None:
        """Adds the profile of a partition that it doesn't hold."""
        if key in self._profiles:
            raise KeyError(f"{key} is in the baseline already")
        self._profiles[key] = profile
        self._count(key, profile, sign=1)

    def take(self, key: str) -> PartitionProfile | None:
        """Removes a partition and returns its profile; None if it doesn't hold it."""
        profile = self._profiles.pop(key, None)
        if profile is not None:
            self._count(key, profile, sign=-1)
        return profile

    def find_typical_rows(self, *, peers_of: str | None = None) -> Typical:
        """Finds the median of rows per partition, only among the peers of a key if it is given."""
        return self._find_typical(
            _ROWS if peers_of is None else (_ROWS, self._find_peer_group(peers_of))
        )

    @property
    def measured(self) -> int:
        """Counts the partitions with rows of which more is known than how many these are."""
        return len(self._ascending[_MEASURED])

    def find_typical_null_share(self, column: str) -> Typical:
        """Finds the median share of nulls in a column, of partitions in which it was measured."""
        return self._find_typical((NULLS, column))

    def sum_histograms(self, histogram: str, bins: int) -> tuple[list[int], int]:
        """Sums rows per bin over all partitions that have this histogram, and counts these."""
        count, total = self._histograms.get(histogram, (0, [0] * bins))
        return list(total), count

    def _find_typical(self, figure: Hashable) -> Typical:
        values = self._ascending[figure]
        if not values:
            return Typical(0.0, 0)
        return Typical((values[(len(values) - 1) // 2] + values[len(values) // 2]) / 2, len(values))

    def _count(self, key: str, profile: PartitionProfile, *, sign: int) -> None:
        if profile.rows == 0:
            return
        figures: dict[Hashable, float] = {
            _ROWS: profile.rows,
            (_ROWS, self._find_peer_group(key)): profile.rows,
            **{(NULLS, name): nulls / profile.rows for name, nulls in profile.nulls.items()},
        }
        if profile.nulls or profile.histograms:
            figures[_MEASURED] = 0.0
        for figure, value in figures.items():
            ascending = self._ascending[figure]
            if sign > 0:
                insort(ascending, value)
            else:
                del ascending[bisect_left(ascending, value)]
        for histogram, counts in profile.histograms.items():
            total, count = self.sum_histograms(histogram, len(counts))
            self._histograms[histogram] = (
                count + sign,
                [have + sign * rows for have, rows in zip(total, counts, strict=True)],
            )


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
