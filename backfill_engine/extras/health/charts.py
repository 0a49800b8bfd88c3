"""Plots of how the tables are doing. Altair, so imported only where a page is written."""

import datetime as dt
import io
from collections.abc import Iterable, Sequence
from typing import Any

import altair as alt

from backfill_engine.extras.health.lateness import Lag, Lateness
from backfill_engine.extras.health.outcomes import Outcome

_SMALLEST_SHARE = 0.01
_BECAME = {
    "published first": "#4c78a8",
    "again, the same": "#b8c9dc",
    "again, changed": "#eeca3b",
    "withheld": "#e45756",
    "failed": "#7f1d1d",
}


def plot_late_rows(lateness: Sequence[Lateness]) -> str:
    """Plots late rows by landing day as SVG."""
    values = [{"day": write_moment(one.day), "rows": one.late} for one in lateness]
    marks = alt.Chart(alt.Data(values=values)).mark_bar(color="#4c78a8")
    return draw_wide(
        marks.encode(x=build_time_axis("day", "landed"), y=alt.Y("rows:Q", title="late rows"))
    )


def plot_days_late(lateness: Sequence[Lateness]) -> str:
    """Plots how many days late the late rows of each landing day are, as SVG."""
    values = [
        {"day": write_moment(one.day), "days": days, "of the late": name}
        for one in lateness
        if one.late
        for name, days in (("median", one.p50), ("95 %", one.p95), ("latest", one.most))
    ]
    order = ["latest", "95 %", "median"]
    marks = alt.Chart(alt.Data(values=values)).mark_point(opacity=0.9)
    return draw_wide(
        marks.encode(
            x=build_time_axis("day", "landed"),
            y=alt.Y("days:Q", title="days late"),
            color=alt.Color("of the late:N", sort=order),
            size=alt.Size(
                "of the late:N",
                scale=alt.Scale(domain=order, range=[120, 60, 20]),
                legend=None,
            ),
        )
    )


def plot_shares(lateness: Sequence[Lateness]) -> str:
    """Plots by the day that rows are of which share of them came after D+1 and D+2, as SVG."""
    values = [
        {"day": write_moment(one.day), "share": share, "landed": name}
        for one in lateness
        for name, share in (("after D+1", one.after_one), ("after D+2", one.after_two))
    ]
    most = max((one.after_one for one in lateness), default=0.0)
    marks = alt.Chart(alt.Data(values=values)).mark_line(strokeWidth=1.5)
    return draw_wide(
        marks.encode(
            x=build_time_axis("day", "day that the rows are of"),
            y=alt.Y(
                "share:Q",
                title="share of rows",
                axis=alt.Axis(format=".2%"),
                scale=alt.Scale(domain=[0, max(most, _SMALLEST_SHARE)]),
            ),
            color=alt.Color("landed:N"),
        )
    )


def plot_lags(lags: Iterable[Lag], bound: float) -> str:
    """Plots how far each watermark lags, and the bound, as SVG."""
    values = [{"table": f"{one.table}, {one.unit}", "behind": one.behind} for one in lags]
    bars = (
        alt.Chart(alt.Data(values=values))
        .mark_bar()
        .encode(
            x=alt.X("behind:Q", title="behind the last partition that there can be"),
            y=alt.Y("table:N", title=None, axis=alt.Axis(labelLimit=320)),
            color=alt.condition(
                alt.datum.behind > bound, alt.value("#e45756"), alt.value("#4c78a8")
            ),
        )
    )
    rule = (
        alt.Chart(alt.Data(values=[{"bound": bound}]))
        .mark_rule(color="#222222", strokeDash=[4, 3])
        .encode(x="bound:Q")
    )
    return draw(alt.layer(bars, rule).properties(width=WIDTH - 160, height=alt.Step(20)))


def plot_runtimes(outcomes: Iterable[Outcome]) -> str:
    """Plots the seconds of each step when it began, by layer, as SVG."""
    values = [
        {"began": write_moment(one.started_at), "seconds": one.seconds, "layer": one.layer}
        for one in outcomes
    ]
    layers = list(dict.fromkeys(value["layer"] for value in values))
    marks = alt.Chart(alt.Data(values=values)).mark_point(filled=True, opacity=0.7)
    return draw_wide(
        marks.encode(
            x=build_time_axis("began", "began, UTC", MINUTES),
            y=alt.Y("seconds:Q", title="seconds of a step"),
            color=alt.Color("layer:N", sort=layers),
        )
    )


def plot_partitions(outcomes: Iterable[Outcome]) -> str:
    """Plots what became of partitions by the day of the run, as SVG."""
    counts: dict[tuple[str, str], int] = {}
    for one in outcomes:
        for name, count in zip(_BECAME, _split(one), strict=True):
            if count:
                at = (write_moment(one.started_at.date()), name)
                counts[at] = counts.get(at, 0) + count
    values = [
        {"day": day, "partitions": count, "became": name, "order": list(_BECAME).index(name)}
        for (day, name), count in counts.items()
    ]
    marks = alt.Chart(alt.Data(values=values)).mark_bar(size=14)
    return draw_wide(
        marks.encode(
            x=build_time_axis("day", "day of the run"),
            y=alt.Y("partitions:Q", title="partitions"),
            color=alt.Color(
                "became:N",
                scale=alt.Scale(domain=list(_BECAME), range=list(_BECAME.values())),
            ),
            order="order:Q",
        )
    )


def _split(one: Outcome) -> tuple[int, ...]:
    """Splits the partitions of a run as `_BECAME` names them."""
    return (
        one.published - one.again,
        one.again - one.changed,
        one.changed,
        one.withheld,
        one.failed,
    )


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
