"""What each partition was computed from, as commits keep it: landed files, upstream checksums.

Thousands of partitions fit into one commit. The windows of neighbours overlap (a day's hours, a
week's days), so the checksum of an upstream partition stands once, and of each window only where it
begins and ends. 8,760 hours that each need the 24 up to their own take 97 bytes an hour, those that
need their own 60, and files 49.
"""

import hashlib
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from backfill_engine.lake.landing import LandedFiles


@dataclass(frozen=True)
class Consumed:
    """What one partition was computed from; nothing, where that is not known.

    Attributes:
        landed: the files of the landing zone; None of a table that reads none.
        upstream: by upstream table, the checksum of each partition that the asset's mapping gives;
            "" of one that was not published then. Of no table it is empty.
    """

    landed: LandedFiles | None = None
    upstream: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    @property
    def state(self) -> str:
        """Hashes all of it: 16 hexadecimal digits; empty where nothing is known."""
        if self.landed is None and not self.upstream:
            return ""
        parts = [self.landed.fingerprint if self.landed else ""]
        parts += [f"{table} {self.fingerprint(table)}" for table in sorted(self.upstream)]
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]

    def fingerprint(self, table: str) -> str:
        """Hashes what was read of an upstream table: 16 hexadecimal digits."""
        digest = hashlib.sha256()
        for key, checksum in sorted(self.upstream[table].items()):
            digest.update(f"{key}\0{checksum}\n".encode())
        return digest.hexdigest()[:16]


@dataclass(frozen=True)
class UpstreamRead:
    """What partitions of one commit read of one upstream table.

    Attributes:
        table: the upstream table, `layer/name`.
        checksums: by upstream key; "" where nothing was published.
        windows: by partition key, the first and the last of `checksums` that it needs; more such
            pairs where they are not neighbours, and none where it needs the one of its own key.
    """

    table: str
    checksums: Mapping[str, str]
    windows: Mapping[str, tuple[str, ...]]

    def find_window(self, key: str) -> dict[str, str]:
        """Finds the checksums that a partition of `windows` needs, by upstream key, ascending."""
        ends = self.windows[key] or (key, key)
        needed = (
            self._keys[bisect_left(self._keys, first) : bisect_right(self._keys, last)]
            for first, last in zip(ends[::2], ends[1::2], strict=True)
        )
        return {upstream: self.checksums[upstream] for run in needed for upstream in run}

    @cached_property
    def _keys(self) -> list[str]:
        return sorted(self.checksums)


@dataclass(frozen=True)
class CommitInputs:
    """What the partitions of one commit were computed from.

    Attributes:
        landed: by partition key, the landed files that it was computed from.
        upstream: what was read of each upstream table.
    """

    landed: Mapping[str, LandedFiles] = field(default_factory=dict)
    upstream: tuple[UpstreamRead, ...] = ()

    @classmethod
    def of(cls, consumed: Mapping[str, Consumed]) -> "CommitInputs":
        """Builds it from what each partition was computed from, by key."""
        tables = dict.fromkeys(table for found in consumed.values() for table in found.upstream)
        reads = (
            read
            for table in tables
            for read in _build_reads(
                table,
                {
                    key: found.upstream[table]
                    for key, found in consumed.items()
                    if table in found.upstream
                },
            )
        )
        landed = {key: found.landed for key, found in consumed.items() if found.landed}
        return cls(landed, tuple(reads))

    def find(self, key: str) -> Consumed:
        """Finds what a partition was computed from."""
        return Consumed(
            self.landed.get(key),
            {read.table: read.find_window(key) for read in self.upstream if key in read.windows},
        )

    def restrict(self, keys: Iterable[str]) -> "CommitInputs":
        """Reduces it to some of the partitions, and to what their windows need."""
        return self.of({key: self.find(key) for key in keys})


def _build_reads(table: str, windows: Mapping[str, Mapping[str, str]]) -> Iterator[UpstreamRead]:
    """Builds one, or more where an upstream partition was read at several times.

    That is so of what a rollback restores.
    """
    reads: list[tuple[dict[str, str], list[str]]] = []
    for key, window in windows.items():
        agreeing = (read for read in reads if _agree(read[0], window))
        read = next(agreeing, None)
        if read is None:
            read = {}, []
            reads.append(read)
        checksums, keys = read
        checksums.update(window)
        keys.append(key)
    for checksums, keys in reads:
        places = {key: place for place, key in enumerate(sorted(checksums))}
        ends = {key: tuple(_find_ends(sorted(windows[key]), places)) for key in keys}
        yield UpstreamRead(
            table,
            {key: checksums[key] for key in places},
            {key: () if found == (key, key) else found for key, found in ends.items()},
        )


def _agree(checksums: Mapping[str, str], window: Mapping[str, str]) -> bool:
    return all(checksums.get(key, checksum) == checksum for key, checksum in window.items())


def _find_ends(keys: Sequence[str], places: Mapping[str, int]) -> Iterator[str]:
    """Yields first and last key of each run of neighbours."""
    for number, key in enumerate(keys):
        if number == 0 or places[key] != places[keys[number - 1]] + 1:
            yield key
        if number == len(keys) - 1 or places[keys[number + 1]] != places[key] + 1:
            yield key
