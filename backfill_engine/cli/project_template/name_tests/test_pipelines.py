"""The pipelines: what is computed, on tiny frames, and that the definitions load."""

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from {{name}}.definitions import defs
from {{name}}.pipelines.readings import fill_litres, sum_days


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    session = SparkSession.builder.master("local[1]").getOrCreate()
    yield session
    session.stop()


def test_litres_add_up_and_unread_ones_count_as_none(spark: SparkSession) -> None:
    rows = [("2024-01-01", 1, "t1", 2.5), ("2024-01-01", 1, "t2", None)]
    readings = spark.createDataFrame(rows, "landing_date string, meter int, read_at string, litres double")
    (day,) = sum_days(fill_litres(readings)).collect()
    assert (day.meter, day.readings, day.litres) == (1, 2, 2.5)


def test_the_definitions_load() -> None:
    keys = {key.to_user_string() for key in defs.resolve_asset_graph().get_all_asset_keys()}
    assert {"bronze/readings", "silver/readings", "gold/meter_days"} <= keys
