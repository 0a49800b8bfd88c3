"""Seven-day delay figures against sums that Python makes window by window."""

import datetime as dt
import random
from fractions import Fraction
from typing import NamedTuple

import pytest
from pyspark.sql import DataFrame, Row, SparkSession

from backfill_assets.tables.declarations import build_ddl
from backfill_assets.tables.flights import CARRIER_DELAYS, STAGING_FLIGHTS
from backfill_assets.transforms.carrier_delays import build_carrier_delays

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
    rows = [
        tuple(flight._asdict().get(name) for name in STAGING_FLIGHTS.column_names)
        for flight in flights
    ]
    return spark.createDataFrame(rows, build_ddl(STAGING_FLIGHTS.columns, constraints=False))


def collect_figures(flights: DataFrame) -> dict[Key, Figures]:
    rows: list[Row] = build_carrier_delays(flights).collect()
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


def test_columns_are_those_of_the_table(spark: SparkSession) -> None:
    declared = [(column.name, column.type.lower()) for column in CARRIER_DELAYS.columns]
    assert build_carrier_delays(build_flights(spark, Flight())).dtypes == declared


def test_flight_counts_in_the_seven_windows_that_begin_with_its_day(spark: SparkSession) -> None:
    figures = collect_figures(build_flights(spark, Flight()))
    assert sorted(day for day, _, _ in figures) == [after(n) for n in range(7)]
    assert {one.flights_7d for one in figures.values()} == {1}


def test_window_holds_its_own_day_and_six_before(spark: SparkSession) -> None:
    flights = [Flight(after(n), dep_delay=10**n) for n in range(8)]
    figures = collect_figures(build_flights(spark, *flights))
    assert figures[after(6), "UA", "EWR"].mean_dep_delay_7d == 1_111_111 / 7
    assert figures[after(7), "UA", "EWR"].mean_dep_delay_7d == 11_111_110 / 7


def test_cancelled_flights_count_and_have_no_delay(spark: SparkSession) -> None:
    figures = collect_figures(
        build_flights(
            spark,
            Flight(dep_delay=10, arr_delay=20),
            Flight(cancelled=True, dep_delay=None, arr_delay=None),
        )
    )
    assert figures[DAY, "UA", "EWR"] == Figures(2, 1, 10.0, 20.0, 1.0)


def test_figures_without_any_known_delay_are_null(spark: SparkSession) -> None:
    unknown = Flight(cancelled=True, dep_delay=None, arr_delay=None)
    figures = collect_figures(build_flights(spark, unknown))
    assert figures[DAY, "UA", "EWR"] == Figures(1, 1, None, None, None)


def test_departed_flight_with_unknown_arrival_counts_for_departure_only(
    spark: SparkSession,
) -> None:
    diverted = Flight(dep_delay=30, arr_delay=None)
    figures = collect_figures(build_flights(spark, diverted, Flight(dep_delay=10, arr_delay=5)))
    assert figures[DAY, "UA", "EWR"] == Figures(2, 0, 20.0, 5.0, 0.0)


@pytest.mark.parametrize(("delay", "share"), [(15, 0.0), (16, 1.0), (-16, 0.0)])
def test_late_is_over_fifteen_minutes(spark: SparkSession, delay: int, share: float) -> None:
    figures = collect_figures(build_flights(spark, Flight(arr_delay=delay)))
    assert figures[DAY, "UA", "EWR"].late_share_7d == share


def test_carriers_and_airports_are_kept_apart(spark: SparkSession) -> None:
    flights = [Flight(carrier=c, origin=o) for c in ("UA", "B6") for o in ("EWR", "JFK", "JFK")]
    figures = collect_figures(build_flights(spark, *flights))
    assert {key[1:]: one.flights_7d for key, one in figures.items() if key[0] == DAY} == {
        ("UA", "EWR"): 1,
        ("UA", "JFK"): 2,
        ("B6", "EWR"): 1,
        ("B6", "JFK"): 2,
    }


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


def compute_figures(flights: list[Flight], last_day: dt.date) -> Figures | None:
    window = [one for one in flights if 0 <= (last_day - one.flight_date).days < 7]
    departures = [one.dep_delay for one in window if one.dep_delay is not None]
    arrivals = [one.arr_delay for one in window if one.arr_delay is not None]
    if not window:
        return None
    return Figures(
        len(window),
        sum(one.cancelled for one in window),
        _divide(sum(departures), len(departures)),
        _divide(sum(arrivals), len(arrivals)),
        _divide(sum(delay > 15 for delay in arrivals), len(arrivals)),
    )


def _divide(numerator: int, denominator: int) -> float | None:
    return float(Fraction(numerator, denominator)) if denominator else None


def test_figures_are_exact_however_the_work_is_split(spark: SparkSession) -> None:
    flights = draw_flights(600)
    expected = {
        (after(n), carrier, origin): figures
        for n in range(-1, 30)
        for carrier in ("UA", "B6")
        for origin in ("EWR", "JFK")
        if (
            figures := compute_figures(
                [one for one in flights if (one.carrier, one.origin) == (carrier, origin)],
                after(n),
            )
        )
    }
    frame = build_flights(spark, *flights)
    assert collect_figures(frame.repartition(1)) == expected
    assert collect_figures(frame.repartition(7, "dep_delay")) == expected
