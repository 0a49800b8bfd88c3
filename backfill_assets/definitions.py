"""The code location of the samples; nothing else is in here."""

from dagster import Definitions, in_process_executor

from backfill_assets import assets
from backfill_assets.tables.order_buckets import ORDER_BUCKETS, OrderSettings
from backfill_engine import Features, build_defs, read_environment

defs = Definitions.merge(
    build_defs(
        [assets],
        grains={ORDER_BUCKETS: read_environment(OrderSettings).build_buckets()},
        features=Features(sensors=True),
    ),
    # All steps of a run in one process, so that they share one Spark session.
    Definitions(executor=in_process_executor),
)
