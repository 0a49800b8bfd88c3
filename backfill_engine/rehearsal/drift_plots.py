"""Plots of two versions of a table. Altair, so imported only where a page is written."""

import datetime as dt
from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt

from backfill_engine.grains.grain import Grain
from backfill_engine.health.drawing import (
    DAYS,
    MINUTES,
    build_time_axis,
    draw,
    draw_wide,
    write_moment,
)

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
