"""Flights drawn at random, and the rows that versions of the weekly delays make of them."""

import datetime as dt
import random
from collections.abc import Callable
from fractions import Fraction
from typing import NamedTuple

from pyspark.sql import DataFrame, Row, SparkSession

from backfill_assets.tables.flights import STAGING_FLIGHTS
from backfill_assets_tests.transforms.frames import build_frame

DAY = dt.date(2013, 7, 1)


class Flight(NamedTuple):
    """What the figures are made of; the other columns of STAGING_FLIGHTS are null."""

    flight_date: dt.date = DAY
    carrier: str = "UA"
    origin: str = "EWR"
    cancelled: bool = False
    dep_delay: int | None = 0
    arr_delay: int | None = 0


class Figures(NamedTuple):
    """A row of CARRIER_DELAYS without its key."""

    flights_7d: int
    cancelled_7d: int
    mean_dep_delay_7d: float | None
    mean_arr_delay_7d: float | None
    late_share_7d: float | None


Key = tuple[dt.date, str, str]


def build_flights(spark: SparkSession, *flights: Flight) -> DataFrame:
    return build_frame(spark, STAGING_FLIGHTS, (flight._asdict() for flight in flights))


def collect_figures(
    build: Callable[[DataFrame], DataFrame], flights: DataFrame
) -> dict[Key, Figures]:
    """What a version computes, by key; keys must be unique."""
    rows: list[Row] = build(flights).collect()
    figures = {
        (row.flight_date, row.carrier, row.origin): Figures(
            *(row[name] for name in Figures._fields)
        )
        for row in rows
    }
    assert len(figures) == len(rows)
    return figures


def after(days: int) -> dt.date:
    return DAY + dt.timedelta(days=days)


def draw_flights(count: int) -> list[Flight]:
    chosen = random.Random(20130701)
    flights = []
    for _ in range(count):
        cancelled = chosen.random() < 0.1
        dep_delay = None if cancelled else chosen.randrange(-20, 400)
        arr_delay = None if cancelled or chosen.random() < 0.05 else chosen.randrange(-60, 400)
        day = after(chosen.choice([0, 1, 2, 5, 9, 17]))
        carrier, origin = chosen.choice(["UA", "B6"]), chosen.choice(["EWR", "JFK"])
        flights.append(Flight(day, carrier, origin, cancelled, dep_delay, arr_delay))
    return flights


def compute_all(
    flights: list[Flight], compute: Callable[[list[Flight], dt.date], Figures | None]
) -> dict[Key, Figures]:
    """Figures of each window in which a carrier has a flight, each computed by itself."""
    found: dict[Key, Figures] = {}
    for carrier, origin in sorted({(flight.carrier, flight.origin) for flight in flights}):
        own = [flight for flight in flights if (flight.carrier, flight.origin) == (carrier, origin)]
        for last_day in map(after, range(-1, 30)):
            figures = compute(own, last_day)
            if figures is not None:
                found[last_day, carrier, origin] = figures
    return found


def divide(numerator: int, denominator: int) -> float | None:
    """The double nearest to a fraction; None if the denominator is zero."""
    return float(Fraction(numerator, denominator)) if denominator else None
