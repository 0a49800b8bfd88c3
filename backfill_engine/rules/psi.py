"""Computes how far a distribution over fixed bins moved. It is pure arithmetic."""

import math
from collections.abc import Sequence

PRIOR_COUNT = 0.5
"""Added to each bin before shares are taken, so that an empty bin doesn't give infinity.

Half a count a bin is Jeffreys' prior for shares: its weight shrinks with the number of values; that
of a floor under the shares would not."""

MIN_VALUES = 100
"""Values that both sides need for their PSI to say anything.

Without any drift the PSI of n and m values in B bins is about chi-squared(B-1) · (1/n + 1/m), here
against a much larger m (B. Yurdakul, Statistical properties of PSI, 2018). With 7 bins, 1 in 20
partitions of 50 values would exceed 0.25 by chance alone; of 100 values that many exceed 0.13."""


def compute_psi(counts: Sequence[int], reference: Sequence[int]) -> float:
    """Computes the population stability index Σ(pᵢ-qᵢ)·ln(pᵢ/qᵢ) of two histograms.

    It is symmetric, 0 for equal counts, never negative, and finite: see `PRIOR_COUNT`.

    Args:
        counts: values per bin.
        reference: values per bin, over the same bins, of what it is compared with.

    Raises:
        ValueError: if they have no bins, or not the same number.
    """
    if not counts or len(counts) != len(reference):
        raise ValueError(f"histograms of {len(counts)} and {len(reference)} bins have no PSI")
    shares = zip(_smooth_shares(counts), _smooth_shares(reference), strict=True)
    return sum((p - q) * (math.log(p) - math.log(q)) for p, q in shares)


def _smooth_shares(counts: Sequence[int]) -> list[float]:
    total = sum(counts) + PRIOR_COUNT * len(counts)
    return [(count + PRIOR_COUNT) / total for count in counts]
