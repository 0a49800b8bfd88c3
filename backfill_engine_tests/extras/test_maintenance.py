"""Maintenance joins small files, drops what is old, and is never taken for a change."""

import datetime as dt
from collections.abc import Sequence
from dataclasses import replace

import pytest
from pyspark.sql import SparkSession

from backfill_engine.extras.comparison.diffs import diff_table
from backfill_engine.extras.maintenance import maintain_table
from backfill_engine.lake.partitions import Partition, build_predicate
from backfill_engine.lake.table_log import read_log
from backfill_engine.lake.warehouse import Warehouse
from backfill_engine.lake.writer import create_table, optimize_partitions
from backfill_engine.publishing.recipes import Recipe
from backfill_engine_tests.lake.readings import READINGS, build_frame, build_rows, read_rows
from backfill_engine_tests.pipeline.publishing import Lake
from backfill_engine_tests.pipeline.running import RAW, Pipeline, list_days
from backfill_engine_tests.project import RAW_FLIGHTS
from backfill_engine_tests.shared_fixtures import build_days

pytestmark = pytest.mark.only_spark  # OPTIMIZE.

SCATTERED = build_days("2013-01-04", 2)
FINAL = build_days("2013-01-01", 12)
LONG_AGO = dt.date(2000, 1, 1)


def scatter(spark: SparkSession, warehouse: Warehouse, days: Sequence[Partition]) -> None:
    """Rewrites days of raw as three files each, as many small appends would leave them."""
    uri = warehouse.uri(RAW_FLIGHTS)
    where = build_predicate(RAW_FLIGHTS.partition_by, (day.slice for day in days))
    rows = spark.read.format("delta").load(uri).where(where).repartition(3)
    rows.write.format("delta").mode("overwrite").option("replaceWhere", where).save(uri)


def test_small_files_of_final_partitions_are_joined_and_nothing_is_changed_by_it(
    spark: SparkSession, pipeline: Pipeline
) -> None:
    warehouse = pipeline.warehouse
    scatter(spark, warehouse, SCATTERED)
    before = pipeline.read_contents_checksums(RAW_FLIGHTS)
    log = read_log(warehouse, RAW_FLIGHTS)
    done = maintain_table(spark, warehouse, RAW_FLIGHTS, FINAL[:4], keep_aside_since=LONG_AGO)
    assert (done.optimized, done.files_before, done.files_after) == ((SCATTERED[0].key,), 3, 1)
    assert log.reread().count_folder_files()[SCATTERED[1].key] == 3, "not final yet"
    assert pipeline.read_contents_checksums(RAW_FLIGHTS) == before

    seen = diff_table(log.reread(), FINAL[9:], before=str(log.version))
    assert seen.after > log.version
    assert seen.untouched.holds
    assert all(partition.equal for partition in seen.partitions.values())
    again = maintain_table(spark, warehouse, RAW_FLIGHTS, FINAL[:4], keep_aside_since=LONG_AGO)
    assert again.optimized == ()


def test_versions_within_the_retention_stay_readable(
    spark: SparkSession, pipeline: Pipeline
) -> None:
    first = pipeline.read_rows(RAW_FLIGHTS)
    scatter(spark, pipeline.warehouse, SCATTERED)
    maintain_table(spark, pipeline.warehouse, RAW_FLIGHTS, FINAL, keep_aside_since=LONG_AGO)
    rows = pipeline.warehouse.open(RAW_FLIGHTS, version=1).to_pyarrow_table().to_pylist()
    assert sorted(rows, key=str) == first


@pytest.mark.slow
@pytest.mark.by_hand
def test_old_withheld_and_rejected_rows_are_dropped(
    spark: SparkSession, pipeline: Pipeline
) -> None:
    pipeline.zone.add_lines("2013-01-05", *["{"] * 5)
    run = pipeline.run(RAW, first="2013-01-05", last="2013-01-05")
    assert not run.success
    today = dt.datetime.now(tz=dt.UTC).date()
    for since, dropped in ((today, 0), (today + dt.timedelta(days=1), 125)):
        done = maintain_table(spark, pipeline.warehouse, RAW_FLIGHTS, (), keep_aside_since=since)
        assert done.pruned == dropped


def test_a_run_publishes_though_its_partitions_are_optimized_meanwhile(
    spark: SparkSession, warehouse: Warehouse
) -> None:
    create_table(spark, read_log(warehouse, READINGS))
    days, lake = build_days("2013-01-01", 2), Lake(spark, warehouse)
    slices = [day.slice for day in days]
    scattered = Recipe(
        READINGS, lambda window: build_frame(window.spark, build_rows(days, "old")).repartition(4)
    )
    lake.publish(scattered, days, run_id="first")

    def optimize_and_compute(window):
        optimize_partitions(spark, warehouse, READINGS, slices)
        return build_frame(window.spark, build_rows(days, "new"))

    results = lake.publish(replace(scattered, compute=optimize_and_compute), days, run_id="second")
    assert all(result.version is not None for result in results)
    assert {value for _, _, value in read_rows(warehouse)} == {"new"}


def test_the_job_maintains_all_tables(spark: SparkSession, pipeline: Pipeline) -> None:
    scatter(spark, pipeline.warehouse, SCATTERED)
    pipeline.run_job("maintain", "maintain_tables").confirm()
    files = read_log(pipeline.warehouse, RAW_FLIGHTS).count_folder_files()
    assert files == dict.fromkeys(list_days(1, 12), 1)
    assert pipeline.find_days(RAW, "MATERIALIZED") == list_days(1, 12)
