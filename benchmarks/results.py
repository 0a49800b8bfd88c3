"""The figures: seconds per variant and range, and the ratios that the targets are about. Pure."""

import datetime as dt
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from benchmarks.empty_assets import count_evaluations
from benchmarks.machine import Machine
from benchmarks.variants import (
    BARE_DAILY,
    BARE_RANGE,
    DAGSTER_CHECKED,
    DAGSTER_EMPTY,
    DAGSTER_RANGE,
    VARIANTS,
)

MOST_OVER_BARE = 1.25
MOST_OVER_BARE_WITHOUT_EVENTS = 1.15
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
        min: from the fastest repeats.
        median: from the medians.
        target: what the ratio should be, None if nothing was promised.
        met: whether the median keeps the target, None without one.
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
    comparisons = [
        comparison for length in days for comparison in _compare_variants(seconds, length)
    ]
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
                "seconds": [round(seconds, 2) for seconds in taken],
                **{name: round(of(taken), 2) for name, of in _SUMMARIES.items()},
            }
            for length in days
            for variant in sorted(VARIANTS, key=lambda variant: variant.letter)
            if (taken := seconds.get((variant.name, length)))
        ],
        "comparisons": [asdict(comparison) for comparison in comparisons],
    }


def _compare_variants(seconds: Seconds, days: int) -> list[Comparison]:
    def summarize(of: Callable[[Sequence[float]], float]) -> dict[str, float | None]:
        a, b, c, d, e = (
            of(taken) if (taken := seconds.get((variant.name, days))) else None
            for variant in (
                BARE_RANGE,
                DAGSTER_RANGE,
                BARE_DAILY,
                DAGSTER_EMPTY,
                DAGSTER_CHECKED,
            )
        )
        evaluations = count_evaluations(days)
        return {
            "b / a": b / a if a and b else None,
            "(b − e) / a": (b - e) / a if a and b and e else None,
            "c / b": c / b if b and c else None,
            "(e − d) / evaluations, ms": (
                1000 * (e - d) / evaluations if d and e and evaluations else None
            ),
        }

    fastest, middle = (summarize(of) for of in _SUMMARIES.values())
    targets: dict[str, tuple[str, Callable[[float], bool]]] = {
        "b / a": (f"≤ {MOST_OVER_BARE}", lambda ratio: ratio <= MOST_OVER_BARE),
        "(b − e) / a": (
            f"≤ {MOST_OVER_BARE_WITHOUT_EVENTS}",
            lambda ratio: ratio <= MOST_OVER_BARE_WITHOUT_EVENTS,
        ),
        "c / b": (f"≥ {LEAST_OVER_RANGE}", lambda ratio: ratio >= LEAST_OVER_RANGE),
    }
    found = []
    for name, median in middle.items():
        if median is None:
            continue
        target, is_met = targets.get(name, (None, None))
        met = is_met(median) if is_met else None
        found.append(
            Comparison(name, days, _round(fastest[name]), _round(median), target=target, met=met)
        )
    return found


def _compare_growth(seconds: Seconds, shorter: int, longer: int) -> list[Comparison]:
    found = []
    for variant in sorted(VARIANTS, key=lambda variant: variant.letter):
        few, many = (seconds.get((variant.name, days)) for days in (shorter, longer))
        if few and many:
            fastest, middle = (_round(of(many) / of(few)) for of in _SUMMARIES.values())
            name = f"{variant.letter}: {longer} days / {shorter} days"
            found.append(Comparison(name, None, fastest, middle))
    return found


def _round(ratio: float | None) -> float | None:
    return None if ratio is None else round(ratio, 2)
