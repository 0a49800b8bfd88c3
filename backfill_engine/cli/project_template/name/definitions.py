"""The code location. Merge other assets, jobs and resources into it as you need them."""

import datetime as dt

from dagster import Definitions, in_process_executor

from backfill_engine import Calendar, Features, build_defs
from {{name}} import pipelines

defs = Definitions.merge(
    build_defs(
        [pipelines], calendar=Calendar(dt.date(2024, 1, 1)), features=Features(sensors=True)
    ),
    # All steps of a run in one process, so that they share one Spark session.
    Definitions(executor=in_process_executor),
)
