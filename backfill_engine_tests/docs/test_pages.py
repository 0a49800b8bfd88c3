"""What the pages point at exists, and the page of settings names all of them."""

import re
from pathlib import Path

import pytest

from backfill_assets.tables.order_buckets import OrderSettings
from backfill_engine.settings import Settings

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
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
