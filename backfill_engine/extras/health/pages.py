"""Pages of HTML that need nothing beside them: words, tables, and plots as SVG within."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

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
td.figure, th.figure { text-align: right; font-variant-numeric: tabular-nums; }
svg { max-width: 100%; height: auto; }
"""


@dataclass(frozen=True)
class Section:
    """One part of a page.

    Attributes:
        title: its heading.
        words: what it shows, in a sentence or two.
        plot: SVG; empty if there is nothing to plot.
        head: of its table; empty without one.
        rows: of its table; numbers are set right.
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
        parts.append(f"<h2>{escape(section.title)}</h2>")
        parts += [f"<p>{escape(section.words)}</p>"] if section.words else []
        parts += [section.plot] if section.plot else []
        parts += [_render_table(section)] if section.rows else []
    return "\n".join((*parts, "</body></html>", ""))


def write_page(warehouse: Warehouse, name: str, page: str) -> str:
    """Writes a page to `<warehouse>/ops/<name>.html`, over the one before; returns its place."""
    place = join_names(warehouse.root, "ops", f"{name}.html")
    write_file(place, page.encode())
    return place


def _render_table(section: Section) -> str:
    figures = [isinstance(value, int | float) for value in section.rows[0]]
    head = _render_row("th", section.head, figures)
    rows = (_render_row("td", row, figures) for row in section.rows)
    return f"<table>{head}{''.join(rows)}</table>"


def _render_row(tag: str, values: Sequence[str | float], figures: Sequence[bool]) -> str:
    cells = (
        f"<{tag}{' class=figure' if figure else ''}>{escape(_write(value))}</{tag}>"
        for value, figure in zip(values, figures, strict=True)
    )
    return f"<tr>{''.join(cells)}</tr>"


def _write(value: str | float) -> str:
    if isinstance(value, float):
        return f"{value:,.2f}"
    return f"{value:,}" if isinstance(value, int) else value
