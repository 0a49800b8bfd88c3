"""The weather pipeline with `raw/weather` by day instead of by hour, and flights as they are.

What hours are measured against: the same reports, columns and rules but for the rows that a
partition may have. The landing zone has a folder a day: `weather_days.land_days` makes it of one
with a folder an hour.
"""

from dataclasses import replace

from dagster import Definitions, in_process_executor
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from backfill_assets import assets
from backfill_assets.tables.flights import RAW_FLIGHTS, STAGING_FLIGHTS
from backfill_assets.tables.weather import (
    DEPARTURE_CONDITIONS,
    RAW_WEATHER,
    REPORT_FIELDS,
    STAGING_WEATHER,
    STATIONS,
)
from backfill_engine.assembly import list_table_assets
from backfill_engine.building import build_defs
from backfill_engine.grains.dates import DAYS
from backfill_engine.rules.count_rules import RowCount
from backfill_engine.sources.input_window import InputWindow
from backfill_engine.table_assets import TableAsset
from backfill_engine.transforms.landed_rows import build_landed_rows

DAILY_WEATHER = replace(
    RAW_WEATHER,
    partition_by="landing_date",
    grain=DAYS,
    folder_by=None,
    rules=(
        RowCount(at_most=24 * len(STATIONS)),
        *(rule for rule in RAW_WEATHER.rules if not isinstance(rule, RowCount)),
    ),
)
"""`raw/weather`, a partition a day."""

_PUBLISHED = (RAW_FLIGHTS, STAGING_FLIGHTS, RAW_WEATHER, STAGING_WEATHER, DEPARTURE_CONDITIONS)


def build_daily_weather(window: InputWindow) -> DataFrame:
    """One row per landed report; a partition is the day (UTC) in which it landed.

    The folder no longer says the hour: it is the report's.
    """
    lines = window.read_landing()
    is_other = F.to_date("time_hour") != F.col("landing_date")
    return build_landed_rows(
        lines,
        DAILY_WEATHER,
        REPORT_FIELDS,
        extra_fields=window.extra_fields,
        derived={"landing_hour": F.col("time_hour")},
        fault=F.when(is_other, "the report is of another day than it landed"),
    )


def _put_days(declared: TableAsset) -> TableAsset:
    if declared.table == RAW_WEATHER:
        return replace(declared, table=DAILY_WEATHER, compute=build_daily_weather)
    inputs = (
        replace(upstream, table=DAILY_WEATHER) if upstream.table == RAW_WEATHER else upstream
        for upstream in declared.inputs
    )
    return replace(declared, inputs=tuple(inputs))


defs = Definitions.merge(
    build_defs(
        [
            _put_days(declared)
            for declared in list_table_assets([assets])
            if declared.table in _PUBLISHED
        ]
    ),
    Definitions(executor=in_process_executor),
)
