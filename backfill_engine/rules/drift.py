"""Judges whether a column's values are distributed as before."""

import math
import zlib
from collections.abc import Collection, Mapping, Sequence
from itertools import pairwise

from backfill_engine.rules.finding_names import FindingName
from backfill_engine.rules.measured import BINS, MIN_PARTITIONS
from backfill_engine.rules.rule import (
    INTEGERS,
    NUMBERS,
    Aggregates,
    Findings,
    RowConditions,
    Rule,
    Subject,
    add_reason,
    quote_name,
    write_number,
    write_text,
)
from backfill_engine.rules.verdicts import Check, Finding, Outcome

DRIFT = FindingName(
    "drift",
    Check.STABLE,
    meaning=(
        "PSI of the column's values over fixed bins or names, against the partition's published "
        "version, else the baseline"
    ),
    bound="below `warn`; from `fail` on withheld, unless it only warns",
    cure="look which bins changed: another unit, lost or new names; accept a real change",
)


class Drift(Rule, check=Check.STABLE):
    """Bounds the population stability index, PSI = Σ(pᵢ-qᵢ)·ln(pᵢ/qᵢ): `drift(column)`.

    The partition is compared with its published version if there is one, else with the baseline.
    Nulls are counted but left out of the PSI: how many there are is for `Nulls` to judge, and on a
    day of cancellations (half of the flights, in a blizzard) they would drown the rest.

    Attributes:
        column: a numeric column, or one of names.
        edges: ascending numbers, of which n make n+1 bins, each from its lower edge, included; or
            names, a bin each, and one for all others.
        warn: PSI from which on it warns.
        fail: PSI from which on it withholds, if it doesn't only warn.
        only_warns: why it never withholds, as of a column that swings by nature; empty if it
            does.
        weight: a column of integers, of which each row counts so many values, as of a row that
            sums up many; None for one value a row.
    """

    column: str
    edges: tuple[float, ...] | tuple[str, ...]
    warn: float = 0.1
    fail: float = 0.25
    only_warns: str = ""
    weight: str | None = None

    @property
    def columns_needed(self) -> Mapping[str, Collection[str]]:
        """Names the column, of numbers or of names, and that of the weights."""
        named = any(isinstance(edge, str) for edge in self.edges)
        column = {self.column: {"STRING"} if named else NUMBERS}
        return column if self.weight is None else {**column, self.weight: INTEGERS}

    @property
    def histogram(self) -> str:
        """Names the column's counts over just these bins; other edges are another histogram."""
        bins = self.edges if self.weight is None else (self.edges, self.weight)
        return f"{self.column}/{zlib.crc32(repr(bins).encode()):08x}"

    @property
    def bins(self) -> int:
        """Tells how many counts a histogram has; the last one is of the nulls."""
        return len(self.edges) + 2

    def build_aggregates(self, rows: RowConditions) -> Aggregates:
        """Counts the rows to publish by bin, or sums up their weights."""
        value = quote_name(self.column)
        counts = (
            rows.count(condition) if self.weight is None else rows.sum(self.weight, condition)
            for condition in (*_write_bins(value, self.edges), f"{value} IS NULL")
        )
        return {(BINS, self.histogram): f"array({', '.join(counts)})"}

    def compare(self, histogram: Sequence[int], reference: Sequence[int]) -> float | None:
        """Computes the PSI of two histograms, without nulls; None if one has too few values."""
        if min(_count_values(histogram), _count_values(reference)) < MIN_VALUES:
            return None
        return compute_psi(histogram[:-1], reference[:-1])

    def judge(self, subject: Subject) -> Findings:
        """Judges the PSI of the values that aren't null; nothing of an emptied partition."""
        if subject.emptied:
            return
        name = DRIFT.of(self.column)
        histogram = subject.measured.figures.get((BINS, self.histogram), (0,) * self.bins)
        reference = subject.previous.histograms.get(self.histogram, ()) if subject.previous else ()
        whose = "its published version"
        # That may be none, or have other bins or too few values.
        if _count_values(reference) < MIN_VALUES:
            reference, count = subject.baseline.sum_histograms(self.histogram, self.bins)
            if count < MIN_PARTITIONS:
                yield subject.without_baseline(name, count, blocking=not self.only_warns)
                return
            whose = f"the baseline of {count}"
        psi = self.compare(histogram, reference)
        if psi is None:
            fewer = min(_count_values(histogram), _count_values(reference))
            yield Finding(name, None, f"too few rows ({fewer} of {MIN_VALUES})", Outcome.PASSED)
            return
        bound = f"below {self.fail}, warning from {self.warn}, against {whose}"
        if self.only_warns:
            bound = add_reason(f"below {self.warn}, against {whose}", self.only_warns)
        withheld = not self.only_warns and psi >= self.fail
        outcome = Outcome.of(failed=withheld or psi >= self.warn, blocking=withheld)
        yield Finding(name, psi, bound, outcome)


def _write_bins(value: str, edges: Sequence[float | str]) -> list[str]:
    """Writes the SQL condition of each bin; NaN is larger than any number."""
    names = [write_text(edge) for edge in edges if isinstance(edge, str)]
    if names:
        return [*(f"{value} = {name}" for name in names), f"{value} NOT IN ({', '.join(names)})"]
    bounds = [write_number(edge) for edge in edges if not isinstance(edge, str)]
    between = [f"{value} >= {low} AND {value} < {high}" for low, high in pairwise(bounds)]
    return [f"{value} < {bounds[0]}", *between, f"{value} >= {bounds[-1]}"]


def _count_values(histogram: Sequence[int]) -> int:
    return sum(histogram[:-1])


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
