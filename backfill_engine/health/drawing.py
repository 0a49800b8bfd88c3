"""What the plots of all pages have in common: axes of time, sizes, and SVG. Altair, as `charts`."""

import datetime as dt
import io
from typing import Any

import altair as alt

DAYS, MINUTES = "%Y-%m-%d", "%m-%d %H:%M"
"""How an axis writes days, and times."""

WIDTH, HEIGHT = 820, 180
"""Pixels of a plot as wide as a page."""

_DAY_MILLISECONDS = 86_400_000


def build_time_axis(name: str, title: str, format_: str = DAYS) -> alt.X:
    """Builds the x of a field of days or times, as `write_moment` wrote them."""
    axis = alt.Axis(
        format=format_,
        labelAngle=-30,
        labelOverlap="greedy",
        tickMinStep=_DAY_MILLISECONDS if format_ == DAYS else 0,
    )
    return alt.X(f"{name}:T", title=title, axis=axis, scale=alt.Scale(padding=12))


def write_moment(day: dt.date) -> str:
    """Writes a day or a time for Vega, which takes one without a zone for the machine's own."""
    if isinstance(day, dt.datetime):
        return day.replace(tzinfo=None).isoformat()
    return f"{day.isoformat()}T00:00:00"


def draw_wide(chart: Any) -> str:
    """Draws a chart as wide as a page, as SVG."""
    return draw(chart.properties(width=WIDTH, height=HEIGHT))


def draw(chart: Any) -> str:
    """Draws a chart as SVG."""
    svg = io.StringIO()
    chart.save(svg, format="svg")
    return svg.getvalue()
