"""A folder with data and without a log is no new table."""

import shutil
from pathlib import Path

import pytest

from backfill_engine.errors import TableError
from backfill_engine.lake.table_log import read_log
from backfill_engine.lake.writer import create_table
from backfill_engine_tests.lake.readings import READINGS
from backfill_engine_tests.pipeline.publishing import Lake
from backfill_engine_tests.shared_fixtures import build_days


def test_no_table_is_made_over_the_files_of_a_log_that_is_gone(lake: Lake) -> None:
    log = Path(lake.warehouse.uri(READINGS)) / "_delta_log"
    shutil.rmtree(log)
    with pytest.raises(TableError, match=r"no Delta log.*restore _delta_log from a copy, or move"):
        create_table(lake.spark, read_log(lake.warehouse, READINGS))
    with pytest.raises(TableError, match=r"no Delta log"):
        lake.overwrite_readings(build_days("2013-01-01"), "new")
    assert not log.exists(), "nothing was written"
