"""Assembles the code location; nothing else is in here."""

import sys
from multiprocessing import parent_process

from backfill_assets.spark.head_start import executes_run, start_java

if executes_run(sys.argv, is_child=parent_process() is not None):
    start_java()  # Before all that follows, which takes as long.

from dagster import Definitions, in_process_executor

from backfill_assets.alerts import report_withheld
from backfill_assets.asset_checks import build_readable_check
from backfill_assets.asset_definitions import build_asset
from backfill_assets.catalog import list_tables
from backfill_assets.jobs import (
    maintain,
    maintain_nightly,
    promote,
    reconcile,
    rehearse,
    retire,
    rollback_partitions,
)
from backfill_assets.landing_assets import build_landing_asset
from backfill_assets.landing_sensor import observe_landing
from backfill_assets.once_jobs import once_jobs
from backfill_assets.ops.backfill_health import backfill_health
from backfill_assets.ops.late_arrivals import late_arrivals
from backfill_assets.ops.rolling import rolling_schedules
from backfill_assets.ops.watching import watch, watch_nightly
from backfill_assets.pause_sensor import go_on_after_pause
from backfill_assets.pipelines import list_recipes, list_table_assets
from backfill_assets.range_jobs import PIPELINE_JOBS, grain_jobs
from backfill_assets.resources import build_resources
from backfill_assets.sensors import (
    continue_after_withheld,
    process_due_partitions,
    recover_dead_runs,
)
from backfill_assets.settings import read_settings

defs = Definitions(
    assets=[
        *(
            build_asset(list_recipes()[declared.table.key], declared.inputs)
            for declared in list_table_assets()
        ),
        *(
            build_landing_asset(recipe, read_settings().landing)
            for recipe in list_recipes().values()
            if recipe.landing is not None
        ),
        late_arrivals,
        backfill_health,
    ],
    asset_checks=[build_readable_check(table) for table in list_tables()],
    jobs=[
        *(job for job, _ in PIPELINE_JOBS),
        *grain_jobs,
        *once_jobs,
        rollback_partitions,
        reconcile,
        rehearse,
        promote,
        retire,
        maintain,
        watch,
    ],
    schedules=[maintain_nightly, watch_nightly, *rolling_schedules],
    sensors=[
        continue_after_withheld,
        go_on_after_pause,
        recover_dead_runs,
        process_due_partitions,
        observe_landing,
        report_withheld,
    ],
    resources=build_resources(read_settings()),
    # All steps of a run in one process, so that they share one Spark session.
    executor=in_process_executor,
)
