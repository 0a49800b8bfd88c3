"""How long a step will take, by how long such steps took: seconds a step, and a partition."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from backfill_assets.health.outcomes import Outcome
from backfill_assets.health.quantiles import find_quantile


@dataclass(frozen=True)
class Estimate:
    """How long the steps of one table will take, one after the other.

    Attributes:
        seconds: by the line through earlier steps.
        low: seconds, if it is as far below the line as a tenth of them were.
        high: likewise above.
        steps: how many earlier ones it goes by.
        off_by: factor by which half of the earlier estimates were wrong at most, 1 or more; where
            there is none, by which half of these steps would have been.
        foretold: how many earlier estimates that is of.
    """

    seconds: float
    low: float
    high: float
    steps: int
    off_by: float
    foretold: int = 0


def estimate_seconds(
    outcomes: Sequence[Outcome], runs: Sequence[int], foretold: Sequence[float] = ()
) -> Estimate | None:
    """Estimates the steps of some runs; None without an earlier step that worked on any partition.

    A line of least squares, seconds over partitions, neither part of which is below zero. Where
    nothing was foretold, earlier steps are held against the line of all of them, which flatters it
    where they are few.

    Args:
        outcomes: of earlier steps of the same table.
        runs: how many partitions each is of.
        foretold: how many times as long as was estimated earlier ones took.
    """
    counts = np.array([one.published + one.withheld for one in outcomes], dtype=float)
    took = np.array([one.seconds for one in outcomes], dtype=float)
    counts, took = counts[counts > 0], took[counts > 0]
    if not len(counts):
        return None
    base, each = _fit_line(counts, took)
    expected = base + each * counts
    ratios = [(float(ratio), 1) for ratio in took / np.maximum(expected, 1e-3)]
    held_against = [(ratio, 1) for ratio in foretold] or ratios
    seconds = base * len(runs) + each * sum(runs)
    return Estimate(
        seconds=seconds,
        low=seconds * find_quantile(ratios, 0.1),
        high=seconds * find_quantile(ratios, 0.9),
        steps=len(ratios),
        off_by=find_quantile(
            [(max(ratio, 1 / max(ratio, 1e-3)), 1) for ratio, _ in held_against], 0.5
        ),
        foretold=len(foretold),
    )


def _fit_line(counts: "np.ndarray", took: "np.ndarray") -> tuple[float, float]:
    """Fits seconds a step and seconds a partition, both at least 0."""
    if len(set(counts.tolist())) == 1:
        return float(took.mean()), 0.0
    each, base = (float(one) for one in np.polyfit(counts, took, 1))
    if each < 0:
        return float(took.mean()), 0.0
    if base < 0:
        return 0.0, float((counts * took).sum() / (counts**2).sum())
    return base, each
