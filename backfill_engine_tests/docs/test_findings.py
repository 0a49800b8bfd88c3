"""The page has the findings of the code, each with its words, and the code has no others."""

import ast
import copy
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

import backfill_engine
from backfill_engine.rules.column_rules import VALUES
from backfill_engine.rules.count_rules import ROW_COUNT
from backfill_engine.rules.finding_names import FindingName, find_name, forget, list_names
from backfill_engine.rules.verdicts import Check
from backfill_engine_tests.project import CATALOG

ROOT = Path(backfill_engine.__file__).parent
PAGE = ROOT.parent / "docs" / "findings.md"
WIDTH = 120
MAKERS = {"Finding": 0, "without_baseline": 0, "withhold": 1, "_judge": 0}
"""Functions that make a finding, and which of their arguments is its name."""


def list_lines() -> list[str]:
    """The findings of the page, below a heading for each check."""
    lines = []
    for check in Check:
        lines += [f"## {check.removeprefix('partition_is_').capitalize()}", ""]
        for name in list_names(check):
            bound = "" if name.bound == "0" else f"; bound: {name.bound}"
            cure = name.cure[0].upper() + name.cure[1:]
            text = f"- `{name}`: {name.meaning}{bound}. {cure}."
            lines += textwrap.wrap(text, WIDTH, subsequent_indent="  ", break_on_hyphens=False)
        lines.append("")
    return lines[:-1]


def list_named() -> Iterator[tuple[str, ast.expr]]:
    """Where a finding is made, and what names it."""
    for path in sorted(ROOT.rglob("*.py")):
        if "project_template" in path.parts:
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call):
                continue
            function = node.func
            name = function.attr if isinstance(function, ast.Attribute) else ""
            place = MAKERS.get(function.id if isinstance(function, ast.Name) else name)
            if place is not None and len(node.args) > place:
                yield f"{path.name}:{node.lineno}", node.args[place]


def test_the_page_has_each_finding_with_the_words_of_the_code() -> None:
    page = PAGE.read_text(encoding="utf-8")
    found = "\n".join(list_lines()) + "\n"
    assert page.endswith(found), f"write these:\n{found}"


def test_all_findings_are_made_by_a_name_of_the_list() -> None:
    named = dict(list_named())
    assert len(named) > 25
    texts = [
        place for place, name in named.items() if isinstance(name, ast.Constant | ast.JoinedStr)
    ]
    assert texts == []


def test_a_finding_is_found_by_its_name_and_without_its_column() -> None:
    assert VALUES.of("litres") == "values(litres)"
    assert find_name("values(litres)") is VALUES
    assert find_name("row_count") is ROW_COUNT
    assert find_name("row_counts") is None


def test_a_rule_of_a_project_names_its_findings_itself() -> None:
    odd = FindingName(
        "odd_rows", Check.VALID, meaning="rows of odd number", bound="0", cure="land them again"
    )
    assert find_name("odd_rows(meter)") is odd
    assert odd in list_names(Check.VALID)
    assert type(copy.deepcopy(odd)) is str
    forget(odd)
    assert find_name("odd_rows") is None


@pytest.mark.parametrize("table", CATALOG.tables, ids=lambda table: table.key)
def test_each_check_of_a_table_has_findings_to_describe(table) -> None:
    assert all(list_names(rule.check) for rule in table.all_rules)
