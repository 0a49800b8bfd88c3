"""Keeps what a partition is compared with: the profiles of the others, summed up.

A fold over a range takes one partition out and puts one in per step. Medians are read from sorted
lists and histograms are added and subtracted as integers, so a step costs about the same whether
the baseline holds ten partitions or ten thousand, and the order of arrival leaves no trace.
"""

from bisect import bisect_left, insort
from collections import defaultdict
from collections.abc import Callable, Hashable, Mapping
from typing import NamedTuple

from backfill_engine.rules.measured import PartitionProfile

MIN_PARTITIONS = 4
"""With fewer there is no baseline: a median of three is one partition's word."""


class Typical(NamedTuple):
    """It is a median, and how many partitions that is of."""

    median: float
    partitions: int


class Baseline:
    """Holds profiles by partition key. Partitions without rows are kept but count as none.

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
        self._rows: list[float] = []
        self._peer_rows: dict[Hashable, list[float]] = defaultdict(list)
        self._null_shares: dict[str, list[float]] = defaultdict(list)
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
        if peers_of is None:
            return _find_typical(self._rows)
        return _find_typical(self._peer_rows[self._find_peer_group(peers_of)])

    def find_typical_null_share(self, column: str) -> Typical:
        """Finds the median share of nulls in a column, of partitions in which it was measured."""
        return _find_typical(self._null_shares[column])

    def sum_histograms(self, histogram: str, bins: int) -> tuple[list[int], int]:
        """Sums rows per bin over all partitions that have this histogram, and counts these."""
        count, total = self._histograms.get(histogram, (0, [0] * bins))
        return list(total), count

    def _count(self, key: str, profile: PartitionProfile, *, sign: int) -> None:
        if profile.rows == 0:
            return
        move = insort if sign > 0 else _remove
        move(self._rows, profile.rows)
        move(self._peer_rows[self._find_peer_group(key)], profile.rows)
        for column, nulls in profile.nulls.items():
            move(self._null_shares[column], nulls / profile.rows)
        for histogram, counts in profile.histograms.items():
            total, count = self.sum_histograms(histogram, len(counts))
            self._histograms[histogram] = (
                count + sign,
                [have + sign * rows for have, rows in zip(total, counts, strict=True)],
            )


def _find_typical(ascending: list[float]) -> Typical:
    count = len(ascending)
    if count == 0:
        return Typical(0.0, 0)
    return Typical((ascending[(count - 1) // 2] + ascending[count // 2]) / 2, count)


def _remove(ascending: list[float], value: float) -> None:
    del ascending[bisect_left(ascending, value)]
