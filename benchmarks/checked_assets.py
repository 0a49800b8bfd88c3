"""The empty assets with check evaluations: what these cost beside the rest of Dagster."""

from dagster import Definitions, in_process_executor

from benchmarks.empty_assets import NAMES, build_checked_asset

defs = Definitions(
    assets=[build_checked_asset(name) for name in NAMES], executor=in_process_executor
)
