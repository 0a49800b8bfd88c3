"""Acme's code location: the lake, and what else Acme has."""

import datetime as dt

from dagster import Definitions, in_process_executor

from acme import lake, reports, sales, trips
from backfill_engine import Calendar, build_defs

defs = Definitions.merge(
    build_defs(
        [lake, sales, trips],
        calendar=Calendar(dt.date(2024, 1, 1), dt.date(2024, 2, 1)),
        name_prefix="lake_",
    ),
    reports.defs,
    # All steps of a run in one process, so that they share one Spark session.
    Definitions(executor=in_process_executor),
)
