"""What is begun ahead spares the next commit something, and never stands in its way."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from backfill_engine.errors import TableError
from backfill_engine.lake.table_log import read_log
from backfill_engine.lake.warehouse import Warehouse
from backfill_engine.lake.writer import create_table, prepare_ahead
from backfill_engine_tests.lake.readings import READINGS, build_rows, read_rows
from backfill_engine_tests.pipeline.publishing import Lake
from backfill_engine_tests.shared_fixtures import build_days, count_jobs

pytestmark = pytest.mark.only_spark  # Spark's reading of logs.

WEEK = build_days("2013-01-01", 7)


def test_a_commit_goes_over_the_log_once_less(lake: Lake) -> None:
    jobs: list[int] = []
    for value in ("begun then", "begun ahead"):
        if value == "begun ahead":
            prepare_ahead(lake.spark, read_log(lake.warehouse, READINGS)).join()
        before = count_jobs(lake.spark)
        lake.overwrite_readings(WEEK, value)
        jobs.append(count_jobs(lake.spark) - before)
        assert read_rows(lake.warehouse) == build_rows(WEEK, value)
    then, ahead = jobs
    assert ahead <= then - 3


def test_queries_beside_it_are_compiled_as_ever(lake: Lake) -> None:
    settings = ("spark.sql.codegen.factoryMode", "spark.sql.adaptive.enabled")
    before = [lake.spark.conf.get(name) for name in settings]
    prepare_ahead(lake.spark, read_log(lake.warehouse, READINGS)).join()
    assert [lake.spark.conf.get(name) for name in settings] == before == ["FALLBACK", "true"]


def test_a_table_is_created_once_whoever_waits_for_it(
    spark: SparkSession, warehouse: Warehouse
) -> None:
    log = read_log(warehouse, READINGS)
    thread = prepare_ahead(spark, log)
    create_table(spark, log)
    assert log.reread().version == 0
    thread.join()
    assert [commit.operation for commit in log.reread().commits] == ["CREATE TABLE"]


def test_what_goes_wrong_ahead_goes_wrong_again_where_it_is_waited_for(
    spark: SparkSession, tmp_path: Path
) -> None:
    log = read_log(Warehouse(str(tmp_path)), READINGS)
    (tmp_path / "raw").touch()
    prepare_ahead(spark, log).join()
    with pytest.raises(TableError, match="can't be looked for"):
        create_table(spark, log)
