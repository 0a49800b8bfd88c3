"""A folder with data and without a log is no new table."""

import shutil
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from backfill_engine.errors import TableError
from backfill_engine.lake.table_log import read_log
from backfill_engine.lake.warehouse import Warehouse
from backfill_engine.lake.writer import create_table
from backfill_engine_tests.lake.readings import READINGS, build_rows, overwrite_readings
from backfill_engine_tests.shared_fixtures import build_days

DAYS = build_days("2013-01-01", 1)


def test_no_table_is_made_over_the_files_of_a_log_that_is_gone(
    spark: SparkSession, warehouse: Warehouse
) -> None:
    create_table(spark, read_log(warehouse, READINGS))
    overwrite_readings(spark, warehouse, DAYS, build_rows(DAYS, "old"))
    log = Path(warehouse.uri(READINGS)) / "_delta_log"
    shutil.rmtree(log)
    with pytest.raises(TableError, match=r"no Delta log.*restore _delta_log from a copy, or move"):
        create_table(spark, read_log(warehouse, READINGS))
    with pytest.raises(TableError, match=r"no Delta log"):
        overwrite_readings(spark, warehouse, DAYS, build_rows(DAYS, "new"))
    assert not log.exists(), "nothing was written"
