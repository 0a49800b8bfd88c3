"""Seven-day delay figures against sums that Python makes window by window."""

import datetime as dt

import pytest
from pyspark.sql import SparkSession

from backfill_assets.tables.flights import CARRIER_DELAYS
from backfill_assets.transforms.carrier_delays import build_carrier_delays
from backfill_assets_tests.transforms.drawn_flights import (
    DAY,
    Figures,
    Flight,
    build_flights,
    collect_figures,
    compute_all,
    divide,
    draw_flights,
)
from backfill_assets_tests.transforms.frames import list_types


def test_columns_are_those_of_the_table(spark: SparkSession) -> None:
    figures = build_carrier_delays(build_flights(spark, Flight()))
    assert figures.dtypes == list_types(CARRIER_DELAYS)


def test_figures_without_any_known_delay_are_null(spark: SparkSession) -> None:
    unknown = Flight(cancelled=True, dep_delay=None, arr_delay=None)
    figures = collect_figures(build_carrier_delays, build_flights(spark, unknown))
    assert figures[DAY, "UA", "EWR"] == Figures(1, 1, None, None, None)


@pytest.mark.parametrize(("delay", "share"), [(15, 0.0), (16, 1.0), (-16, 0.0)])
def test_late_is_over_fifteen_minutes(spark: SparkSession, delay: int, share: float) -> None:
    figures = collect_figures(build_carrier_delays, build_flights(spark, Flight(arr_delay=delay)))
    assert figures[DAY, "UA", "EWR"].late_share_7d == share


def compute_figures(flights: list[Flight], last_day: dt.date) -> Figures | None:
    window = [flight for flight in flights if 0 <= (last_day - flight.flight_date).days < 7]
    departures = [flight.dep_delay for flight in window if flight.dep_delay is not None]
    arrivals = [flight.arr_delay for flight in window if flight.arr_delay is not None]
    if not window:
        return None
    return Figures(
        len(window),
        sum(flight.cancelled for flight in window),
        divide(sum(departures), len(departures)),
        divide(sum(arrivals), len(arrivals)),
        divide(sum(delay > 15 for delay in arrivals), len(arrivals)),
    )


def test_figures_are_exact_however_the_work_is_split(spark: SparkSession) -> None:
    flights = draw_flights(600)
    expected, frame = compute_all(flights, compute_figures), build_flights(spark, *flights)
    assert collect_figures(build_carrier_delays, frame.repartition(1)) == expected
    assert collect_figures(build_carrier_delays, frame.repartition(7, "dep_delay")) == expected
