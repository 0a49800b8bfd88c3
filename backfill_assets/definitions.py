"""Assembles the code location; nothing else is in here."""

from dagster import (
    AssetsDefinition,
    Definitions,
    in_process_executor,
    load_assets_from_package_module,
)

from backfill_assets import assets
from backfill_assets.asset_checks import build_readable_check
from backfill_assets.catalog import list_tables
from backfill_assets.jobs import maintain, maintain_nightly, reconcile, rollback_partitions
from backfill_assets.resources import build_resources
from backfill_assets.sensors import (
    continue_after_withheld,
    process_new_partitions,
    range_jobs,
    recover_dead_runs,
)
from backfill_assets.settings import read_settings

_assets = [
    one for one in load_assets_from_package_module(assets) if isinstance(one, AssetsDefinition)
]

defs = Definitions(
    assets=_assets,
    asset_checks=[build_readable_check(table, _assets) for table in list_tables()],
    jobs=[*range_jobs, rollback_partitions, reconcile, maintain],
    schedules=[maintain_nightly],
    sensors=[continue_after_withheld, recover_dead_runs, process_new_partitions],
    resources=build_resources(read_settings()),
    # All steps of a run in one process, so that they share one Spark session.
    executor=in_process_executor,
)
