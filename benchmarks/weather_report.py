"""Writes what the benchmark of hours measured: JSON, and a section of the page of benchmarks."""

import json
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from backfill_engine_tests.project import RAW_WEATHER
from benchmarks.report import describe_briefly
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
    section = f"{describe_briefly(results, folder / _RESULTS)}\n\n{build_section(results)}"
    write_section(section, folder, markers=(BEGIN, END))


def read_results(folder: Path) -> dict[str, Any]:
    """Reads the JSON."""
    return json.loads((folder / _RESULTS).read_text(encoding="utf-8"))


def build_section(results: Mapping[str, Any]) -> str:
    """Hours beside days, as Markdown."""
    samples = [_read_sample(sample) for sample in results["samples"]]
    parts = {
        grain: _sum_up([sample for sample in samples if sample.grain == grain])
        for grain in (HOURS, DAYS)
    }
    commits, raw_rows = (
        {sample.grain: getattr(sample.raw, name)[RAW_WEATHER.key] for sample in samples}
        for name in ("commits", "rows")
    )
    lines = [
        "| hours / days | partitions | minima, s | of medians | target | met |",
        "|---|---:|---:|---:|---:|---|",
        *_compare(parts[HOURS], parts[DAYS]),
        "",
        *(_describe_growth(parts[grain][0]) for grain in (HOURS, DAYS)),
        f"- Commits of `raw/weather` ({raw_rows[HOURS]:,} rows): {commits[HOURS]} by hours "
        f"(target: at most {MOST_COMMITS}, "
        f"{'met' if commits[HOURS] <= MOST_COMMITS else '**not met**'}), {commits[DAYS]} by days.",
    ]
    return "\n".join(lines)


def _read_sample(sample: Mapping[str, Any]) -> PipelineSample:
    def read(part: Mapping[str, Any]) -> PartSample:
        return PartSample(**{**part, "metadata": Metadata(**part["metadata"])})

    return PipelineSample(sample["grain"], read(sample["raw"]), read(sample["rest"]))


def _sum_up(samples: Sequence[PipelineSample]) -> list[_Part]:
    """The raw table alone, and the whole pipeline; metadata of the last repeat."""
    raw = [sample.raw for sample in samples]
    last = samples[-1]
    return [
        _Part(
            "`raw/weather`",
            last.grain,
            last.raw.partitions,
            [sample.seconds for sample in raw],
            max(sample.python_bytes for sample in raw),
            max(sample.jvm_bytes for sample in raw),
            last.raw.metadata,
        ),
        _Part(
            "whole pipeline",
            last.grain,
            last.raw.partitions + last.rest.partitions,
            [sample.raw.seconds + sample.rest.seconds for sample in samples],
            max(max(sample.raw.python_bytes, sample.rest.python_bytes) for sample in samples),
            max(max(sample.raw.jvm_bytes, sample.rest.jvm_bytes) for sample in samples),
            last.raw.metadata.add(last.rest.metadata),
        ),
    ]


def _describe_growth(part: _Part) -> str:
    """What a partition adds beside its data, and memory."""
    found, partitions = part.metadata, part.partitions
    return (
        f"- {part.name} by {part.grain}, each: {found.sqlite_bytes / partitions / _KB:.1f} kB of "
        f"SQLite, {found.events / partitions:.1f} events, "
        f"{found.log_bytes / partitions / _KB:.1f} kB of Delta log; in all "
        f"{part.python_bytes / _MIB:,.0f} MiB of Python, {part.jvm_bytes / _MIB:,.0f} of JVM."
    )


def _compare(hours: Sequence[_Part], days: Sequence[_Part]) -> Iterator[str]:
    """Judged by the medians."""
    for hourly, daily in zip(hours, days, strict=True):
        middle = statistics.median(hourly.seconds) / statistics.median(daily.seconds)
        met = "yes" if middle < MOST_OVER_DAYS else "**no**"
        yield (
            f"| {hourly.name} | {hourly.partitions:,} / {daily.partitions:,} "
            f"| {min(hourly.seconds):.1f} / {min(daily.seconds):.1f} | {middle:.2f} "
            f"| < {MOST_OVER_DAYS} | {met} |"
        )
