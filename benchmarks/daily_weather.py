"""The weather pipeline with `raw/weather` by day instead of by hour, and flights as they are.

What hours are measured against: the same reports, columns and rules but for the rows that a
partition may have. The landing zone has a folder a day: `weather_days.land_days` makes it of one
with a folder an hour.
"""

from dataclasses import replace

from dagster import Definitions, in_process_executor
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from backfill_assets.asset_definitions import build_asset
from backfill_assets.grains.days import DAYS
from backfill_assets.lake.input_window import InputWindow
from backfill_assets.pipelines import list_recipes, list_table_assets
from backfill_assets.publishing.code_versions import compute_code_version
from backfill_assets.publishing.recipes import Recipe
from backfill_assets.resources import build_resources
from backfill_assets.rules.row_count import RowCount
from backfill_assets.settings import read_settings
from backfill_assets.table_assets import TableAsset
from backfill_assets.tables.declarations import Table
from backfill_assets.tables.flights import RAW_FLIGHTS, STAGING_FLIGHTS
from backfill_assets.tables.weather import (
    DEPARTURE_CONDITIONS,
    RAW_WEATHER,
    REPORT_FIELDS,
    STAGING_WEATHER,
    STATIONS,
)
from backfill_assets.transforms.landed_rows import build_landed_rows

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


def _put_days(table: Table) -> Table:
    return DAILY_WEATHER if table.key == RAW_WEATHER.key else table


def _build_recipe(declared: TableAsset) -> Recipe:
    recipe = list_recipes()[declared.table.key]
    if recipe.table.key == RAW_WEATHER.key:
        version = compute_code_version(build_daily_weather, DAILY_WEATHER, recipe.landing)
        return replace(
            recipe, table=DAILY_WEATHER, compute=build_daily_weather, code_version=version
        )
    return replace(recipe, inputs=tuple(map(_put_days, recipe.inputs)))


defs = Definitions(
    assets=[
        build_asset(_build_recipe(declared), declared.inputs)
        for declared in list_table_assets()
        if declared.table in _PUBLISHED
    ],
    resources=build_resources(read_settings()),
    executor=in_process_executor,
)
