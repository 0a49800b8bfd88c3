"""How far watermarks lag, in days or buckets."""

import datetime as dt

import pytest

from backfill_engine.extras.health.table_health import measure_lag
from backfill_engine.lake.watermarks import Watermark
from backfill_engine.tables.declarations import Table
from backfill_engine_tests.project import CATALOG, RAW_FLIGHTS, RAW_ORDERS, RAW_WEATHER

MOVED_AT = dt.datetime(2013, 1, 9, tzinfo=dt.UTC)


@pytest.mark.parametrize(
    ("table", "next_key", "last_key", "behind", "unit"),
    [
        (RAW_FLIGHTS, "2013-01-08", "2013-01-09", 2, "days"),
        (RAW_FLIGHTS, "2013-01-10", "2013-01-09", 0, "days"),
        (RAW_FLIGHTS, "2013-01-15", "2013-01-09", 0, "days"),
        (RAW_WEATHER, "2013-01-09-12:00", "2013-01-09-23:00", 0.5, "days"),
        (CATALOG.find_table(RAW_ORDERS.key), "0200000", "0400000", 3, "buckets"),
    ],
)
def test_a_lag_goes_to_the_end_of_the_last_partition(
    table: Table, next_key: str, last_key: str, behind: float, unit: str
) -> None:
    number = table.grain.find_number(table.grain.find_start(next_key))
    watermark = Watermark(table.key, next_key, number, "run", MOVED_AT)
    lag = measure_lag(table, watermark, last_key)
    assert (lag.behind, lag.unit) == (behind, unit)
