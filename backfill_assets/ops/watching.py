"""When the assets about the tables are run: every night, without a JVM."""

from dagster import AssetSelection, ScheduleDefinition, define_asset_job

from backfill_assets.ops.backfill_health import BACKFILL_HEALTH
from backfill_assets.ops.late_arrivals import LATE_ARRIVALS

watch = define_asset_job(
    "watch",
    AssetSelection.assets(LATE_ARRIVALS, BACKFILL_HEALTH),
    description="How late data comes and how backfills are doing: figures, checks of lag, pages.",
)

watch_nightly = ScheduleDefinition(
    name="watch_nightly",
    job=watch,
    cron_schedule="0 2 * * *",
    execution_timezone="UTC",
    description=(
        "At 02:00 UTC: is each day whose input has come published over all layers, how far do "
        "watermarks lag, how late does data come?"
    ),
)
