"""Bounds of what a rehearsal may change, before a person is asked."""

from collections.abc import Iterator
from dataclasses import dataclass

from backfill_engine.proof.row_comparison import PartitionDiff


@dataclass(frozen=True)
class Gates:
    """Bounds for each partition; None is no bound.

    Attributes:
        max_changed_share: of its rows that are added, removed or changed, 0 to 1, of the more of
            those before and after.
        max_psi: of any of its columns with a drift rule, against what is published.
    """

    max_changed_share: float | None = None
    max_psi: float | None = None

    def find_exceeded(self, diff: PartitionDiff) -> Iterator[str]:
        """Says in words which bounds a partition's difference exceeds."""
        share = find_changed_share(diff)
        if self.max_changed_share is not None and share > self.max_changed_share:
            yield f"{share:.1%} of its rows differ (at most {self.max_changed_share:.1%})"
        for column, psi in diff.psi.items():
            if self.max_psi is not None and psi is not None and psi > self.max_psi:
                yield f"PSI of {column} is {psi:.3f} (at most {self.max_psi:g})"


def find_changed_share(diff: PartitionDiff) -> float:
    """Finds the share of rows that differ, 0 to 1, of the more of those before and after."""
    rows = max(diff.rows_before, diff.rows_after)
    differing = max(diff.added, diff.removed) + diff.changed
    return differing / rows if rows else 0.0
