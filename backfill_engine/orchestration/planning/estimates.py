"""How long a step will take, by how long such steps took: seconds a step, a chunk, a partition."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from backfill_engine.orchestration.planning.outcomes import Outcome, find_quantile


@dataclass(frozen=True)
class Estimate:
    """How long the steps of one table will take, or those of several, one after the other.

    Attributes:
        seconds: as earlier steps took for as many steps, chunks and partitions.
        low: seconds, if it is as far below that as a tenth of them were.
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
    outcomes: Sequence[Outcome],
    runs: Sequence[int],
    foretold: Sequence[float] = (),
    *,
    chunks: int = 0,
) -> Estimate | None:
    """Estimates the steps of some runs; None without an earlier step that worked on any partition.

    Least squares over earlier steps: seconds a step, a further chunk of it, and a partition, none
    of them below zero. What earlier steps don't tell apart costs nothing: where none had chunks,
    a further one. Where nothing was foretold, earlier steps are held against what fits all of them,
    which flatters it where they are few.

    Args:
        outcomes: of earlier steps of the same table.
        runs: how many partitions each is of.
        foretold: how many times as long as was estimated earlier ones took.
        chunks: of all runs; 0 if each is one.
    """
    worked = [one for one in outcomes if one.published + one.withheld]
    if not worked:
        return None
    shapes = np.array([(1, one.chunks - 1, one.published + one.withheld) for one in worked], float)
    took = np.array([one.seconds for one in worked], dtype=float)
    costs = _fit_costs(shapes, took)
    ratios = [(float(ratio), 1) for ratio in took / np.maximum(shapes @ costs, 1e-3)]
    held_against = [(ratio, 1) for ratio in foretold] or ratios
    shape = (len(runs), max(chunks - len(runs), 0), sum(runs))
    seconds = float(np.array(shape) @ costs)
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


def add_estimates(estimates: Sequence[Estimate | None]) -> Estimate | None:
    """Adds up what tables take that go one after the other; None if nothing is known of any.

    The lows are added up, and so are the highs: what makes a step slow is the machine and its load,
    which all tables have in common, so that they are slow together; then quantiles add up (J.
    Dhaene et al., "The concept of comonotonicity in actuarial science and finance: theory",
    Insurance: Mathematics and Economics 31, 2002). Adding squares, as of tables that vary each by
    itself, would promise too much where they don't.

    The factors are averaged, weighted by seconds: a total of tables of which each is off by its
    factor at most is off by no more than that, in either direction (Jensen's inequality).
    """
    known = [one for one in estimates if one is not None]
    if not known or len(known) < len(estimates):
        return None
    seconds = sum(one.seconds for one in known)
    weights = [one.seconds if seconds else 1.0 for one in known]
    off_by = sum(one.off_by * weight for one, weight in zip(known, weights, strict=True))
    return Estimate(
        seconds=seconds,
        low=sum(one.low for one in known),
        high=sum(one.high for one in known),
        steps=sum(one.steps for one in known),
        off_by=off_by / sum(weights),
        foretold=sum(one.foretold for one in known),
    )


def _fit_costs(shapes: "np.ndarray", took: "np.ndarray") -> "np.ndarray":
    """Fits what each column of the shapes costs, at least 0, by as few columns as fit as well.

    Three columns have few choices of those that count: the best of all that cost nothing negative.
    """
    width = shapes.shape[1]
    best, least = np.zeros(width), float("inf")
    for some in (chosen for n in range(1, width + 1) for chosen in combinations(range(width), n)):
        columns = shapes[:, some]
        if np.linalg.matrix_rank(columns) < len(some):
            continue
        fitted = np.linalg.lstsq(columns, took, rcond=None)[0]
        off = float(((took - columns @ fitted) ** 2).sum())
        if (fitted >= 0).all() and off < least - 1e-9 * float((took**2).sum()):
            best, least = np.zeros(width), off
            best[list(some)] = fitted
    return best
