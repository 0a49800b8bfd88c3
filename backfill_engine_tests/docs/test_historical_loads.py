"""Runs the commands of `docs/historical-loads.md` in a clone."""

from pathlib import Path

import pytest

from backfill_engine.lake.table_log import read_log
from backfill_engine.lake.warehouse import Warehouse
from backfill_engine_tests.commands import Project
from backfill_engine_tests.pages import run_page
from backfill_engine_tests.project import CARRIER_DELAYS, RAW_FLIGHTS, STAGING_FLIGHTS

pytestmark = pytest.mark.slow


def test_the_page_takes_a_leap_year_in(clone: Path, project: Project) -> None:
    planned, taken, idle, computed = run_page("historical-loads.md", cwd=clone)
    assert "366 missing" in planned
    assert "published: 366 of 366 of raw/flights" in taken
    assert "nothing is to be run" in idle
    assert "held back: published 11 of 11 of staging/flights, 5 of 11 of features" in computed
    warehouse = Warehouse(str(project.warehouse))
    raw = read_log(warehouse, RAW_FLIGHTS)
    assert len([day for day in raw.publishes if day < "2013"]) == 366
    assert "2012-02-29" in read_log(warehouse, STAGING_FLIGHTS).publishes
    assert min(read_log(warehouse, CARRIER_DELAYS).publishes) == "2012-02-26"
