"""The sections of the page of performance that a benchmark rewrites, each between its markers."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

PAGE = "performance.md"
"""The page, beside the folder of results."""


def write_results(results: Mapping[str, Any], path: Path) -> None:
    """Writes results as JSON, with the folders that it takes."""
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(results, indent=2, ensure_ascii=False) + "\n"
    path.write_text(text, encoding="utf-8")


def write_section(section: str, folder: Path, *, markers: tuple[str, str]) -> None:
    """Writes a section within the page beside a folder; its other text stays.

    A page that lacks the markers gets them at its end.
    """
    page = folder.with_name(PAGE)
    text = page.read_text(encoding="utf-8") if page.exists() else "# Performance\n"
    if markers[0] not in text:
        text = f"{text}\n{markers[0]}\n{markers[1]}\n"
    before, begin, rest = text.partition(markers[0])
    _, end, after = rest.partition(markers[1])
    if not end:
        raise ValueError(f"{page} has {markers[0]} without {markers[1]}")
    page.write_text(f"{before}{begin}\n{section}\n{end}{after}", encoding="utf-8")
