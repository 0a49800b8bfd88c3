"""Hostile text is shown as it is, in every medium: it is no markup, no link, no code, no line."""

import datetime as dt
import io
import re
from dataclasses import replace
from html import unescape

import pytest
from markdown_it import MarkdownIt
from rich.console import Console

from backfill_engine.cli.terminal import Grid, echo, echo_lines
from backfill_engine.escaping import (
    escape_markdown,
    write_code,
    write_code_block,
)
from backfill_engine.extras.pages import Section, render_page
from backfill_engine.extras.rehearsal.records import (
    Gates,
    Rehearsal,
    RehearsedPartition,
    RehearsedTable,
    describe_rehearsal,
)
from backfill_engine.extras.versions.promotions import DriftGates, Promotion, describe_promotion
from backfill_engine.orchestration.records.ui_pages import build_failure_metadata
from backfill_engine.proof.pages import VerifiedLine, render_certificate, render_lines
from backfill_engine_tests.proof.test_certificates import CERTIFICATE

HOSTILE = [
    "![i](http://evil.example/i.png)",
    "[click](javascript:alert(1))",
    "<img src=x onerror=alert(1)>",
    "<javascript:alert(1)>",
    "https://evil.example",
    "`code`` | **bold** | _x_ ~~y~~",
    "a|b\n| forged | row |",
    "a\r\n# forged heading",
    "[red]x[/] [link=http://evil.example]y[/link]",
    "\x1b[2J\x1b]8;;http://evil.example\x07x\x1b]8;;\x07",
    "\x9b31m\u202egnp.exe\u2028next\x00\udc80",
    "\\`x\\`",
    "```\nout of the block\n```",
]


PARSER = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
OURS = {"h1", "h2", "h3", "p", "strong", "em", "code", "pre", "ul", "li"}
TABLE = {"table", "thead", "tbody", "tr", "th", "td"}


def find_tags(html: str) -> set[str]:
    return set(re.findall(r"<(\w+)", html))


@pytest.mark.parametrize("text", HOSTILE)
def test_in_markdown_nothing_of_it_is_markup(text: str) -> None:
    html = PARSER.render(
        f"- {escape_markdown(text)} {write_code(text)}\n\n{write_code_block(text)}"
    )
    assert find_tags(html) == {"ul", "li", "code", "pre"}
    assert html.count("<li>") == html.count("<pre>") == 1
    shown = unescape(html.partition("<code>")[0]).partition("<li>")[2].strip()
    assert "://" not in escape_markdown(text), "whatever looks for addresses finds none"
    if text.isprintable():
        assert shown == text


@pytest.mark.parametrize("text", HOSTILE)
def test_in_the_page_of_a_certificate_it_stays_in_its_cell(text: str) -> None:
    (published, withheld), (chunk,) = CERTIFICATE.partitions, CERTIFICATE.chunks
    row = replace(
        published, failures=text, accepted={"partition_is_stable": text}, notes={text: text}
    )
    plain = PARSER.render(
        render_certificate(replace(CERTIFICATE, features={"new_code": "said", "served": {}}))
    )
    forged = replace(
        CERTIFICATE,
        table_uri=text,
        row_filter=text,
        batch=text,
        features={text: text, "served": {text: text}},
        code_version=text,
        run_config={text: text},
        input_versions=dict.fromkeys([text, "landing/flights"], text),
        partitions=[replace(row, partition=text), replace(withheld, failures=text)],
        chunks=[replace(chunk, error=text, first=text)],
        touched_outside={text: [7]},
    )
    html = PARSER.render(render_certificate(forged))
    assert find_tags(html) <= OURS | TABLE
    for tag in ("<tr>", "<td", "<h1>", "<h2>"):
        assert html.count(tag) == plain.count(tag), tag


@pytest.mark.parametrize("text", HOSTILE)
def test_in_what_a_run_shows_it_is_text(text: str) -> None:
    verified = render_lines("raw/flights", [VerifiedLine(text, holds=False, found=text)])
    assert find_tags(PARSER.render(verified)) <= OURS
    (failure,) = build_failure_metadata(text, None).values()
    assert find_tags(PARSER.render(failure.md_str or "")) == {"pre", "code"}
    assert find_tags(PARSER.render(describe_rehearsal(build_rehearsal(text)))) <= OURS | TABLE
    assert find_tags(PARSER.render(describe_promotion(build_promotion(text)))) <= OURS


def build_rehearsal(text: str) -> Rehearsal:
    """With a withheld partition and a gate that is passed, by reasons that hold a text."""
    table = RehearsedTable("raw/flights", "", 3, (RehearsedPartition("1", withheld=text),))
    return Rehearsal("id", dt.datetime.now(tz=dt.UTC), text, Gates(), (table,), exceeded=(text,))


def build_promotion(text: str) -> Promotion:
    """With what is missing and what is beyond the gates, and a reason, that hold a text."""
    return Promotion(
        promotion_id="id",
        table="serving/carrier_delays",
        version=text,
        before=text,
        at=dt.datetime.now(tz=dt.UTC),
        by=text,
        why=text,
        partitions=1,
        gates=DriftGates(0.1, 0.1, 0.1),
        missing=(text,),
        accepted="",
    )


@pytest.mark.parametrize("text", HOSTILE)
def test_in_html_it_is_text(text: str) -> None:
    section = Section(text, text, head=(text,), rows=((text,),))
    html = render_page(text, text, [section])
    known = {"html", "head", "meta", "title", "style", "body", "h1", "h2", "p", *TABLE}
    assert find_tags(html) <= known
    assert " onerror" not in re.sub(r">[^<]*<", "><", html)


@pytest.mark.parametrize("text", HOSTILE)
def test_on_the_terminal_it_moves_nothing_and_is_no_markup(
    text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    echo(text)
    out, _ = capsys.readouterr()
    assert (out.count("\n"), out[:-1].isprintable()) == (1, True)
    echo_lines(text)
    out, _ = capsys.readouterr()
    assert out.replace("\n", "").isprintable()
    grid = Grid(text, title=text)
    grid.add_row(text)
    console = Console(file=io.StringIO(), force_terminal=True, color_system=None, width=300)
    console.print(grid)
    shown = console.file.getvalue()  # pyright: ignore[reportAttributeAccessIssue]
    assert re.sub(r"\x1b\[\d*m", "", shown).replace("\n", "").isprintable()
    if text.isprintable():
        assert shown.count(text) == 3, "markup and links are shown, not followed"
