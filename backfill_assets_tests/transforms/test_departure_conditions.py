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
from backfill_engine.tables.declarations import build_ddl
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
    rows = [
        tuple(flight._asdict().get(name) for name in STAGING_FLIGHTS.column_names)
        for flight in flights
    ]
    return spark.createDataFrame(rows, build_ddl(STAGING_FLIGHTS.columns, constraints=False))


def build_weather(spark: SparkSession, reports: Reports, *, days: int = 2) -> DataFrame:
    """All hours of DAY and the days after it; those without a report are rows of nulls."""
    rows = []
    for origin in STATIONS:
        for hour in map(at, range(24 * days)):
            measured = reports.get((origin, hour))
            row: dict[str, Any] = {
                **NO_REPORT,
                "weather_date": hour.date(),
                "origin": origin,
                "hour": hour,
                "observed_at": None if measured is None else hour,
                "reports": int(measured is not None),
                **(measured or {}),
            }
            rows.append(tuple(row[name] for name in STAGING_WEATHER.column_names))
    return spark.createDataFrame(rows, build_ddl(STAGING_WEATHER.columns, constraints=False))


def collect_conditions(flights: DataFrame, weather: DataFrame) -> dict[int, dict[str, Any]]:
    rows = collect_in_utc(build_departure_conditions(flights, weather))
    conditions = {row["flight"]: row for row in rows}
    assert len(conditions) == len(rows)
    return conditions


def find_conditions(
    spark: SparkSession, flights: list[Flight], reports: Reports
) -> list[tuple[dt.datetime | None, float | None]]:
    """Finds, in the order of the flights, when weather was observed, and its temperature."""
    rows = collect_conditions(build_flights(spark, *flights), build_weather(spark, reports))
    assert len(rows) == len(flights)
    return [(rows[flight.flight]["observed_at"], rows[flight.flight]["temp"]) for flight in flights]


def test_columns_are_those_of_the_table(spark: SparkSession) -> None:
    flights, weather = build_flights(spark, Flight(1, at(10))), build_weather(spark, {})
    declared = [(column.name, column.type.lower()) for column in DEPARTURE_CONDITIONS.columns]
    assert build_departure_conditions(flights, weather).dtypes == declared


def test_weather_is_that_of_the_scheduled_hour(spark: SparkSession) -> None:
    stories = {
        Flight(1, at(10)): (at(10), 10.0),
        Flight(2, at(10, 59)): (at(10), 10.0),
        Flight(3, at(11)): (at(11), 11.0),
        Flight(4, at(11, 1)): (at(11), 11.0),
        Flight(5, at(11, 30), origin="JFK"): (at(11), -1.0),
    }
    reports = {
        ("EWR", at(9)): {"temp": 9.0},
        ("EWR", at(10)): {"temp": 10.0},
        ("EWR", at(11)): {"temp": 11.0},
        ("EWR", at(12)): {"temp": 12.0},
        ("JFK", at(11)): {"temp": -1.0},
    }
    assert find_conditions(spark, list(stories), reports) == list(stories.values())


def test_report_serves_for_three_hours_and_never_before_its_own(spark: SparkSession) -> None:
    found, nothing = (at(10), 10.0), (None, None)
    stories = {
        # The only report comes one hour after the first flight, and one minute after the second.
        Flight(1, at(9)): nothing,
        Flight(2, at(9, 59)): nothing,
        Flight(3, at(10)): found,
        Flight(4, at(11, 30)): found,
        Flight(5, at(12, 59)): found,
        Flight(6, at(13)): nothing,
        # Other stations' reports are of no use.
        Flight(7, at(10), origin="JFK"): nothing,
    }
    reports = {("EWR", at(10)): {"temp": 10.0}, ("LGA", at(8)): {"temp": 8.0}}
    assert find_conditions(spark, list(stories), reports) == list(stories.values())


def test_latest_report_counts_whole_and_with_its_nulls(spark: SparkSession) -> None:
    values: dict[str, float | None] = {name: float(n) for n, name in enumerate(NAMES)}
    weather = build_weather(
        spark,
        {
            ("EWR", at(9)): dict.fromkeys(NAMES, 99.0),
            ("EWR", at(10)): values | {"temp": None, "wind_gust": None},
            ("JFK", at(9)): dict.fromkeys(NAMES, 99.0),
            ("JFK", at(10)): {},
        },
    )
    flights = build_flights(spark, Flight(1, at(11)), Flight(2, at(11), origin="JFK"))
    conditions = collect_conditions(flights, weather)
    expected = values | {"temp": None, "wind_gust": None, "observed_at": at(10)}
    assert {name: conditions[1][name] for name in NO_REPORT} == expected
    assert {name: conditions[2][name] for name in NO_REPORT} == NO_REPORT | {"observed_at": at(10)}


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


def test_departure_after_midnight_has_the_weather_of_the_next_day(spark: SparkSession) -> None:
    # In New York these are 19:00 to 22:00 of the flight's own day.
    stories = {
        Flight(1, at(25, 30)): (at(25), 25.0),
        Flight(2, at(24)): (at(23), 23.0),
        Flight(3, at(26)): (at(25), 25.0),
        Flight(4, at(27), origin="JFK"): (None, None),
        Flight(5, at(25, 59), origin="JFK"): (at(23), -1.0),
    }
    reports = {
        ("EWR", at(23)): {"temp": 23.0},
        ("EWR", at(25)): {"temp": 25.0},
        # The same hour of the flight's own day.
        ("EWR", at(1)): {"temp": 1.0},
        ("JFK", at(23)): {"temp": -1.0},
        ("JFK", at(3)): {"temp": 3.0},
    }
    assert find_conditions(spark, list(stories), reports) == list(stories.values())


def draw_flights(count: int) -> list[Flight]:
    chosen = random.Random(20130101)
    flights = []
    for number in range(count):
        minutes = chosen.randrange(72 * 60)
        departure = None if chosen.random() < 0.05 else at(0, minutes)
        origin = chosen.choice([*STATIONS, *STATIONS, *STATIONS, "BOS"])
        day = DAY + dt.timedelta(days=minutes // (24 * 60))
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
