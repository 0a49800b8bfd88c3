"""How long the rows of withheld partitions are kept."""

import datetime as dt

import pytest
from pyspark.sql import SparkSession

from backfill_engine.lake.side_tables import build_withheld_table
from backfill_engine.lake.table_log import read_log
from backfill_engine.lake.warehouse import Warehouse
from backfill_engine.lake.writer import create_table
from backfill_engine.publishing.recipes import Recipe
from backfill_engine_tests.lake.readings import READINGS, build_frame, build_rows
from backfill_engine_tests.pipeline.publishing import Lake
from backfill_engine_tests.shared_fixtures import build_days

DAYS = build_days("2013-01-01", 2)


def read_withheld(warehouse: Warehouse) -> list[tuple[str, str]]:
    """Run and partition of each withheld row."""
    rows = warehouse.open(build_withheld_table(READINGS)).to_pyarrow_table().to_pylist()
    return sorted((row["run_id"], row["partition_key"]) for row in rows)


@pytest.mark.slow
@pytest.mark.by_hand
def test_they_are_pruned_by_the_age_of_the_run(spark: SparkSession, warehouse: Warehouse) -> None:
    create_table(spark, read_log(warehouse, READINGS))
    lake = Lake(spark, warehouse)
    # A row of each day twice, so that its key isn't unique.
    recipe = Recipe(
        READINGS,
        lambda window: build_frame(window.spark, 2 * build_rows(window.partitions, "bad", ids=1)),
    )
    first, second = ([day] for day in DAYS)
    lake.publish(recipe, first, run_id="old", today=dt.date(2013, 2, 1))
    lake.publish(recipe, second, run_id="newer", today=dt.date(2013, 2, 2))
    old, newer = 2 * [("old", DAYS[0].key)], 2 * [("newer", DAYS[1].key)]
    assert read_withheld(warehouse) == newer + old
    # They are kept for 30 days, to the day.
    lake.publish(recipe, second, run_id="on-time", today=dt.date(2013, 3, 3))
    on_time = 2 * [("on-time", DAYS[1].key)]
    assert read_withheld(warehouse) == newer + old + on_time
    lake.publish(recipe, second, run_id="too-late", today=dt.date(2013, 3, 4))
    assert read_withheld(warehouse) == newer + on_time + 2 * [("too-late", DAYS[1].key)]
