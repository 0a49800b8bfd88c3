"""A flight departs into the latest weather that was known then, and into none of later."""

import datetime as dt
import random
from collections.abc import Mapping
from typing import Any, NamedTuple

from pyspark.sql import DataFrame, SparkSession

from backfill_assets.tables.flights import STAGING_FLIGHTS
from backfill_assets.tables.weather import (
    DEPARTURE_CONDITIONS,
    MEASURED,
    STAGING_WEATHER,
    STATIONS,
)
from backfill_assets.transforms.departure_conditions import build_departure_conditions
from backfill_assets_tests.transforms.frames import build_frame, list_types
from backfill_engine_tests.transforms.instants import collect_in_utc

DAY = dt.date(2013, 1, 1)
NAMES = tuple(column.name for column in MEASURED)
NO_REPORT: dict[str, Any] = dict.fromkeys(("observed_at", *NAMES))

Reports = Mapping[tuple[str, dt.datetime], Mapping[str, float | None]]
"""Reported values by station and hour."""


class Flight(NamedTuple):
    """What the conditions are made of; the other columns of STAGING_FLIGHTS are null."""

    flight: int
    scheduled_departure: dt.datetime | None
    origin: str = "EWR"
    flight_date: dt.date = DAY
    carrier: str = "UA"
    dep_delay: int | None = 2
    cancelled: bool = False


def at(hour: int, minute: int = 0) -> dt.datetime:
    """The instant so many hours after the midnight (UTC) that DAY begins with."""
    return dt.datetime(2013, 1, 1, tzinfo=dt.UTC) + dt.timedelta(hours=hour, minutes=minute)


def build_flights(spark: SparkSession, *flights: Flight) -> DataFrame:
    return build_frame(spark, STAGING_FLIGHTS, (flight._asdict() for flight in flights))


def build_weather(spark: SparkSession, reports: Reports, *, days: int = 2) -> DataFrame:
    """All hours of DAY and the days after it; those without a report are rows of nulls."""
    rows = [
        {
            "weather_date": hour.date(),
            "origin": origin,
            "hour": hour,
            "observed_at": None if measured is None else hour,
            "reports": int(measured is not None),
            **(measured or {}),
        }
        for origin in STATIONS
        for hour in map(at, range(24 * days))
        for measured in [reports.get((origin, hour))]
    ]
    return build_frame(spark, STAGING_WEATHER, rows)


def collect_conditions(flights: DataFrame, weather: DataFrame) -> dict[int, dict[str, Any]]:
    rows = collect_in_utc(build_departure_conditions(flights, weather))
    conditions = {row["flight"]: row for row in rows}
    assert len(conditions) == len(rows)
    return conditions


def test_columns_are_those_of_the_table(spark: SparkSession) -> None:
    flights, weather = build_flights(spark, Flight(1, at(10))), build_weather(spark, {})
    conditions = build_departure_conditions(flights, weather)
    assert conditions.dtypes == list_types(DEPARTURE_CONDITIONS)


def test_flight_keeps_its_row_and_columns_without_any_weather(spark: SparkSession) -> None:
    flights = [
        Flight(1, None),
        Flight(2, at(10), origin="BOS"),
        Flight(3, at(10), cancelled=True, dep_delay=None),
        Flight(4, None, origin="BOS", carrier="B6"),
        # After all weather, and before.
        Flight(5, at(60)),
        Flight(6, at(-1), flight_date=dt.date(2012, 12, 31), dep_delay=-7),
    ]
    weather = build_weather(spark, {("EWR", at(hour)): {"temp": 1.0} for hour in (0, 10, 47)})
    conditions = collect_conditions(build_flights(spark, *flights), weather)
    reported = {"observed_at": at(10), "temp": 1.0}
    assert conditions == {
        flight.flight: NO_REPORT | flight._asdict() | (reported if flight.flight == 3 else {})
        for flight in flights
    }


def draw_flights(count: int) -> list[Flight]:
    chosen = random.Random(20130101)
    flights = []
    for number in range(count):
        # Many at the very beginning and end of an hour.
        hour, minute = chosen.randrange(72), chosen.choice([0, 59, chosen.randrange(60)])
        departure = None if chosen.random() < 0.05 else at(hour, minute)
        origin = chosen.choice([*STATIONS, *STATIONS, *STATIONS, "BOS"])
        day = DAY + dt.timedelta(days=hour // 24)
        flights.append(Flight(number, departure, origin, day, dep_delay=chosen.randrange(99)))
    return flights


def draw_reports() -> dict[tuple[str, dt.datetime], dict[str, float | None]]:
    chosen = random.Random(20130102)
    return {
        (origin, at(hour)): {name: chosen.choice([None, chosen.random()]) for name in NAMES}
        for origin in STATIONS
        for hour in range(72)
        if chosen.random() < 0.4
    }


def compute_conditions(flight: Flight, reports: Reports) -> dict[str, Any]:
    """The latest of all reports of the airport that are not later, and less than 3 hours old."""
    departure = flight.scheduled_departure
    row = NO_REPORT | flight._asdict()
    if departure is None:
        return row
    known = [
        hour
        for origin, hour in reports
        if origin == flight.origin and dt.timedelta() <= departure - hour < dt.timedelta(hours=3)
    ]
    if not known:
        return row
    return row | {"observed_at": max(known)} | dict(reports[flight.origin, max(known)])


def test_conditions_are_those_of_the_latest_report_known(spark: SparkSession) -> None:
    flights, reports = draw_flights(150), draw_reports()
    expected = {flight.flight: compute_conditions(flight, reports) for flight in flights}
    ages = {
        (row["scheduled_departure"] - row["observed_at"]) // dt.timedelta(hours=1)
        for row in expected.values()
        if row["observed_at"]
    }
    assert ages == {0, 1, 2}
    weather = build_weather(spark, reports, days=3)
    assert collect_conditions(build_flights(spark, *flights), weather) == expected
    random.Random(1).shuffle(flights)
    shuffled = build_flights(spark, *flights).repartition(7)
    assert collect_conditions(shuffled, weather.repartition(5, "temp")) == expected
