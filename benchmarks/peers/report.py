"""Writes what was measured: `peers.json`, and four sections of the page of performance.

A script writes the section that it measured, and leaves the others as they are.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.report import describe_briefly
from benchmarks.sections import write_results, write_section

RESULTS = "peers.json"
FLIGHTS, SAIL, ORDERS, TRIALS = "flights", "sail", "orders", "trials"
_MOST_QUESTIONS = 3


def write_peers_report(section: str, results: Mapping[str, Any], folder: Path) -> None:
    """Writes a section into the JSON in `folder`, and then the page beside the folder.

    Args:
        section: `FLIGHTS`, `SAIL`, `ORDERS` or `TRIALS`.
        results: of this section, with what `describe_measurement` tells.
        folder: where `peers.json` is, or will be.
    """
    file = folder / RESULTS
    others = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    write_results({**others, section: results}, file)
    write_page(folder)


def write_page(folder: Path) -> None:
    """Makes the sections of the page again from the JSON in `folder`."""
    results = json.loads((folder / RESULTS).read_text(encoding="utf-8"))
    for section, build in _BUILDERS.items():
        if section in results:
            measured = results[section]
            body = f"{describe_briefly(measured, folder / RESULTS)}\n\n{build(measured)}"
            write_section(body, folder, markers=_find_markers(section))


def build_flights_table(results: Mapping[str, Any]) -> str:
    """Seconds of each contestant and range; the median beside the project's."""
    lines = [
        "| | days | min, s | of the project's |",
        "|---|---:|---:|---:|",
    ]
    own = {run["days"]: run["median"] for run in results["runs"] if _is_own(run)}
    for run in results["runs"]:
        lines.append(
            f"| {run['label']} | {run['days']} | {run['min']:.1f} "
            f"| {_divide(run['median'], own.get(run['days']))} |"
        )
    lines += ["", _describe_repeats(results)]
    lines += [f"\n{name} took no part: {why}" for name, why in results["unavailable"].items()]
    return "\n".join(lines)


def list_orders(results: Mapping[str, Any]) -> str:
    """Seconds of each contestant and scale; the median beside the project's."""
    own = {run["scale"]: run["median"] for run in results["runs"] if _is_own(run)}
    lines = [
        f"- Scale {run['scale']:g}, {run['label']}: {run['min']:.1f} s, "
        f"{_divide(run['median'], own.get(run['scale']))} of the project's."
        for run in results["runs"]
        if not _is_own(run)
    ]
    return "\n".join([*lines, "", _describe_repeats(results)])


def build_trials_table(results: Mapping[str, Any]) -> str:
    """What was found of each contestant: the first questions whose answers differ.

    The JSON has all.
    """
    names = list(results["answers"])
    found = [
        (question, [results["answers"][name].get(question, "") for name in names])
        for question in results["questions"]
    ]
    differing = [row for row in found if len(names) == 1 or len({*row[1]}) > 1]
    lines = [
        f"| | {' | '.join(names)} |",
        f"|---|{'---|' * len(names)}",
        *(
            f"| {question} | {' | '.join(answers)} |"
            for question, answers in differing[:_MOST_QUESTIONS]
        ),
    ]
    return "\n".join(lines)


_BUILDERS = {
    FLIGHTS: build_flights_table,
    SAIL: build_flights_table,
    ORDERS: list_orders,
    TRIALS: build_trials_table,
}


def _find_markers(section: str) -> tuple[str, str]:
    return f"<!-- peers, {section}: begin -->", f"<!-- peers, {section}: end -->"


def _describe_repeats(results: Mapping[str, Any]) -> str:
    counts = sorted({len(run["seconds"]) for run in results["runs"]})
    return f"Runs of each: {', '.join(map(str, counts))}; ratios are of medians."


def _is_own(run: Mapping[str, Any]) -> bool:
    return run["contestant"] == "backfill_assets"


def _divide(median: float, own: float | None) -> str:
    return f"{median / own:.2f}" if own else ""
