"""Writes what the benchmark of orders measured: JSON, and a section of the page of benchmarks."""

import json
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.report import describe_measuring
from benchmarks.sections import write_results, write_section

BEGIN, END = "<!-- orders results: begin -->", "<!-- orders results: end -->"
BARE, PROJECT, EVENTS = "a", "b", "e"
LABELS = {
    BARE: "bare PySpark, all buckets in one write a layer",
    PROJECT: "backfill_assets, one range run",
    EVENTS: "Dagster alone, with the project's events",
}

MOST_OVER_BARE = 1.2
"""Of b, in times of a, at scale 1."""

MOST_FOR_TEN_TIMES = 12
"""Of b at scale 10, in times of b at scale 1."""

_RESULTS = "orders.json"
_SUMMARIES: tuple[Callable[[Sequence[float]], float], ...] = (min, statistics.median)


@dataclass(frozen=True)
class OrdersScale:
    """All runs at one scale.

    Attributes:
        scale: TPC-H scale factor.
        date: on which it was measured.
        landed_bytes: of the Parquet files.
        rows: of `raw/orders`.
        buckets: partitions of each table.
        commits: commits of b that published them, by table.
        heap_mb: the bound of either JVM's heap.
        alive_mb: most that was alive in it after a garbage collection, over all repeats; by a or b.
        seconds: wall time of each repeat, by a, b or e; without a where b ran alone.
    """

    scale: float
    date: str
    landed_bytes: int
    rows: int
    buckets: int
    commits: dict[str, int]
    heap_mb: int
    alive_mb: dict[str, int]
    seconds: dict[str, list[float]]


def merge_results(
    old: Mapping[str, Any] | None,
    scales: Sequence[OrdersScale],
    machine: Mapping[str, Any],
    *,
    date: str,
) -> dict[str, Any]:
    """Adds scales to earlier results of the same machine and versions; of others nothing is kept.

    Args:
        old: what the JSON held.
        scales: measured anew; they replace earlier ones of the same scale.
        machine: on which.
        date: when, as ISO.
    """
    kept = old["scales"] if old and old["machine"] == machine else []
    measured = {one["scale"]: one for one in (*kept, *map(asdict, scales))}
    return {
        "date": date,
        "machine": dict(machine),
        "scales": [measured[scale] for scale in sorted(measured)],
    }


def read_results(folder: Path) -> dict[str, Any] | None:
    """Reads the JSON; None where there is none."""
    path = folder / _RESULTS
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None


def write_orders_report(results: Mapping[str, Any], folder: Path) -> None:
    """Writes the JSON into `folder`, and the section of the page beside it."""
    write_results(results, folder / _RESULTS)
    write_section(build_section(results), folder, markers=(BEGIN, END))


def build_section(results: Mapping[str, Any]) -> str:
    """The tables as Markdown."""
    scales = [OrdersScale(**scale) for scale in results["scales"]]
    lines = [
        describe_measuring(results),
        "",
        "| scale | measured on | landed, GB | raw rows | buckets | commits of b (by layer) "
        "| heap, MB | alive in a, MB | in b |",
        "|---:|---|---:|---:|---:|---|---:|---:|---:|",
        *map(_format_scale, scales),
        "",
        "| | variant | scale | repeats | min, s | median, s |",
        "|---|---|---:|---:|---:|---:|",
        *(
            f"| {letter} | {label} | {one.scale:g} | {len(seconds)} "
            f"| {min(seconds):.1f} | {statistics.median(seconds):.1f} |"
            for one in scales
            for letter, label in LABELS.items()
            if (seconds := one.seconds.get(letter))
        ),
        "",
        "| ratio | scale | of minima | of medians | target | met |",
        "|---|---|---:|---:|---:|---|",
        *(line for one in scales for line in _compare_variants(one)),
        *_compare_scales(scales),
    ]
    return "\n".join(lines)


def _format_scale(one: OrdersScale) -> str:
    commits = ", ".join(map(str, one.commits.values()))
    bare = f"{one.alive_mb[BARE]:,}" if BARE in one.alive_mb else ""
    return (
        f"| {one.scale:g} | {one.date} | {one.landed_bytes / 1e9:.2f} | {one.rows:,} "
        f"| {one.buckets} | {commits} | {one.heap_mb:,} | {bare} | {one.alive_mb[PROJECT]:,} |"
    )


def _compare_variants(one: OrdersScale) -> Iterator[str]:
    if BARE not in one.seconds:
        return
    a, b, e = ([of(one.seconds[name]) for of in _SUMMARIES] for name in LABELS)
    target = MOST_OVER_BARE if one.scale == 1 else None
    yield _format_ratio("b / a", f"{one.scale:g}", _divide(b, a), target)
    without_events = [whole - events for whole, events in zip(b, e, strict=True)]
    yield _format_ratio("(b − e) / a", f"{one.scale:g}", _divide(without_events, a), None)


def _compare_scales(scales: Sequence[OrdersScale]) -> Iterator[str]:
    """Each scale with the smallest of at least 1, where there is such a one."""
    first, *others = [one for one in scales if one.scale >= 1] or list(scales)
    for one in others:
        ratios = _divide(
            *([of(each.seconds[PROJECT]) for of in _SUMMARIES] for each in (one, first))
        )
        target = MOST_FOR_TEN_TIMES if (one.scale, first.scale) == (10, 1) else None
        yield _format_ratio("b / b", f"{one.scale:g} / {first.scale:g}", ratios, target)


def _divide(numerators: Sequence[float], denominators: Sequence[float]) -> list[float]:
    return [one / other for one, other in zip(numerators, denominators, strict=True)]


def _format_ratio(name: str, scale: str, ratios: Sequence[float], target: float | None) -> str:
    """A row; whether the target is met is judged by the ratio of the medians, the last."""
    fastest, middle = ratios
    wanted, met = ("", "") if target is None else (f"≤ {target:g}", _say(met=middle <= target))
    return f"| {name} | {scale} | {fastest:.2f} | {middle:.2f} | {wanted} | {met} |"


def _say(*, met: bool) -> str:
    return "yes" if met else "**no**"
