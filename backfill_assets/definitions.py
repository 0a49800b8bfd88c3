"""Assembles the code location; nothing else is in here."""

from dagster import Definitions, in_process_executor, load_assets_from_modules

from backfill_assets.assets import flights
from backfill_assets.resources import build_resources
from backfill_assets.settings import read_settings

defs = Definitions(
    assets=load_assets_from_modules([flights]),
    resources=build_resources(read_settings()),
    # All steps of a run in one process, so that they share one Spark session.
    executor=in_process_executor,
)
