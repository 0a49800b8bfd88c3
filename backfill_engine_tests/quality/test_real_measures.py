"""What pandas measures of real days is what Spark does."""

import datetime as dt
from typing import Any

import numpy as np
import pandas as pd
import pytest
from pyspark.sql import SparkSession

from backfill_engine.lake.partitions import build_partitions
from backfill_engine.quality.measures import measure_partitions
from backfill_engine.tables.declarations import Table, build_ddl
from backfill_engine_tests.project import (
    CARRIER_DELAYS,
    CARRIER_DELAYS_V2,
    DEPARTURE_CONDITIONS,
    STAGING_FLIGHTS,
    STAGING_WEATHER,
    TRAINING_EXAMPLES,
)
from backfill_engine_tests.quality.real_measures import measure
from backfill_engine_tests.quality.real_years import CUSTOMER_ORDERS, FRAMES

READERS = {
    "DATE": lambda value: dt.date.fromisoformat(str(value)[:10]),
    "TIMESTAMP": lambda value: pd.Timestamp(value).tz_convert("UTC").to_pydatetime(),
    "STRING": str,
    "DOUBLE": float,
    "BOOLEAN": bool,
}
"""From what pandas holds to what Spark takes, by type; integers else."""


@pytest.mark.parametrize(
    ("table", "key", "broken"),
    [
        (STAGING_FLIGHTS, "2013-02-08", ("dep_delay", "arr_delay", "hour", "air_time")),
        (CARRIER_DELAYS, "2013-02-08", ("mean_arr_delay_7d", "cancelled_7d")),
        (CARRIER_DELAYS_V2, "2013-02-08", ("mean_arr_delay_7d", "cancelled_7d")),
        (TRAINING_EXAMPLES, "2013-02-08", ("arr_delay", "flights_7d")),
        (STAGING_WEATHER, "2013-11-03", ("temp", "wind_gust")),
        (DEPARTURE_CONDITIONS, "2013-02-08", ("dewp", "wind_gust", "dep_delay")),
        (CUSTOMER_ORDERS, "0050000", ("net_cents", "lines")),
    ],
    ids=lambda value: getattr(value, "key", None),
)
def test_pandas_measures_what_spark_does(
    spark: SparkSession, table: Table, key: str, broken: tuple[str, ...]
) -> None:
    year = FRAMES[table]()
    day = year.loc[year[table.partition_by] == key]
    for column in broken:
        wrong = np.arange(len(day)) % 3 == 0
        day = day.assign(**{column: day[column].mask(wrong, -day[column] // 2 + 7)})
    if table is STAGING_FLIGHTS:
        day = day.assign(tailnum=day["tailnum"].mask(day["dep_delay"] > 60))
    if table is DEPARTURE_CONDITIONS:
        day = day.assign(observed_at=day["observed_at"] + pd.Timedelta(minutes=50))
    rows = [
        tuple(_read(row.get(column.name), column.type) for column in table.columns)
        for row in day.to_dict("records")
    ]
    frame = spark.createDataFrame(rows, build_ddl(table.columns, constraints=False))
    (found,) = measure_partitions(frame, table, build_partitions(table, [key])).values()
    expected = measure(day, table)
    assert len(expected.figures) >= 10
    assert {figure: found.figures[figure] for figure in expected.figures} == expected.figures


def _read(value: Any, type: str) -> Any:
    return None if value is None or pd.isna(value) else READERS.get(type, int)(value)
