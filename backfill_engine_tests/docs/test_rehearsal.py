"""Runs the commands of `docs/rehearsal.md` in a clone."""

from pathlib import Path

import pytest

from backfill_engine.lake.table_log import read_log
from backfill_engine.lake.warehouse import Warehouse
from backfill_engine_tests.commands import Project
from backfill_engine_tests.pages import run_page
from backfill_engine_tests.pipeline.running import list_days
from backfill_engine_tests.project import CARRIER_DELAYS, RAW_FLIGHTS, STAGING_FLIGHTS

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def outputs(clone: Path) -> list[str]:
    """What each command block printed, in order."""
    return run_page("rehearsal.md", cwd=clone)


def test_each_block_says_what_the_page_promises(outputs: list[str]) -> None:
    _, _, rehearsed, applied, proof, pinned = outputs
    assert "raw/flights: 5 partitions, 0 as published" in rehearsed
    assert "arr_delay" in rehearsed
    assert "beyond the gates" not in rehearsed
    assert "withheld" not in rehearsed
    assert "published: 5 of 5 of raw/flights" in applied
    assert "the rows differ" not in proof
    assert pinned.count("yes") == 2


@pytest.mark.usefixtures("outputs")
def test_only_the_days_that_were_shown_changed(project: Project) -> None:
    warehouse = Warehouse(str(project.warehouse))
    changed = {
        table.key: set(read_log(warehouse, table).commits[0].record.rows)  # type: ignore[union-attr]
        for table in (RAW_FLIGHTS, STAGING_FLIGHTS, CARRIER_DELAYS)
    }
    assert changed == {
        RAW_FLIGHTS.key: {*list_days(10, 14)},
        STAGING_FLIGHTS.key: {*list_days(8, 14)},
        CARRIER_DELAYS.key: {*list_days(8, 20)},
    }
