"""A page that shows how the features of one version differ from those of another.

It has the verdict, a table of the columns, and two plots: all figures by partition, and how values
are distributed in the partition that drifted most.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from backfill_engine.extras.comparison.contents import read_contents
from backfill_engine.extras.comparison.rows import PartitionDiff
from backfill_engine.extras.pages import Section, plot, render_page
from backfill_engine.extras.versions.column_shifts import ColumnShift
from backfill_engine.extras.versions.promotions import Promotion
from backfill_engine.lake.partitions import Partition
from backfill_engine.lake.table_log import TableLog
from backfill_engine.rules.drift import Drift
from backfill_engine.tables.declarations import Table

_LISTED = 20
_FIGURES = {"shift of the mean": ".3f", "shift of rows without a value": ".1%", "PSI": ".3f"}
"""What is measured of a column in a partition, and how it is written."""


class Histograms(NamedTuple):
    """How the values of one partition are distributed, before and after.

    Attributes:
        partition: its key.
        before: values per bin, nulls last, by `Drift.histogram`; without what isn't known.
        after: likewise.
    """

    partition: str
    before: Mapping[str, Sequence[int]]
    after: Mapping[str, Sequence[int]]


class _Figure(NamedTuple):
    """One figure of a column in a partition."""

    partition: str
    column: str
    figure: str
    value: float


def find_most_drifted(diffs: Mapping[str, PartitionDiff]) -> str | None:
    """Finds the partition with the largest PSI of any column, by key; None if none is known."""
    most = {
        key: max(known)
        for key, diff in diffs.items()
        if (known := [psi for psi in diff.psi.values() if psi is not None])
    }
    return max(most, key=lambda key: most[key]) if most else None


def read_histograms(before: TableLog, after: TableLog, partition: Partition) -> Histograms:
    """Reads how the columns with a `Drift` rule are distributed in one partition.

    Args:
        before: of the one table, which need not exist.
        after: of the other, of the same declaration; it exists.
        partition: which to read.
    """
    columns = sorted({name for rule in _list_rules(after.table) for name in rule.columns_needed})
    older, newer = (_read_side(log, partition, columns) for log in (before, after))
    return Histograms(partition.key, older, newer)


def build_drift_page(
    promotion: Promotion,
    table: Table,
    shifts: Sequence[ColumnShift],
    diffs: Mapping[str, PartitionDiff],
    histograms: Histograms | None,
) -> str:
    """Builds a page of HTML that needs nothing beside it.

    Args:
        promotion: who asked for what, and what stands against it.
        table: the declaration of both versions.
        shifts: of any partitions (`column_shifts.measure_shifts`).
        diffs: by partition key (`proof.diffs.compare_partitions`).
        histograms: of the partition to show (`read_histograms`); None to show none.
    """
    figures = sorted(_list_figures(table, shifts, diffs))
    sections = [_build_verdict(promotion), _build_overview(table, figures, diffs)]
    if histograms is not None:
        sections.append(_build_histograms(promotion, table, histograms))
    reason = f"Reason: {promotion.why}" if promotion.why else "No reason was given."
    return render_page(
        f"{promotion.table}: from {promotion.before or 'nothing'} to {promotion.version}",
        f"Asked for by {promotion.by or 'somebody'} on {promotion.at:%Y-%m-%d at %H:%M} UTC. "
        f"{reason}",
        sections,
    )


def _build_verdict(promotion: Promotion) -> Section:
    verdict = "nothing stands against it" if promotion.may_go else "it is not served"
    drifted = f"accepted: {promotion.accepted}" if promotion.accepted else "refused"
    findings = [
        *(("missing", what, "refused") for what in promotion.missing),
        *(("drift", what, drifted) for what in promotion.beyond),
    ]
    rest = len(findings) - _LISTED
    return Section(
        f"Verdict: {verdict}",
        f"The first {_LISTED} findings; there are {rest} more." if rest > 0 else "",
        head=("gate", "found", "outcome"),
        rows=findings[:_LISTED],
    )


def _build_overview(
    table: Table, figures: Sequence[_Figure], diffs: Mapping[str, PartitionDiff]
) -> Section:
    differing = [diff for diff in diffs.values() if not diff.equal]
    added, removed, changed = (
        sum(getattr(diff, name) for diff in differing) for name in ("added", "removed", "changed")
    )
    measured = {figure.column for figure in figures}
    moved = {(figure.column, figure.figure) for figure in figures if figure.value}
    return Section(
        "What differs",
        f"{len(differing)} of {len(diffs)} partitions: {added:,} rows added, {removed:,} removed, "
        f"{changed:,} changed. A mean's shift is relative to the mean before or, where that is "
        "larger, to the standard deviation. The largest of each figure, then all of them:",
        plot(
            "line",
            [
                figure._asdict()
                for figure in figures
                if (figure.column, figure.figure) in moved and figure.value < math.inf
            ],
            x="partition",
            y="value",
            color="column",
            row="figure",
        ),
        ("column", *_FIGURES),
        [
            (name, *(_write_largest(figures, name, figure) for figure in _FIGURES))
            for name in table.column_names
            if name in measured
        ],
    )


def _list_figures(
    table: Table, shifts: Sequence[ColumnShift], diffs: Mapping[str, PartitionDiff]
) -> Iterator[_Figure]:
    mean, nulls, psi = _FIGURES
    for shift in shifts:
        if shift.mean_shift is not None:
            yield _Figure(shift.partition, shift.column, mean, shift.mean_shift)
        yield _Figure(shift.partition, shift.column, nulls, shift.null_shift)
    for key, diff in diffs.items():
        for column in {rule.column for rule in _list_rules(table)}:
            found = 0.0 if diff.equal else diff.psi.get(column)
            if found is not None:
                yield _Figure(key, column, psi, found)


def _write_largest(figures: Sequence[_Figure], column: str, name: str) -> str:
    found = [each for each in figures if (each.column, each.figure) == (column, name)]
    if not found:
        return "not measured"
    most = max(found, key=lambda figure: figure.value)
    return f"{most.value:{_FIGURES[name]}} ({most.partition})" if most.value else "none"


def _build_histograms(promotion: Promotion, table: Table, histograms: Histograms) -> Section:
    values: list[dict[str, str | float]] = []
    for rule in _list_rules(table):
        before, after = (
            counts.get(rule.histogram, (0,) * rule.bins)
            for counts in (histograms.before, histograms.after)
        )
        psi = rule.compare(after, before)
        title = f"{rule.column}, {'too few values' if psi is None else f'PSI {psi:.3f}'}"
        for side, counts in (
            (f"before ({promotion.before or 'nothing'})", before[:-1]),
            (f"after ({promotion.version})", after[:-1]),
        ):
            values += [
                {"column": title, "bin": name, "side": side, "share": count / (sum(counts) or 1)}
                for name, count in zip(_name_bins(rule), counts, strict=True)
            ]
    return Section(
        f"Distributions in {histograms.partition}",
        "Shares of the values by the bins of the PSI; nulls are left out of both."
        if values
        else f"{table.key} has no Drift rule, so none are counted.",
        plot(
            "bar",
            values,
            x="bin",
            y="share",
            color="side",
            row="column",
            xOffset={"field": "side", "sort": None},
        ),
    )


def _name_bins(rule: Drift) -> list[str]:
    """Names the bins of values, without that of the nulls."""
    names = [edge for edge in rule.edges if isinstance(edge, str)]
    if names:
        return [*names, "others"]
    edges = [f"{edge:g}" for edge in rule.edges]
    between = (f"{low} to {high}" for low, high in pairwise(edges))
    return [f"below {edges[0]}", *between, f"from {edges[-1]}"]


def _list_rules(table: Table) -> list[Drift]:
    return [rule for rule in table.rules if isinstance(rule, Drift)]


def _read_side(log: TableLog, partition: Partition, columns: Sequence[str]) -> dict[str, list[int]]:
    if not log.exists or not columns:
        return {}
    contents = read_contents(log, [partition], columns=columns)
    return {name: counts[0].tolist() for name, counts in contents.histograms.items()}
