"""Pages of HTML that need nothing beside them: words, tables, and plots as SVG within.

Plots are drawn by vl-convert, of the extra `plots`; where that is not installed, a page says so in
the place of each. It takes a second to load, and is loaded only where a page is written.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any, Literal

from backfill_engine.lake.warehouse import Warehouse
from backfill_engine.lake.whole_files import join_names, write_file

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; color: #1f2933; max-width: 64rem; margin: 2rem auto;
  padding: 0 1rem; }
h1 { font-size: 1.5rem; margin-bottom: 0; }
h2 { font-size: 1.1rem; margin: 2rem 0 0.3rem; }
p { margin: 0.3rem 0; }
table { border-collapse: collapse; margin: 0.5rem 0; }
th, td { text-align: left; padding: 0.2rem 1rem 0.2rem 0; border-bottom: 1px solid #d9e2ec; }
svg { max-width: 100%; height: auto; }
"""
_NOT_DRAWN = (
    "<p>Not drawn, as vl-convert is not installed: run <code>pip install "
    "'backfill-engine[plots]'</code> where this page is written.</p>"
)
_WIDTH, _HEIGHT = 820, 150
"""Pixels of a plot as wide as a page."""
_MANY = 500
"""Points, which would make a page large."""


@dataclass(frozen=True)
class Section:
    """One part of a page.

    Attributes:
        title: its heading.
        words: what it shows, in a sentence or two.
        plot: by `plot`; empty if there is nothing to plot.
        head: of its table; empty without one.
        rows: of its table.
    """

    title: str
    words: str = ""
    plot: str = ""
    head: Sequence[str] = ()
    rows: Sequence[Sequence[str | float]] = ()


def render_page(title: str, subtitle: str, sections: Sequence[Section]) -> str:
    """Renders a page; what it is given as text is escaped, plots are not."""
    parts = [
        "<!doctype html>",
        f'<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>',
        f"<style>{_STYLE}</style></head><body>",
        f"<h1>{escape(title)}</h1><p>{escape(subtitle)}</p>",
    ]
    for section in sections:
        parts += [f"<h2>{escape(section.title)}</h2>", f"<p>{escape(section.words)}</p>"]
        parts.append(section.plot)
        if section.rows:
            rows = (_render_row("td", row) for row in section.rows)
            parts.append(f"<table>{_render_row('th', section.head)}{''.join(rows)}</table>")
    return "\n".join((*parts, "</body></html>", ""))


def write_page(warehouse: Warehouse, name: str, page: str) -> str:
    """Writes a page to `<warehouse>/ops/<name>.html`, over the one before; returns its place."""
    place = join_names(warehouse.root, "ops", f"{name}.html")
    write_file(place, page.encode())
    return place


def plot(
    mark: Literal["bar", "line"],
    values: Sequence[Mapping[str, Any]],
    *,
    x: str,
    y: str,
    color: str,
    row: str | None = None,
    **encoding: Mapping[str, Any],
) -> str:
    """Plots values as SVG; says in its place what to install where nothing draws.

    Args:
        mark: bars of one place are stacked; lines have points unless these would be very many.
        values: by the names of their fields. Those of `x` are shown in the order in which they
            come.
        x: the field that goes to the right, of names.
        y: the field that goes up, of numbers.
        color: the field by which marks have colours, of names.
        row: the field of which each name has a plot of its own; None for one plot.
        encoding: more channels, as Vega-Lite has them.
    """
    try:
        import vl_convert
    except ImportError:
        return _NOT_DRAWN
    axis = {"labelOverlap": "greedy", "labelAngle": -30, "ticks": False, "title": None}
    channels: dict[str, Any] = {
        "x": {"field": x, "type": "ordinal", "sort": None, "axis": axis},
        "y": {"field": y, "type": "quantitative"},
        "color": {"field": color, "type": "nominal", "sort": None, "title": None},
        **encoding,
    }
    if row is not None:
        channels["row"] = {"field": row, "type": "nominal", "title": None, "sort": None}
    return vl_convert.vegalite_to_svg(
        {
            "data": {"values": list(values)},
            "mark": {"type": mark, "point": mark == "line" and len(values) < _MANY},
            "encoding": channels,
            "resolve": {"scale": dict.fromkeys(("x", "xOffset", "y"), "independent")},
            "width": _WIDTH,
            "height": _HEIGHT,
        }
    )


def _render_row(tag: str, values: Sequence[str | float]) -> str:
    cells = (f"<{tag}>{escape(_write(value))}</{tag}>" for value in values)
    return f"<tr>{''.join(cells)}</tr>"


def _write(value: str | float) -> str:
    if isinstance(value, float):
        return f"{value:,.2f}"
    return f"{value:,}" if isinstance(value, int) else value
