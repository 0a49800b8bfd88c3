"""Runs the commands of `docs/walkthrough.md` in a clone."""

import json
import re
from pathlib import Path

import pytest

from backfill_engine_tests.pages import run_page

pytestmark = pytest.mark.slow

FIVE_DAYS = [f"2013-01-{day}" for day in range(10, 15)]


@pytest.fixture(scope="module")
def outputs(clone: Path) -> list[str]:
    """What each command block printed, in order."""
    return run_page("walkthrough.md", cwd=clone)


def test_reconcile_names_the_five_days(outputs: list[str]) -> None:
    assert "raw/flights, and what follows from its source" in outputs[2]
    rows = [line for line in outputs[2].splitlines() if "│ 2013-01-" in line]
    assert len(rows) == 9
    differing = re.findall(r"raw/flights (\S+): .*the rows differ", outputs[2])
    assert differing == FIVE_DAYS


def test_diff_proves_that_only_these_days_changed(outputs: list[str]) -> None:
    assert "staging/flights: version 2 → 3" in outputs[4]
    assert "Nothing else changed" in outputs[4]
    assert "the 54 others kept their 54 files" in outputs[4]


def test_the_certificate_holds(outputs: list[str]) -> None:
    page, _, verified = outputs[5].partition("lines hold.")
    assert "raw/flights 2013-01-10 … 2013-01-14" in page
    assert "features/carrier_delays 2013-01-10 … 2013-01-14" in page
    assert "DOES NOT HOLD" not in verified


def test_after_the_rollback_nothing_differs_from_january(outputs: list[str]) -> None:
    assert "hold again what they held at version 1" in outputs[6]
    text, _, history = outputs[7].partition("\n}\n")
    difference = json.loads(text + "\n}")
    for partition in difference["partitions"].values():
        assert (partition["added"], partition["removed"], partition["changed"]) == (0, 0, 0)
        assert partition["rows_before"] == partition["rows_after"] > 0
    assert difference["untouched"]["outside"] == {}
    assert history.count("rollback") == 1
