"""The figures: seconds per variant and range, and the ratios that the targets are about. Pure."""

import datetime as dt
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from benchmarks.machine import Machine
from benchmarks.variants import BARE_DAILY, BARE_RANGE, DAGSTER_EMPTY, DAGSTER_RANGE, VARIANTS

MOST_OVER_BARE = 1.15
LEAST_OVER_RANGE = 3.5

Seconds = Mapping[tuple[str, int], Sequence[float]]
"""Wall seconds of each repeat, by variant name and days."""

_SUMMARIES: dict[str, Callable[[Sequence[float]], float]] = {
    "min": min,
    "median": statistics.median,
}


@dataclass(frozen=True)
class Comparison:
    """A ratio of the figures, next to what it should be.

    Attributes:
        name: the ratio in the letters of the variants.
        days: length of the range; None where two lengths are compared.
        min: from the fastest repeats; None if a variant was left out.
        median: from the medians.
        target: what the ratio should be, None if nothing was promised.
        met: whether the median keeps the target, None without a target or a figure.
    """

    name: str
    days: int | None
    min: float | None
    median: float | None
    target: str | None = None
    met: bool | None = None


def build_results(seconds: Seconds, machine: Machine, *, date: dt.date) -> dict[str, Any]:
    """Everything that the report shows, as plain JSON values."""
    days = sorted({days for _, days in seconds})
    comparisons = [one for length in days for one in _compare_variants(seconds, length)]
    if len(days) > 1:
        comparisons += _compare_growth(seconds, days[0], days[-1])
    return {
        "date": date.isoformat(),
        "machine": asdict(machine),
        "runs": [
            {
                "variant": variant.name,
                "letter": variant.letter,
                "label": variant.label,
                "days": length,
                "seconds": [round(one, 2) for one in taken],
                **{name: round(of(taken), 2) for name, of in _SUMMARIES.items()},
            }
            for length in days
            for variant in sorted(VARIANTS, key=lambda one: one.letter)
            if (taken := seconds.get((variant.name, length)))
        ],
        "comparisons": [asdict(one) for one in comparisons],
    }


def _compare_variants(seconds: Seconds, days: int) -> list[Comparison]:
    def summarize(of: Callable[[Sequence[float]], float]) -> tuple[float | None, float | None]:
        a, b, c, d = (
            of(taken) if (taken := seconds.get((variant.name, days))) else None
            for variant in (BARE_RANGE, DAGSTER_RANGE, BARE_DAILY, DAGSTER_EMPTY)
        )
        own = (b - d) / a if a and b and d else None
        return own, c / b if b and c else None

    (own_min, daily_min), (own_median, daily_median) = map(summarize, _SUMMARIES.values())
    found = [
        Comparison(
            "(b − d) / a",
            days,
            _round(own_min),
            _round(own_median),
            target=f"≤ {MOST_OVER_BARE}",
            met=None if own_median is None else own_median <= MOST_OVER_BARE,
        )
    ]
    if not BARE_DAILY.longest_days or days <= BARE_DAILY.longest_days:
        found.append(
            Comparison(
                "c / b",
                days,
                _round(daily_min),
                _round(daily_median),
                target=f"≥ {LEAST_OVER_RANGE}",
                met=None if daily_median is None else daily_median >= LEAST_OVER_RANGE,
            )
        )
    return found


def _compare_growth(seconds: Seconds, shorter: int, longer: int) -> list[Comparison]:
    found = []
    for variant in sorted(VARIANTS, key=lambda one: one.letter):
        few, many = (seconds.get((variant.name, days)) for days in (shorter, longer))
        if few and many:
            fastest, middle = (_round(of(many) / of(few)) for of in _SUMMARIES.values())
            name = f"{variant.letter}: {longer} days / {shorter} days"
            found.append(Comparison(name, None, fastest, middle))
    return found


def _round(ratio: float | None) -> float | None:
    return None if ratio is None else round(ratio, 2)
