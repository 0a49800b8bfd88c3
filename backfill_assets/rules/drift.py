"""Judges whether a column's values are distributed as before."""

import zlib
from collections.abc import Collection, Mapping, Sequence
from itertools import pairwise

from backfill_assets.rules.baseline import MIN_PARTITIONS
from backfill_assets.rules.profiles import BINS
from backfill_assets.rules.psi import MIN_VALUES, compute_psi
from backfill_assets.rules.rule import Aggregates, Findings, RowConditions, Rule, Subject
from backfill_assets.rules.sql import NUMBERS, quote_name, write_number
from backfill_assets.rules.verdicts import Check, Finding, Outcome


class Drift(Rule, check=Check.STABLE):
    """Bounds the population stability index, PSI = Σ(pᵢ-qᵢ)·ln(pᵢ/qᵢ): `drift(column)`.

    The partition is compared with its published version if there is one, else with the baseline.
    Nulls are counted but left out of the PSI: how many there are is for `Nulls` to judge, and on a
    day of cancellations (half of the flights, in a blizzard) they would drown the rest.

    Attributes:
        column: a numeric column.
        edges: ascending; n edges make n+1 bins, each from its lower edge, included.
        warn: PSI from which on it warns.
        fail: PSI from which on it fails.
        blocking: whether a failure withholds; False where the column swings by nature.
    """

    column: str
    edges: tuple[float, ...]
    warn: float = 0.1
    fail: float = 0.25
    blocking: bool = True

    @property
    def columns_needed(self) -> Mapping[str, Collection[str]]:
        """Names the column, which must be numeric."""
        return {self.column: NUMBERS}

    @property
    def histogram(self) -> str:
        """Names the column's counts over just these bins; other edges are another histogram."""
        return f"{self.column}/{zlib.crc32(repr(self.edges).encode()):08x}"

    @property
    def bins(self) -> int:
        """Tells how many counts a histogram has; the last one is of the nulls."""
        return len(self.edges) + 2

    def build_aggregates(self, rows: RowConditions) -> Aggregates:
        """Counts the rows to publish by bin; NaN is larger than any number."""
        value, edges = quote_name(self.column), [write_number(edge) for edge in self.edges]
        between = [f"{value} >= {low} AND {value} < {high}" for low, high in pairwise(edges)]
        bins = [f"{value} < {edges[0]}", *between, f"{value} >= {edges[-1]}", f"{value} IS NULL"]
        return {(BINS, self.histogram): f"array({', '.join(map(rows.count, bins))})"}

    def compare(self, histogram: Sequence[int], reference: Sequence[int]) -> float | None:
        """Computes the PSI of two histograms, without nulls; None if one has too few values."""
        if min(_count_values(histogram), _count_values(reference)) < MIN_VALUES:
            return None
        return compute_psi(histogram[:-1], reference[:-1])

    def judge(self, subject: Subject) -> Findings:
        """Judges the PSI of the values that aren't null; nothing of an emptied partition."""
        if subject.emptied:
            return
        name = f"drift({self.column})"
        histogram = subject.measured.figures.get((BINS, self.histogram), (0,) * self.bins)
        reference = subject.previous.histograms.get(self.histogram, ()) if subject.previous else ()
        whose = "its published version"
        # That may be none, or have other bins or too few values.
        if _count_values(reference) < MIN_VALUES:
            reference, count = subject.baseline.sum_histograms(self.histogram, self.bins)
            if count < MIN_PARTITIONS:
                yield Finding.without_baseline(name, count)
                return
            whose = f"the baseline of {count}"
        psi = self.compare(histogram, reference)
        if psi is None:
            fewer = min(_count_values(histogram), _count_values(reference))
            yield Finding(name, None, f"too few rows ({fewer} of {MIN_VALUES})", Outcome.PASSED)
            return
        bound = f"below {min(self.warn, self.fail)}, against {whose}"
        if self.blocking:
            bound = f"below {self.fail}, warning from {self.warn}, against {whose}"
        failed = psi >= min(self.warn, self.fail)
        outcome = Outcome.of(failed=failed, blocking=self.blocking and psi >= self.fail)
        yield Finding(name, psi, bound, outcome)


def _count_values(histogram: Sequence[int]) -> int:
    return sum(histogram[:-1])
