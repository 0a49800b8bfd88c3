"""Plots of two versions of a table. Altair, so imported only where a page is written."""

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import altair as alt

from backfill_engine.extras.comparison.rows import PartitionDiff
from backfill_engine.extras.health.charts import (
    DAYS,
    MINUTES,
    build_time_axis,
    draw,
    draw_wide,
    write_moment,
)
from backfill_engine.extras.versions.column_shifts import ColumnShift
from backfill_engine.grains.grain import Grain
from backfill_engine.rules.drift import Drift
from backfill_engine.tables.declarations import Column, Table

_COLORS, _WIDTHS = ("#4c78a8", "#f58518"), (4, 1.5)
"""Of what is before and after: where both are the same, the one shows below the other."""
_LONE_COLOR, _LONE_WIDTH = "#3e4c59", 2
_LABEL_PIXELS = 48
"""For the labels of y, so that the plots of a column have partitions one below the other."""
_HALF_WIDTH, _HALF_HEIGHT = 390, 150


def plot_lines(
    grain: Grain[Any],
    lines: Mapping[str, Mapping[str, float]],
    title: str,
    *,
    format_: str = ",~f",
    from_zero: bool = False,
    bound: float | None = None,
) -> str:
    """Plots figures by partition as SVG, a line broken where partitions are missing.

    Args:
        grain: of the partitions.
        lines: by name, then by partition key, at most two; with one there is no legend.
        title: of the figures.
        format_: of the figures, as d3 has it.
        from_zero: whether the plot begins with 0.
        bound: where to draw a dashed line.
    """
    names = list(lines)
    values = [one for name in names for one in _place(grain, name, lines[name])]
    several = len(names) > 1
    colors, widths = (_COLORS, _WIDTHS) if several else ([_LONE_COLOR], [_LONE_WIDTH])
    legend = alt.Legend(title=None, orient="top", symbolOpacity=1) if several else None
    y = alt.Y(
        "figure:Q",
        title=title,
        scale=alt.Scale(zero=from_zero),
        axis=alt.Axis(format=format_, minExtent=_LABEL_PIXELS, tickCount=5),
    )
    base = alt.Chart(alt.Data(values=values)).encode(
        x=_build_x(grain),
        y=y,
        color=alt.Color("line:N", scale=_build_scale(names, colors), legend=legend),
    )
    width = alt.StrokeWidth("line:N", scale=_build_scale(names, widths), legend=None)
    layers: list[Any] = [
        base.mark_line(opacity=1).encode(detail="stretch:N", strokeWidth=width),
        base.transform_filter(alt.datum.alone).mark_point(filled=True, opacity=1, size=22),
    ]
    if bound is not None:
        layers.append(
            alt.Chart(alt.Data(values=[{"figure": bound}]))
            .mark_rule(color="#222222", strokeDash=[4, 3])
            .encode(y=y)
        )
    return draw_wide(alt.layer(*layers))


def plot_distributions(title: str, bins: Sequence[str], sides: Mapping[str, Sequence[int]]) -> str:
    """Plots the shares of values by bin as SVG, half as wide as a page.

    Args:
        title: of the plot.
        bins: names, in order.
        sides: by name, values per bin; at most two.
    """
    names = list(sides)
    values = [
        {"bin": name, "line": side, "share": count / total}
        for side, counts in sides.items()
        if (total := sum(counts))
        for name, count in zip(bins, counts, strict=True)
    ]
    heading = alt.Title(title, anchor="start")
    marks = alt.Chart(alt.Data(values=values), title=heading).mark_bar()
    legend = alt.Legend(title=None, orient="top")
    return draw(
        marks.encode(
            x=alt.X("bin:N", sort=list(bins), title=None, axis=alt.Axis(labelAngle=-40)),
            xOffset=alt.XOffset("line:N", sort=names),
            y=alt.Y(
                "share:Q",
                title="share of values",
                axis=alt.Axis(format="%", minExtent=_LABEL_PIXELS, tickCount=5),
            ),
            color=alt.Color("line:N", scale=_build_scale(names, _COLORS), legend=legend),
        ).properties(width=_HALF_WIDTH, height=_HALF_HEIGHT)
    )


def _place(grain: Grain[Any], name: str, figures: Mapping[str, float]) -> list[dict[str, Any]]:
    """Places figures along x; neighbouring partitions are of one stretch."""
    starts = {key: grain.find_start(key) for key in figures}
    numbers = {grain.find_number(start): key for key, start in starts.items()}
    stretch = 0
    values: list[dict[str, Any]] = []
    for number, key in sorted(numbers.items()):
        stretch += number - 1 not in numbers
        start = starts[key]
        values.append(
            {
                "at": write_moment(start) if isinstance(start, dt.date) else start,
                "figure": figures[key],
                "line": name,
                "stretch": stretch,
                "alone": not {number - 1, number + 1} & numbers.keys(),
            }
        )
    return values


def _build_x(grain: Grain[Any]) -> alt.X:
    if not grain.cron:
        return alt.X("at:Q", title=None, scale=alt.Scale(zero=False, padding=12))
    return build_time_axis("at", "", MINUTES if grain.in_daily_folders else DAYS)


def _build_scale(names: Sequence[str], given: Sequence[Any]) -> alt.Scale:
    return alt.Scale(domain=list(names), range=list(given))


@dataclass(frozen=True)
class ColumnDrift:
    """One column, its figures by partition key; partitions of which one isn't known are left out.

    Attributes:
        column: its declaration.
        rules: those that bound its PSI.
        means_before: see `ColumnShift`, likewise the next five; null shares are of partitions that
            have rows.
        means_after: see there.
        mean_shifts: see there.
        nulls_before: see there.
        nulls_after: see there.
        null_shifts: see there.
        psi: see `PartitionDiff`; 0 of partitions that are equal.
    """

    column: Column
    rules: tuple[Drift, ...]
    means_before: Mapping[str, float]
    means_after: Mapping[str, float]
    mean_shifts: Mapping[str, float]
    nulls_before: Mapping[str, float]
    nulls_after: Mapping[str, float]
    null_shifts: Mapping[str, float]
    psi: Mapping[str, float]

    @property
    def is_measured(self) -> bool:
        """Whether there are any figures."""
        return bool(self.null_shifts or self.psi)

    @property
    def has_moved(self) -> bool:
        """Whether any figure is other than before, or there only before or only after."""
        shifted = any(any(one.values()) for one in (self.mean_shifts, self.null_shifts, self.psi))
        means, nulls = (
            before.keys() ^ after.keys()
            for before, after in (
                (self.means_before, self.means_after),
                (self.nulls_before, self.nulls_after),
            )
        )
        return bool(shifted or means or nulls)

    def find_bound(self, max_psi: float | None) -> float | None:
        """Finds the bound of its PSI: `max_psi` if that is given, else the least of its rules'."""
        bounds = (rule.fail if rule.blocking else rule.warn for rule in self.rules)
        return min(bounds, default=None) if max_psi is None else max_psi


def build_column_drifts(
    table: Table, shifts: Sequence[ColumnShift], diffs: Mapping[str, PartitionDiff]
) -> list[ColumnDrift]:
    """Builds a `ColumnDrift` for each column of which anything was measured, as declared.

    Args:
        table: the declaration of both sides.
        shifts: of any partitions.
        diffs: by partition key.
    """
    found = (_build(table, column, shifts, diffs) for column in table.columns)
    return [one for one in found if one.is_measured]


def _build(
    table: Table,
    column: Column,
    shifts: Sequence[ColumnShift],
    diffs: Mapping[str, PartitionDiff],
) -> ColumnDrift:
    mine = [one for one in shifts if one.column == column.name]
    rules = [rule for rule in table.rules if isinstance(rule, Drift)]
    rules = tuple(rule for rule in rules if rule.column == column.name)
    psi = {key: 0.0 if one.equal else one.psi.get(column.name) for key, one in diffs.items()}
    empty_before = {key for key, one in diffs.items() if not one.rows_before}
    empty_after = {key for key, one in diffs.items() if not one.rows_after}
    return ColumnDrift(
        column=column,
        rules=rules,
        means_before=_keep_known({one.partition: one.mean_before for one in mine}),
        means_after=_keep_known({one.partition: one.mean_after for one in mine}),
        mean_shifts=_keep_known({one.partition: one.mean_shift for one in mine}),
        nulls_before={
            one.partition: one.nulls_before for one in mine if one.partition not in empty_before
        },
        nulls_after={
            one.partition: one.nulls_after for one in mine if one.partition not in empty_after
        },
        null_shifts={one.partition: one.null_shift for one in mine},
        psi=_keep_known(psi) if rules else {},
    )


def _keep_known(figures: Mapping[str, float | None]) -> dict[str, float]:
    return {key: figure for key, figure in figures.items() if figure is not None}
