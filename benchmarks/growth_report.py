"""Writes what the growth benchmark measured: a plot, and the section of its page."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import altair as alt
import pandas as pd

from backfill_engine_tests.project import CUSTOMER_ORDERS, RAW_ORDERS, STAGING_ORDERS
from benchmarks.report import describe_briefly
from benchmarks.sections import write_section

BEGIN, END = "<!-- growth results: begin -->", "<!-- growth results: end -->"
TABLES = (RAW_ORDERS, STAGING_ORDERS, CUSTOMER_ORDERS)

RESULTS, _PLOT = "growth.json", "growth.svg"


@dataclass(frozen=True)
class GrowthRun:
    """One range run over all partitions, and the run of empty assets beside it.

    Attributes:
        scale: TPC-H scale factor.
        nominal: partitions asked for.
        partitions: those there are, by rounding the keys in each up; each holds keys.
        rows: of `raw/orders`.
        commits: commits that published the partitions, by table.
        seconds: wall time.
        event_seconds: wall time of the empty assets that store the same events.
        heap_mb: the JVM's bound.
        alive_mb: most that was alive after a garbage collection.
    """

    scale: float
    nominal: int
    partitions: int
    rows: int
    commits: dict[str, int]
    seconds: float
    event_seconds: float
    heap_mb: int
    alive_mb: int

    @property
    def engine_seconds(self) -> float:
        """Beyond Python, Dagster and its events: Spark, Delta and the project's own."""
        return self.seconds - self.event_seconds


def write_growth_report(results: Mapping[str, Any], folder: Path) -> None:
    """Writes the plot into `folder`, and the section of the page beside it."""
    runs = [GrowthRun(**result) for result in results["runs"]]
    build_plot(runs).save(folder / _PLOT)
    section = build_section(runs, plot=f"{folder.name}/{_PLOT}")
    measured = describe_briefly(results, folder / RESULTS)
    write_section(f"{measured}\n\n{section}", folder, markers=(BEGIN, END))


def build_section(runs: Sequence[GrowthRun], *, plot: str) -> str:
    """What follows from engine seconds by rows and partitions, as Markdown; the plot has them."""
    least, most = (of(runs, key=lambda run: run.alive_mb) for of in (min, max))
    lines = [
        f"![Engine seconds by rows and by partitions]({plot})",
        "",
        *_describe_row_growth(runs),
        *_describe_partition_growth(runs),
        f"- Most alive in {most.heap_mb} MB of heap: {least.alive_mb} to {most.alive_mb} MB.",
    ]
    return "\n".join(lines)


def _describe_row_growth(runs: Sequence[GrowthRun]) -> Iterator[str]:
    """What more rows cost in as many partitions, between the two largest scales."""
    scales = sorted({run.scale for run in runs})[-2:]
    by_scale = [{run.nominal: run for run in runs if run.scale == scale} for scale in scales]
    pairs = [(few, by_scale[-1][at]) for at, few in by_scale[0].items() if at in by_scale[-1]]
    if len(scales) < 2 or not pairs:
        return
    times = [many.engine_seconds / few.engine_seconds for few, many in pairs]
    slopes = [
        (many.engine_seconds - few.engine_seconds) * 1e6 / (many.rows - few.rows)
        for few, many in pairs
    ]
    few, many = pairs[0]
    yield (
        f"- × {many.rows / few.rows:.1f} rows (scale {few.scale:g} to {many.scale:g}): "
        f"× {min(times):.2f} to {max(times):.2f} engine seconds, {min(slopes):.1f} to "
        f"{max(slopes):.1f} s a million more rows."
    )


def _describe_partition_growth(runs: Sequence[GrowthRun]) -> Iterator[str]:
    """What more partitions cost for as many rows, from the fewest to the most."""
    pairs = [
        (few, many)
        for group in _group(runs, lambda run: run.scale)
        for few, many in [[of(group, key=lambda run: run.nominal) for of in (min, max)]]
        if few is not many
    ]
    if pairs:
        times = [many.engine_seconds / few.engine_seconds for few, many in pairs]
        few, many = pairs[-1]
        yield (
            f"- {many.nominal:,} partitions in place of {few.nominal:,}: × {min(times):.2f} to "
            f"{max(times):.2f}."
        )


def _group(runs: Sequence[GrowthRun], by: Callable[[GrowthRun], float]) -> list[list[GrowthRun]]:
    values = sorted({by(run) for run in runs})
    return [[run for run in runs if by(run) == value] for value in values]


def build_plot(runs: Sequence[GrowthRun]) -> alt.HConcatChart:
    """Engine seconds by rows and by partitions; all axes are logarithmic."""
    frame = pd.DataFrame(
        {
            "rows": run.rows,
            "partitions": run.partitions,
            "nominal": f"{run.nominal:,}",
            "scale": f"{run.scale:g}",
            "engine": run.engine_seconds,
        }
        for run in sorted(runs, key=lambda run: (run.scale, run.nominal))
    )
    by_rows = _build_panel(frame, "rows", "rows of raw/orders", "nominal", "partitions")
    by_partitions = _build_panel(frame, "partitions", "partitions", "scale", "scale")
    return alt.hconcat(by_rows, by_partitions).resolve_scale(color="independent")


def _build_panel(frame: pd.DataFrame, x: str, x_title: str, line: str, title: str) -> alt.Chart:
    """A line for each value of the column `line`, in the order of the frame."""
    logarithmic = alt.Scale(type="log", nice=True)
    numbers = alt.Axis(format="~s", tickCount=5)
    color = alt.Color(f"{line}:N", title=title, sort=list(frame[line].unique()))
    return (
        alt.Chart(frame)
        .mark_line(point=True)
        .encode(
            x=alt.X(f"{x}:Q", title=x_title, scale=logarithmic, axis=numbers),
            y=alt.Y("engine:Q", title="engine seconds", scale=logarithmic, axis=numbers),
            color=color,
        )
        .properties(width=300, height=260)
    )
