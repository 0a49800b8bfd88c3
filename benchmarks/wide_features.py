"""Both versions of the features with each row `FEATURE_COPIES` times, under origins of their own.

So that there is more to serve than the year of flights gives. Their rules are left out: they are of
the year as it is.
"""

import os
from dataclasses import replace

from dagster import Definitions, in_process_executor
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from backfill_assets.asset_definitions import build_asset
from backfill_assets.lake.input_window import InputWindow
from backfill_assets.pipelines import list_recipes, list_table_assets
from backfill_assets.publishing.recipes import Compute, Recipe
from backfill_assets.resources import build_resources
from backfill_assets.settings import read_settings
from backfill_assets.tables.flights import CARRIER_DELAYS, CARRIER_DELAYS_V2, STAGING_FLIGHTS

VERSIONS = (CARRIER_DELAYS, CARRIER_DELAYS_V2)
_COPIES = int(os.environ.get("FEATURE_COPIES", "1"))


def _multiply(compute: Compute) -> Compute:
    def multiply(window: InputWindow) -> DataFrame:
        """Multiplied."""
        copies = F.explode(F.sequence(F.lit(0), F.lit(_COPIES - 1)))
        rows = compute(window).withColumn("_copy", copies)
        # The first copy is the row as it is, so that flights find their features.
        other = F.concat("origin", F.col("_copy").cast("string"))
        origin = F.when(F.col("_copy") == 0, F.col("origin")).otherwise(other)
        return rows.withColumn("origin", origin).drop("_copy")

    return multiply


def _build_recipe(key: str) -> Recipe:
    recipe = list_recipes()[key]
    return replace(
        recipe,
        table=replace(recipe.table, rules=()),
        compute=_multiply(recipe.compute),
        count_source=None,
    )


defs = Definitions(
    assets=[
        build_asset(
            _build_recipe(declared.table.key)
            if declared.table in VERSIONS
            else list_recipes()[declared.table.key],
            declared.inputs,
        )
        for declared in list_table_assets()
        if declared.table in (*VERSIONS, STAGING_FLIGHTS) or not declared.inputs
    ],
    resources=build_resources(read_settings()),
    executor=in_process_executor,
)
