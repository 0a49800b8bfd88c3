"""Audits small chunks together, so that each costs a commit and not a pass over Spark of its own.

To plan, compile and start what computes and measures a few thousand rows takes longer than to run
it. Which verdict a partition gets does not depend on what is measured together with it.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from types import TracebackType

from backfill_engine.lake.slices import Partition
from backfill_engine.publishing.audit import Audit
from backfill_engine.publishing.inputs import PinnedInputs, find_never_landed, split_chunks

AHEAD_BYTES = 16 * 2**20
"""Most bytes of input of chunks that are audited together: what a crash may lose of work done."""

OpenAudit = Callable[[tuple[Partition, ...]], AbstractContextManager[Audit]]
"""Audits partitions, ascending; their rows stay persisted for as long as it is open."""


class AuditsAhead:
    """The audits of a step's chunks, each opened once the first of its chunks is to be published.

    As a context: whatever is open is closed with it.
    """

    def __init__(self, pinned: PinnedInputs, lots: Sequence[Sequence[Partition]] = ()) -> None:
        """Takes the inputs of the step, and the partitions to audit together, in order."""
        self.pinned = pinned
        self._lots = [tuple(lot) for lot in lots]
        self._covered: frozenset[str] = frozenset()
        self._opened = ExitStack()
        self._audit: Audit | None = None

    def __enter__(self) -> "AuditsAhead":
        """Opens nothing yet."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Forgets the rows that are persisted."""
        self.drop()

    def find(
        self, partitions: Sequence[Partition], pinned: PinnedInputs, open_audit: OpenAudit
    ) -> Audit | None:
        """Finds the audit of a chunk, among what is or can be audited together with it.

        Args:
            partitions: of the chunk, ascending; at least one.
            pinned: its inputs.
            open_audit: audits all that is to be audited together, from the inputs of the step.

        Returns:
            None where the chunk is to be audited alone: with nothing else to go with it, from
            inputs that were pinned anew, or because to audit them together failed, so that an
            error is told of the chunk that it is of.
        """
        if pinned.target is not self.pinned.target:
            return None
        keys = {partition.key for partition in partitions}
        if self._audit is None or not keys <= self._covered:
            self.drop()
            lot = next((lot for lot in self._lots if keys <= {one.key for one in lot}), ())
            left = lot[lot.index(partitions[0]) :] if lot else ()
            if len(left) <= len(keys):
                return None
            try:
                self._audit = self._opened.enter_context(open_audit(left))
            except Exception:
                self._lots.remove(lot)
                return None
            self._covered = frozenset(one.key for one in left)
        return self._audit.restrict(partitions)

    def drop(self) -> None:
        """Forgets what is audited: what comes next is audited anew."""
        self._audit, self._covered = None, frozenset()
        self._opened.close()


def gather_lots(
    pinned: PinnedInputs,
    chunks: Sequence[Sequence[Partition]],
    sizes: Mapping[str, int],
    *,
    max_partitions: int,
    max_bytes: int,
) -> list[tuple[Partition, ...]]:
    """Gathers neighbouring chunks while they are small together; a larger one stays alone.

    Args:
        pinned: the inputs of the step; partitions that never landed can't be computed.
        chunks: of a range, in order.
        sizes: bytes of input by partition key; absent ones count as 0.
        max_partitions: most partitions to work on at once.
        max_bytes: most bytes of input to work on at once.
    """
    never_landed = find_never_landed(pinned)
    bounds = {"max_partitions": max_partitions, "max_bytes": max_bytes}
    lots: list[tuple[Partition, ...]] = []
    filled = 0
    for chunk in chunks:
        for part in split_chunks(chunk, sizes, **bounds):
            landed = tuple(one for one in part if one.key not in never_landed)
            size = sum(sizes.get(one.key, 0) for one in landed)
            fits = bool(lots) and len(lots[-1]) + len(landed) <= max_partitions
            if fits and filled + size <= min(max_bytes, AHEAD_BYTES):
                lots[-1] += landed
                filled += size
            else:
                lots.append(landed)
                filled = size
    return lots
