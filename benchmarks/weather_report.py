"""Writes what the benchmark of hours measured: JSON, and a section of the page of benchmarks."""

import json
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from backfill_engine_tests.project import RAW_WEATHER
from benchmarks.report import describe_measuring
from benchmarks.run_metadata import Metadata
from benchmarks.sections import write_results, write_section

BEGIN, END = "<!-- weather results: begin -->", "<!-- weather results: end -->"
HOURS, DAYS = "hours", "days"

MOST_OVER_DAYS = 2
"""Of hours, in times of days."""

MOST_COMMITS = 2
"""Of `raw/weather` for a year of hours."""

_RESULTS = "weather.json"
_MIB, _KB = 2**20, 1000
_SUMMARIES: tuple[Callable[[Sequence[float]], float], ...] = (min, statistics.median)


@dataclass(frozen=True)
class PartSample:
    """One run of a part of the pipeline: `raw/weather`, or the tables that follow from it.

    Attributes:
        partitions: that it published, of all its tables.
        commits: that published them, by table.
        rows: of these tables.
        python_bytes: most memory of the run's own process.
        jvm_bytes: most of its JVM, heap and all else.
        seconds: wall time.
        metadata: what it added.
    """

    partitions: int
    commits: dict[str, int]
    rows: dict[str, int]
    python_bytes: int
    jvm_bytes: int
    seconds: float
    metadata: Metadata


@dataclass(frozen=True)
class PipelineSample:
    """One run of a part after the other: from `raw/weather` by hours or by days."""

    grain: str
    raw: PartSample
    rest: PartSample


@dataclass(frozen=True)
class _Part:
    """A part over all repeats, as a row of the report has it."""

    name: str
    grain: str
    partitions: int
    seconds: list[float]
    python_bytes: int
    jvm_bytes: int
    metadata: Metadata


def write_weather_report(results: Mapping[str, Any], folder: Path) -> None:
    """Writes the JSON into `folder`, and the section of the page beside it."""
    write_results(results, folder / _RESULTS)
    write_section(build_section(results), folder, markers=(BEGIN, END))


def read_results(folder: Path) -> dict[str, Any]:
    """Reads the JSON."""
    return json.loads((folder / _RESULTS).read_text(encoding="utf-8"))


def build_section(results: Mapping[str, Any]) -> str:
    """The tables as Markdown."""
    samples = [_read_sample(one) for one in results["samples"]]
    parts = {
        grain: _sum_up([one for one in samples if one.grain == grain]) for grain in (HOURS, DAYS)
    }
    rows = [row for pair in zip(parts[HOURS], parts[DAYS], strict=True) for row in pair]
    commits, raw_rows = (
        {one.grain: getattr(one.raw, name)[RAW_WEATHER.key] for one in samples}
        for name in ("commits", "rows")
    )
    lines = [
        describe_measuring(results),
        "",
        "| what | raw by | partitions | repeats | min, s | median, s | Python, MiB | JVM, MiB |",
        "|---|---|---:|---:|---:|---:|---:|---:|",
        *map(_format_time, rows),
        "",
        "| what | raw by | SQLite, MiB | kB a partition | events | a partition | kB of events "
        "a partition | Delta logs, MiB | kB a partition |",
        "|---|---|---:|---:|---:|---:|---:|---:|---:|",
        *map(_format_metadata, rows),
        "",
        "| ratio | of minima | of medians | target | met |",
        "|---|---:|---:|---:|---|",
        *_compare(parts[HOURS], parts[DAYS]),
        "",
        f"Commits of `raw/weather` ({raw_rows[HOURS]:,} rows): {commits[HOURS]} by hours (target: "
        f"at most {MOST_COMMITS}, {'met' if commits[HOURS] <= MOST_COMMITS else '**not met**'}), "
        f"{commits[DAYS]} by days.",
    ]
    return "\n".join(lines)


def _read_sample(sample: Mapping[str, Any]) -> PipelineSample:
    def read(part: Mapping[str, Any]) -> PartSample:
        return PartSample(**{**part, "metadata": Metadata(**part["metadata"])})

    return PipelineSample(sample["grain"], read(sample["raw"]), read(sample["rest"]))


def _sum_up(samples: Sequence[PipelineSample]) -> list[_Part]:
    """The raw table alone, and the whole pipeline; metadata of the last repeat."""
    raw = [one.raw for one in samples]
    last = samples[-1]
    return [
        _Part(
            "`raw/weather`",
            last.grain,
            last.raw.partitions,
            [one.seconds for one in raw],
            max(one.python_bytes for one in raw),
            max(one.jvm_bytes for one in raw),
            last.raw.metadata,
        ),
        _Part(
            "whole pipeline",
            last.grain,
            last.raw.partitions + last.rest.partitions,
            [one.raw.seconds + one.rest.seconds for one in samples],
            max(max(one.raw.python_bytes, one.rest.python_bytes) for one in samples),
            max(max(one.raw.jvm_bytes, one.rest.jvm_bytes) for one in samples),
            last.raw.metadata.add(last.rest.metadata),
        ),
    ]


def _format_time(part: _Part) -> str:
    return (
        f"| {part.name} | {part.grain} | {part.partitions:,} | {len(part.seconds)} "
        f"| {min(part.seconds):.1f} | {statistics.median(part.seconds):.1f} "
        f"| {part.python_bytes / _MIB:,.0f} | {part.jvm_bytes / _MIB:,.0f} |"
    )


def _format_metadata(part: _Part) -> str:
    found, partitions = part.metadata, part.partitions
    return (
        f"| {part.name} | {part.grain} | {found.sqlite_bytes / _MIB:,.1f} "
        f"| {found.sqlite_bytes / partitions / _KB:.1f} | {found.events:,} "
        f"| {found.events / partitions:.1f} | {found.event_bytes / partitions / _KB:.1f} "
        f"| {found.log_bytes / _MIB:,.1f} | {found.log_bytes / partitions / _KB:.1f} |"
    )


def _compare(hours: Sequence[_Part], days: Sequence[_Part]) -> Iterator[str]:
    """Judged by the medians, the last of the summaries."""
    for one, other in zip(hours, days, strict=True):
        fastest, middle = (of(one.seconds) / of(other.seconds) for of in _SUMMARIES)
        met = "yes" if middle < MOST_OVER_DAYS else "**no**"
        yield (
            f"| {one.name}: {HOURS} / {DAYS} | {fastest:.2f} | {middle:.2f} "
            f"| < {MOST_OVER_DAYS} | {met} |"
        )
