"""Runs the commands of `docs/write-modes.md` in a clone."""

from pathlib import Path

import pytest

from backfill_engine.lake.table_log import read_log
from backfill_engine.lake.warehouse import Warehouse
from backfill_engine_tests.commands import Project
from backfill_engine_tests.pages import run_page
from backfill_engine_tests.project import STAGING_FLIGHTS

pytestmark = pytest.mark.slow


def test_the_page_does_what_it_says(clone: Path, project: Project) -> None:
    before = project.read_checksums()
    outputs = run_page("write-modes.md", cwd=clone)
    log = read_log(Warehouse(str(project.warehouse)), STAGING_FLIGHTS)
    by_column, by_filter = (commit.record for commit in log.commits[:2])
    assert by_column is not None
    assert (by_column.write_mode, len(by_column.rows)) == ("merge", 5)
    assert by_column.row_filter == (
        "`landing_date` >= DATE '2013-01-03' AND `landing_date` < DATE '2013-01-05'"
    )
    assert "published: 5 of 5 of staging/flights" in outputs[1]
    record = by_filter
    assert record is not None
    assert (record.write_mode, len(record.rows)) == ("merge", 10)
    assert record.row_filter == "origin = 'JFK' AND dep_delay IS NOT NULL"
    assert project.read_checksums() == before, "merging what is there changes nothing"
    assert outputs[2] == "", "no incremental run yet"
    assert outputs[3].splitlines()[-1].startswith("raw/flights\tbefore 2013-01-04\t")
