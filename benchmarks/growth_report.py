"""Writes what the growth benchmark measured: a plot, and the section of its page."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import altair as alt
import pandas as pd

from backfill_engine_tests.project import CUSTOMER_ORDERS, RAW_ORDERS, STAGING_ORDERS
from benchmarks.report import describe_measuring
from benchmarks.sections import write_section

BEGIN, END = "<!-- growth results: begin -->", "<!-- growth results: end -->"
TABLES = (RAW_ORDERS, STAGING_ORDERS, CUSTOMER_ORDERS)

_PLOT = "growth.svg"


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
    section = build_section(results, runs, plot=f"{folder.name}/{_PLOT}")
    write_section(section, folder, markers=(BEGIN, END))


def build_section(results: Mapping[str, Any], runs: Sequence[GrowthRun], *, plot: str) -> str:
    """All runs, and what follows from them, as Markdown."""
    least, most = (of(runs, key=lambda run: run.alive_mb) for of in (min, max))
    lines = [
        describe_measuring(results),
        "",
        f"![Engine seconds by rows and by partitions]({plot})",
        "",
        "| scale | raw rows | partitions | commits (raw, staging, features) | seconds | of events "
        "| engine | heap, MB | most alive, MB |",
        "|---:|---:|---:|---|---:|---:|---:|---:|---:|",
        *map(_format_run, runs),
        "",
        *_list_row_growth(runs),
        *_list_partition_growth(runs),
        f"Most alive after a collection: from {least.alive_mb} MB ({_name(least)}) to "
        f"{most.alive_mb} MB ({_name(most)}), of {most.heap_mb} MB.",
    ]
    return "\n".join(lines)


def _format_run(run: GrowthRun) -> str:
    commits = ", ".join(str(run.commits[table.key]) for table in TABLES)
    return (
        f"| {run.scale:g} | {run.rows:,} | {run.partitions:,} | {commits} | {run.seconds:.1f} "
        f"| {run.event_seconds:.1f} | {run.engine_seconds:.1f} | {run.heap_mb} | {run.alive_mb} |"
    )


def _list_row_growth(runs: Sequence[GrowthRun]) -> Iterator[str]:
    """What more rows cost in as many partitions, between neighbouring scales."""
    pairs = [
        pair
        for some in _group(runs, lambda run: run.nominal)
        for pair in pairwise(sorted(some, key=lambda row: row.rows))
    ]
    if not pairs:
        return
    yield "| partitions | from scale | to scale | rows | engine seconds | s per million more rows |"
    yield "|---:|---:|---:|---:|---:|---:|"
    for few, many in pairs:
        million_rows = (many.rows - few.rows) / 1e6
        slope = (many.engine_seconds - few.engine_seconds) / million_rows
        yield (
            f"| {few.nominal:,} | {few.scale:g} | {many.scale:g} | × {many.rows / few.rows:.1f} "
            f"| × {many.engine_seconds / few.engine_seconds:.2f} | {slope:.1f} |"
        )
    yield ""


def _list_partition_growth(runs: Sequence[GrowthRun]) -> Iterator[str]:
    """What more partitions cost for as many rows, from the fewest to the most."""
    groups = [run for run in _group(runs, lambda run: run.scale) if len(run) > 1]
    if not groups:
        return
    yield "| scale | from partitions | to partitions | engine seconds |"
    yield "|---:|---:|---:|---:|"
    for some in groups:
        few, many = (of(some, key=lambda partition: partition.partitions) for of in (min, max))
        yield (
            f"| {few.scale:g} | {few.partitions:,} | {many.partitions:,} "
            f"| × {many.engine_seconds / few.engine_seconds:.2f} |"
        )
    yield ""


def _group(runs: Sequence[GrowthRun], by: Callable[[GrowthRun], float]) -> list[list[GrowthRun]]:
    values = sorted({by(run) for run in runs})
    return [[run for run in runs if by(run) == value] for value in values]


def _name(run: GrowthRun) -> str:
    return f"scale {run.scale:g}, {run.partitions:,} partitions"


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
