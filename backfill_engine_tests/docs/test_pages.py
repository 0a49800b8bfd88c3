"""What the pages point at exists, and the page of settings names all of them."""

import re
from pathlib import Path

import pytest

from backfill_assets.tables.order_buckets import OrderSettings
from backfill_engine.settings import Settings
from backfill_engine_tests.pages import list_pages

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
ELSEWHERE = {
    "clusters.md": "a cluster of Spark: spark/test_spark_cluster.py",
    "deploy.md": "images: deploy/test_compose.py",
    "object-stores.md": "a store, and its keys: orchestration/test_object_stores.py",
    "../CONTRIBUTING.md": "for who works on this",
}
"""Pages whose commands need what a clone doesn't have, and what tests that instead."""
_LINK = re.compile(r"\]\(([^)#\s]*)(?:#([^)\s]*))?\)")
_HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)


def list_anchors(page: Path) -> set[str]:
    """Returns the anchors that GitHub gives the headings of a page."""
    headings = _HEADING.findall(page.read_text())
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_of_a_page_lead_somewhere(page: Path) -> None:
    for path, anchor in _LINK.findall(page.read_text()):
        if "://" in path:
            continue
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), path
        assert not anchor or anchor in list_anchors(target), f"{path}#{anchor}"


def test_the_commands_of_every_other_page_are_run() -> None:
    tests = "".join(path.read_text() for path in Path(__file__).parent.glob("test_*.py"))
    run = re.findall(r'(?:run_page\(|^PAGE = )"([^"]+)"', tests, re.MULTILINE)
    assert {*list_pages()} == {*run, *ELSEWHERE}


def test_the_page_of_settings_names_each_with_its_default() -> None:
    rows = re.findall(
        r"^\| (`(?:BACKFILL|SPARK)_[^|]*) \| ([^|]*) \|",
        (ROOT / "docs/settings.md").read_text(),
        re.MULTILINE,
    )
    documented = {
        name: default.strip("` ")
        for names, defaults in rows
        for name, default in zip(names.split(", "), defaults.split(", "), strict=False)
        for name in [name.strip("` ")]
    }
    declared = {
        str(field.validation_alias or f"BACKFILL_{name.upper()}"): field.default
        for name, field in {**Settings.model_fields, **OrderSettings.model_fields}.items()
        if name != "s3"  # the names of AWS, on a line of their own
    }
    assert set(documented) == set(declared)
    for name, default in declared.items():
        texts = {str(default), f"{default:,}".replace(",", "") if isinstance(default, int) else ""}
        if default is None or default == ():
            texts = {"unset", "user cache"}
        if default == 2**30:
            texts = {"1 GiB"}
        assert documented[name] in texts, name
