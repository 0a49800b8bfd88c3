"""The schedule of the assets about the tables."""

from dagster import (
    AssetSelection,
    ScheduleDefinition,
    define_asset_job,
    in_process_executor,
)

from backfill_engine.catalog import Catalog
from backfill_engine.extras.health import backfill_health, late_arrivals


def build_watch_schedule(catalog: Catalog) -> ScheduleDefinition:
    """Builds the schedule, with the job that it starts."""
    name = catalog.prefix("watch")
    watch = define_asset_job(
        name,
        AssetSelection.assets(late_arrivals.find_key(catalog), backfill_health.find_key(catalog)),
        description=(
            "How late data comes and how backfills are doing: figures, checks of lag, pages."
        ),
        executor_def=in_process_executor,
    )
    return ScheduleDefinition(
        name=f"{name}_nightly",
        job=watch,
        cron_schedule="0 2 * * *",
        execution_timezone="UTC",
        description=(
            "At 02:00 UTC: is each day whose input has come published over all layers, how far do "
            "watermarks lag, how late does data come?"
        ),
    )
