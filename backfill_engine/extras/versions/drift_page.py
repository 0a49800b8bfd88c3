"""A page that shows how the features of one version differ from those of another.

It needs Altair, which takes a second to import: import this only where a page is written.
"""

import datetime as dt
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from backfill_engine.extras.comparison.contents import read_contents
from backfill_engine.extras.comparison.rows import PartitionDiff
from backfill_engine.extras.health.pages import Section, render_page
from backfill_engine.extras.versions.column_shifts import ColumnShift
from backfill_engine.extras.versions.drift_plots import (
    ColumnDrift,
    build_column_drifts,
    plot_distributions,
    plot_lines,
)
from backfill_engine.grains.grain import Grain
from backfill_engine.lake.partitions import Partition
from backfill_engine.lake.table_log import TableLog
from backfill_engine.rules.drift import Drift
from backfill_engine.tables.declarations import Table

_LISTED = 20


@dataclass(frozen=True)
class JudgedGate:
    """What one gate found.

    Attributes:
        gate: its name, in words.
        found: its figure, or what is missing.
        outcome: whether it holds, in words: `holds`, `refused`, `accepted: …`.
    """

    gate: str
    found: str
    outcome: str


@dataclass(frozen=True)
class VersionChange:
    """Which version is to take the place of which, and what was decided.

    Attributes:
        table: what consumers read, `layer/name`.
        before: the version that they read; empty if there is none.
        after: the version that they are to read.
        by: who asked for it.
        at: when, UTC.
        reason: why, in a person's words; empty if nobody said.
        verdict: what became of it, in words.
        gates: what was asked, and found.
    """

    table: str
    before: str
    after: str
    by: str
    at: dt.datetime
    reason: str
    verdict: str
    gates: Sequence[JudgedGate] = ()


@dataclass(frozen=True)
class Distributions:
    """How the values of one partition are distributed, before and after.

    Attributes:
        partition: its key.
        before: values per bin, nulls last, by `Drift.histogram`; without what isn't known.
        after: likewise.
    """

    partition: str
    before: Mapping[str, Sequence[int]] = field(default_factory=dict)
    after: Mapping[str, Sequence[int]] = field(default_factory=dict)


def find_most_drifted(diffs: Mapping[str, PartitionDiff]) -> str | None:
    """Finds the partition with the largest PSI of any column, by key; None if none is known."""
    most = {
        key: max(known)
        for key, diff in diffs.items()
        if (known := [psi for psi in diff.psi.values() if psi is not None])
    }
    return max(most, key=lambda key: most[key]) if most else None


def read_distributions(before: TableLog, after: TableLog, partition: Partition) -> Distributions:
    """Reads how the columns with a `Drift` rule are distributed in one partition.

    Args:
        before: of the one table, which need not exist.
        after: of the other, of the same declaration; it exists.
        partition: which to read.
    """
    rules = [rule for rule in after.table.rules if isinstance(rule, Drift)]
    columns = sorted({name for rule in rules for name in rule.columns_needed})
    older, newer = (_read_histograms(log, partition, columns) for log in (before, after))
    return Distributions(partition.key, older, newer)


def build_drift_page(
    table: Table,
    change: VersionChange,
    shifts: Sequence[ColumnShift],
    diffs: Mapping[str, PartitionDiff],
    distributions: Distributions | None,
    *,
    max_psi: float | None = None,
) -> str:
    """Builds a page of HTML that needs nothing beside it.

    Args:
        table: the declaration of both versions: its grain, columns and `Drift` rules.
        change: who asked for what, and what was decided.
        shifts: of any partitions (`column_shifts.measure_shifts`).
        diffs: by partition key (`proof.diffs.compare_partitions`).
        distributions: of the partition to show (`read_distributions`), such as the one that drifted
            most (`find_most_drifted`); None to show none.
        max_psi: bound of the PSI to draw; None for that of each column's own rule.
    """
    before, after = f"before ({change.before or 'nothing'})", f"after ({change.after})"
    drifts = build_column_drifts(table, shifts, diffs)
    sections = [
        _build_verdict(change),
        _build_overview(drifts, diffs),
        *(
            Section(
                one.column.name,
                one.column.comment,
                "\n".join(_plot_column(table.grain, one, (before, after), max_psi)),
            )
            for one in drifts
            if one.has_moved
        ),
    ]
    if distributions is not None:
        sections.append(_build_distributions(table, distributions, (before, after)))
    title = f"{change.table}: from {change.before or 'nothing'} to {change.after}"
    return render_page(title, _describe_request(change), sections)


def _describe_request(change: VersionChange) -> str:
    reason = f"Reason: {change.reason}" if change.reason else "No reason was given."
    return f"Asked for by {change.by} on {change.at:%Y-%m-%d at %H:%M} UTC. {reason}"


def _build_verdict(change: VersionChange) -> Section:
    rest = len(change.gates) - _LISTED
    return Section(
        f"Verdict: {change.verdict}",
        f"The first {_LISTED} findings; there are {rest} more." if rest > 0 else "",
        head=("gate", "found", "outcome"),
        rows=[(one.gate, one.found, one.outcome) for one in change.gates[:_LISTED]],
    )


def _build_overview(drifts: Sequence[ColumnDrift], diffs: Mapping[str, PartitionDiff]) -> Section:
    differing = [one for one in diffs.values() if not one.equal]
    added, removed, changed = (
        sum(getattr(one, name) for one in differing) for name in ("added", "removed", "changed")
    )
    return Section(
        "What differs",
        f"{len(differing)} of {len(diffs)} partitions: {added:,} rows added, {removed:,} removed, "
        f"{changed:,} changed. A mean's shift is relative to the mean before or, where that is "
        "larger, to the standard deviation. The largest of each figure:",
        head=("column", "shift of the mean", "shift of rows without a value", "PSI"),
        rows=[
            (
                one.column.name,
                _write_largest(one.mean_shifts, ".3f"),
                _write_largest(one.null_shifts, ".1%"),
                _write_largest(one.psi, ".3f"),
            )
            for one in drifts
        ],
    )


def _write_largest(figures: Mapping[str, float], format_: str) -> str:
    if not figures:
        return "not measured"
    key = max(figures, key=lambda one: figures[one])
    return f"{figures[key]:{format_}} ({key})" if figures[key] else "none"


def _plot_column(
    grain: Grain[Any], one: ColumnDrift, sides: tuple[str, str], max_psi: float | None
) -> Iterator[str]:
    means = dict(zip(sides, (one.means_before, one.means_after), strict=True))
    nulls = dict(zip(sides, (one.nulls_before, one.nulls_after), strict=True))
    if any(means.values()):
        yield plot_lines(grain, means, "mean")
    if any(any(figures.values()) for figures in nulls.values()):
        yield plot_lines(grain, nulls, "rows without a value", format_="%", from_zero=True)
    if one.psi:
        bound = one.find_bound(max_psi)
        title = f"PSI (dashed: {bound:g})"
        yield plot_lines(grain, {"PSI": one.psi}, title, from_zero=True, bound=bound)


def _build_distributions(
    table: Table, distributions: Distributions, sides: tuple[str, str]
) -> Section:
    plots = []
    for rule in table.rules:
        if not isinstance(rule, Drift):
            continue
        found = (distributions.before, distributions.after)
        both = [counts.get(rule.histogram, (0,) * rule.bins) for counts in found]
        psi = rule.compare(both[1], both[0])
        title = f"{rule.column}, " + (
            "too few values for a PSI" if psi is None else f"PSI {psi:.3f}"
        )
        without_nulls = (counts[:-1] for counts in both)
        plots.append(
            plot_distributions(
                title, _name_bins(rule), dict(zip(sides, without_nulls, strict=True))
            )
        )
    return Section(
        f"Distributions in {distributions.partition}",
        "Shares of the values by the bins of the PSI; nulls are left out of both."
        if plots
        else f"{table.key} has no Drift rule, so none are counted.",
        "\n".join(plots),
    )


def _name_bins(rule: Drift) -> list[str]:
    """Names the bins of values, without that of the nulls."""
    names = [edge for edge in rule.edges if isinstance(edge, str)]
    if names:
        return [*names, "others"]
    edges = [f"{edge:g}" for edge in rule.edges]
    return [
        f"below {edges[0]}",
        *(f"{low} to {high}" for low, high in pairwise(edges)),
        f"from {edges[-1]}",
    ]


def _read_histograms(
    log: TableLog, partition: Partition, columns: Sequence[str]
) -> dict[str, list[int]]:
    if not log.exists or not columns:
        return {}
    contents = read_contents(log, [partition], columns=columns)
    return {name: counts[0].tolist() for name, counts in contents.histograms.items()}
