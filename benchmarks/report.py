"""Writes the results: JSON, a plot, and the tables within a Markdown page.

`python -m benchmarks.report` makes plot and page again from the JSON.
"""

import argparse
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import altair as alt
import pandas as pd

from benchmarks.sections import write_results, write_section

BEGIN, END = "<!-- benchmark results: begin -->", "<!-- benchmark results: end -->"
DEFAULT_FOLDER = Path(__file__).parents[1] / "docs" / "benchmarks"

_RESULTS, _PLOT = "results.json", "range_backfills.svg"


def write_report(results: Mapping[str, Any], folder: Path) -> None:
    """Writes JSON and plot into `folder`, and the tables into the page beside it."""
    write_results(results, folder / _RESULTS)
    build_plot(results).save(folder / _PLOT)
    section = build_section(results, plot=f"{folder.name}/{_PLOT}")
    write_section(section, folder, markers=(BEGIN, END))


def describe_measuring(results: Mapping[str, Any]) -> str:
    """When and on what it was measured, in one line."""
    machine = results["machine"]
    packages = ", ".join(f"{name} {version}" for name, version in machine["packages"].items())
    return (
        f"Measured on {results['date']}: {machine['cores']} cores ({machine['processor']}), "
        f"{machine['memory_gib']:g} GiB, {machine['system']}, Java {machine['java']}, "
        f"Python {machine['python']}, {packages}."
    )


def describe_briefly(results: Mapping[str, Any], file: Path) -> str:
    """When it was measured, and the file beside the page's folder that has the rest."""
    return (
        f"Measured on {results['date']}, {results['machine']['cores']} cores: "
        f"[`{file.name}`]({file.parent.name}/{file.name})."
    )


def build_section(results: Mapping[str, Any], *, plot: str) -> str:
    """The ratios that have a target, as Markdown; the plot has all variants."""
    minima = {(run["letter"], run["days"]): f"{run['min']:.1f}" for run in results["runs"]}
    lines = [
        describe_measuring(results),
        "",
        f"![Wall time of each variant]({plot})",
        "",
        "| ratio | days | minima, s | of medians | target | met |",
        "|---|---:|---:|---:|---:|---|",
        *(
            f"| {ratio['name']} | {ratio['days']} | {_fill_in(ratio, minima)} "
            f"| {ratio['median']:.2f} | {ratio['target']} | {_say(met=ratio['met'])} |"
            for ratio in results["comparisons"]
            if ratio["target"]
        ),
    ]
    return "\n".join(lines)


def _fill_in(ratio: Mapping[str, Any], minima: Mapping[tuple[str, int], str]) -> str:
    """The name of a ratio, with seconds in place of the letters of variants."""
    return re.sub(r"\b[a-e]\b", lambda letter: minima[letter[0], ratio["days"]], ratio["name"])


def build_plot(results: Mapping[str, Any]) -> alt.FacetChart:
    """Bars from zero to the median, a tick at every repeat; one panel for each length of range."""
    repeats = pd.DataFrame(
        {
            "variant": f"{run['letter']}: {run['label']}",
            "range": f"{run['days']} days",
            "days": run["days"],
            "seconds": seconds,
        }
        for run in results["runs"]
        for seconds in run["seconds"]
    )
    base = alt.Chart(repeats).encode(
        y=alt.Y("variant:N", title=None, axis=alt.Axis(labelLimit=320))
    )
    bars = base.mark_bar(color="#4c78a8").encode(
        x=alt.X("median(seconds):Q", title="wall time of the whole process, s (bar: median)")
    )
    ticks = base.mark_tick(color="#222222", thickness=1.5).encode(x="seconds:Q")
    return (
        alt.layer(bars, ticks)
        .properties(width=420, height=alt.Step(26))
        .facet(row=alt.Row("range:N", title=None, sort=alt.SortField("days")))
        .resolve_scale(x="independent", y="independent")
    )


def _say(*, met: bool) -> str:
    return "yes" if met else "**no**"


def main() -> None:
    """Makes plot and page again from the JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=DEFAULT_FOLDER, help="default: docs/benchmarks")
    folder = parser.parse_args().out.resolve()
    write_report(json.loads((folder / _RESULTS).read_text(encoding="utf-8")), folder)


if __name__ == "__main__":
    main()
