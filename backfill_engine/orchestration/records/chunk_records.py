"""A record of each chunk of a step: what it was, when, and what came of it."""

import datetime as dt
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from backfill_engine.lake.partitions import Partition
from backfill_engine.proof.certificates import CertifiedChunk
from backfill_engine.publishing.results import PartitionResult

_NOTHING = "none"


@dataclass(frozen=True)
class _BegunChunk:
    keys: frozenset[str]
    first: str
    last: str
    started_at: dt.datetime
    completed_at: dt.datetime | None = None
    error: str = ""


@dataclass
class ChunkRecords:
    """The chunks that a step has begun; filled while it runs.

    Attributes:
        write_mode: of the run.
    """

    write_mode: str
    _begun: list[_BegunChunk] = field(default_factory=list)

    def begin(self, partitions: Sequence[Partition]) -> None:
        """Notes that a chunk begins."""
        keys = frozenset(partition.key for partition in partitions)
        chunk = _BegunChunk(keys, partitions[0].key, partitions[-1].key, dt.datetime.now(tz=dt.UTC))
        self._begun.append(chunk)

    def note(self, results: Iterable[PartitionResult]) -> None:
        """Notes that there are results; the chunk which began last is done once it has all."""
        if self._begun and self._begun[-1].keys <= {result.key for result in results}:
            self.end()

    def end(self, error: str = "") -> None:
        """Notes that the chunk which began last is done, or what ended it; what is said first."""
        chunk = self._begun[-1]
        if chunk.completed_at is None:
            now = dt.datetime.now(tz=dt.UTC)
            self._begun[-1] = replace(chunk, completed_at=now, error=error)

    def describe(self, results: Iterable[PartitionResult]) -> list[CertifiedChunk]:
        """Describes the chunks, in order, by what came of their partitions so far."""
        by_key = {result.key: result for result in results}
        return [
            self._describe(chunk, [by_key[key] for key in chunk.keys if key in by_key])
            for chunk in self._begun
        ]

    def _describe(self, chunk: _BegunChunk, results: Sequence[PartitionResult]) -> CertifiedChunk:
        written = [result for result in results if result.is_written]
        withheld = [result for result in results if result.version is None and not result.failed]
        return CertifiedChunk(
            first=chunk.first,
            last=chunk.last,
            operation_type=self.write_mode if written else _NOTHING,
            status=_find_status(chunk, results, written),
            started_at=chunk.started_at.isoformat(timespec="milliseconds"),
            completed_at=chunk.completed_at.isoformat(timespec="milliseconds")
            if chunk.completed_at
            else None,
            partitions=len(chunk.keys),
            published=len(written),
            withheld=len(withheld),
            rows=sum(result.measures.rows for result in written),
            error=chunk.error,
        )


def _find_status(
    chunk: _BegunChunk, results: Sequence[PartitionResult], written: Sequence[PartitionResult]
) -> str:
    if chunk.completed_at is None:
        return "at work"
    if chunk.error:
        return "failed"
    held_back = [result for result in results if result.version is None]
    if held_back:
        return "partly published" if len(held_back) < len(results) else "withheld"
    return "published" if written else "already published"
