"""Writes what the benchmark of orders measured: JSON, and a section of the page of benchmarks."""

import json
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.report import describe_briefly
from benchmarks.sections import write_results, write_section

BEGIN, END = "<!-- orders results: begin -->", "<!-- orders results: end -->"
BARE, PROJECT, EVENTS = "a", "b", "e"
"""Bare PySpark with all buckets in one write a layer, one range run, and its events alone."""

MOST_OVER_BARE = 1.2
"""Of b, in times of a, at scale 1."""

MOST_FOR_TEN_TIMES = 12
"""Of b at scale 10, in times of b at scale 1."""

_RESULTS = "orders.json"


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
    measured = {scale["scale"]: scale for scale in (*kept, *map(asdict, scales))}
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
    section = f"{describe_briefly(results, folder / _RESULTS)}\n\n{build_section(results)}"
    write_section(section, folder, markers=(BEGIN, END))


def build_section(results: Mapping[str, Any]) -> str:
    """What was run, and the ratios that have a target, as Markdown."""
    scales = [OrdersScale(**scale) for scale in results["scales"]]
    lines = [
        "| ratio | scale | minima, s | of medians | target | met |",
        "|---|---|---:|---:|---:|---|",
        *(line for scale in scales for line in _compare_variants(scale)),
        *_compare_scales(scales),
        "",
        *map(_describe_scale, scales),
    ]
    return "\n".join(lines)


def _describe_scale(measured: OrdersScale) -> str:
    commits = ", ".join(map(str, measured.commits.values()))
    alive = " and ".join(f"{alive:,} in {letter}" for letter, alive in measured.alive_mb.items())
    return (
        f"- Scale {measured.scale:g}: {measured.rows:,} raw rows; commits of b by layer: "
        f"{commits}; MB alive of {measured.heap_mb:,}: {alive}."
    )


def _compare_variants(measured: OrdersScale) -> Iterator[str]:
    if BARE in measured.seconds and measured.scale == 1:
        seconds = (measured.seconds[PROJECT], measured.seconds[BARE])
        yield _format_ratio("b / a", f"{measured.scale:g}", *seconds, MOST_OVER_BARE)


def _compare_scales(scales: Sequence[OrdersScale]) -> Iterator[str]:
    by_scale = {scale.scale: scale.seconds[PROJECT] for scale in scales}
    if {1, 10} <= by_scale.keys():
        yield _format_ratio("b / b", "10 / 1", by_scale[10], by_scale[1], MOST_FOR_TEN_TIMES)


def _format_ratio(
    name: str, scale: str, numerators: Sequence[float], denominators: Sequence[float], most: float
) -> str:
    """A row; whether the target is met is judged by the ratio of the medians."""
    middle = statistics.median(numerators) / statistics.median(denominators)
    met = "yes" if middle <= most else "**no**"
    minima = f"{min(numerators):.1f} / {min(denominators):.1f}"
    return f"| {name} | {scale} | {minima} | {middle:.2f} | ≤ {most:g} | {met} |"
