"""Both versions of the features with each row `FEATURE_COPIES` times, under origins of their own.

So that there is more to serve than the year of flights gives. Their rules are left out: they are of
the year as it is.
"""

import os
from dataclasses import replace

from dagster import Definitions, in_process_executor
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from backfill_assets import assets
from backfill_assets.tables.flights import CARRIER_DELAYS, CARRIER_DELAYS_V2, STAGING_FLIGHTS
from backfill_engine.assembly import list_table_assets
from backfill_engine.building import build_defs
from backfill_engine.publishing.recipes import Compute
from backfill_engine.sources.input_window import InputWindow
from backfill_engine.table_assets import TableAsset

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


def _widen(declared: TableAsset) -> TableAsset:
    if declared.table not in VERSIONS:
        return declared
    return replace(
        declared,
        table=replace(declared.table, rules=()),
        compute=_multiply(declared.compute),
        count_source=None,
    )


defs = Definitions.merge(
    build_defs(
        [
            _widen(declared)
            for declared in list_table_assets([assets])
            if declared.table in (*VERSIONS, STAGING_FLIGHTS) or not declared.inputs
        ]
    ),
    Definitions(executor=in_process_executor),
)
