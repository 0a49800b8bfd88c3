"""Quantiles of values that count several times."""

from collections.abc import Sequence
from itertools import accumulate


def find_quantile(weighted: Sequence[tuple[float, int]], share: float) -> float:
    """Finds the least value that `share` of the weight does not exceed; 0 of none.

    The quantile "inverted distribution function" of Hyndman and Fan (1996), definition 1.

    Args:
        weighted: values and their weights, integers above 0.
        share: above 0, up to 1.
    """
    ordered = sorted(weighted)
    total = sum(weight for _, weight in ordered)
    sums = accumulate(weight for _, weight in ordered)
    reached = (
        value for (value, _), sum_ in zip(ordered, sums, strict=True) if sum_ >= share * total
    )
    return next(reached, 0.0)
