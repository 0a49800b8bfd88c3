"""The year of each table, measured and judged as its rules would."""

import functools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

import pandas as pd

from backfill_assets.tables import orders
from backfill_engine.grains.buckets import Buckets
from backfill_engine.quality.judging import judge_partitions
from backfill_engine.rules.measured import PartitionMeasures, PartitionProfile
from backfill_engine.rules.verdicts import Finding, Outcome, Verdict
from backfill_engine.tables.declarations import Table
from backfill_engine_tests.project import (
    CARRIER_DELAYS,
    CARRIER_DELAYS_V2,
    DEPARTURE_CONDITIONS,
    RAW_FLIGHTS,
    SERVED_CARRIER_DELAYS,
    STAGING_FLIGHTS,
    STAGING_WEATHER,
    TRAINING_EXAMPLES,
)
from backfill_engine_tests.quality.real_days import (
    build_delays,
    build_delays_v2,
    build_examples,
    count_source_records,
    read_flights,
)
from backfill_engine_tests.quality.real_measures import measure_days
from backfill_engine_tests.quality.real_orders import STEP, build_customers, build_orders
from backfill_engine_tests.quality.real_weather import build_conditions, build_weather_days

_BUCKETS = Buckets(STEP, 130_000)
STAGING_ORDERS = replace(orders.STAGING_ORDERS, grain=_BUCKETS)
CUSTOMER_ORDERS = replace(orders.CUSTOMER_ORDERS, grain=_BUCKETS)
NEWEST_BUCKET = "0120000"
"""Has one order so far."""

WITHOUT_REPORTS = "2013-12-31"
"""The source's reports end the day before."""

FRAMES: dict[Table, Callable[[], pd.DataFrame]] = {
    RAW_FLIGHTS: read_flights,
    STAGING_FLIGHTS: read_flights,
    CARRIER_DELAYS: build_delays,
    CARRIER_DELAYS_V2: build_delays_v2,
    SERVED_CARRIER_DELAYS: build_delays,
    TRAINING_EXAMPLES: build_examples,
    STAGING_WEATHER: build_weather_days,
    DEPARTURE_CONDITIONS: build_conditions,
    STAGING_ORDERS: build_orders,
    CUSTOMER_ORDERS: build_customers,
}
"""By table, what makes its rows."""

ODD_DAYS = {
    "an ordinary Tuesday": "2013-05-14",
    "a small Saturday": "2013-01-19",
    "the blizzard": "2013-02-08",
    "the day after it": "2013-02-09",
    "Independence Day": "2013-07-04",
    "Thanksgiving": "2013-11-28",
    "Christmas": "2013-12-25",
}
"""Faults must show on any of them."""


@functools.cache
def measure_year(table: Table) -> dict[str, PartitionMeasures]:
    """All partitions of its sample, ascending; of weather, those with any report."""
    measures = measure_days(FRAMES[table](), table)
    if table in (STAGING_WEATHER, DEPARTURE_CONDITIONS):
        del measures[WITHOUT_REPORTS]
    return measures


@functools.cache
def profile_year(table: Table) -> dict[str, PartitionProfile]:
    """What is compared with."""
    return {key: measured.profile() for key, measured in measure_year(table).items()}


def judge(
    table: Table,
    measures: Mapping[str, PartitionMeasures],
    published: Mapping[str, PartitionProfile],
    **source_records: int,
) -> dict[str, Verdict]:
    """Verdicts where all reconciles, unless records are given."""
    return judge_partitions(
        table,
        measures,
        source_records=count_source_records(table, measures) | source_records,
        published=published,
        provisional={NEWEST_BUCKET: "more is to land"},
    )


def list_findings(verdicts: Mapping[str, Verdict]) -> Iterator[tuple[str, Finding]]:
    """All findings, with their partition."""
    for key, verdict in verdicts.items():
        for found in verdict.findings.values():
            yield from ((key, finding) for finding in found)


def find_not_passed(verdicts: Mapping[str, Verdict]) -> set[tuple[str, str]]:
    """Partition and rule of each finding that warns or fails."""
    return {
        (key, finding.rule)
        for key, finding in list_findings(verdicts)
        if finding.outcome is not Outcome.PASSED
    }
