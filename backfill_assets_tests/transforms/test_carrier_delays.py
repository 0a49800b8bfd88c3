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
    after,
    build_flights,
    collect_figures,
    compute_all,
    divide,
    draw_flights,
)


def test_columns_are_those_of_the_table(spark: SparkSession) -> None:
    declared = [(column.name, column.type.lower()) for column in CARRIER_DELAYS.columns]
    assert build_carrier_delays(build_flights(spark, Flight())).dtypes == declared


def test_flight_counts_in_the_seven_windows_that_begin_with_its_day(spark: SparkSession) -> None:
    figures = collect_figures(build_carrier_delays, build_flights(spark, Flight()))
    assert sorted(day for day, _, _ in figures) == [after(n) for n in range(7)]
    assert {window_figures.flights_7d for window_figures in figures.values()} == {1}


def test_window_holds_its_own_day_and_six_before(spark: SparkSession) -> None:
    flights = [Flight(after(n), dep_delay=10**n) for n in range(8)]
    figures = collect_figures(build_carrier_delays, build_flights(spark, *flights))
    assert figures[after(6), "UA", "EWR"].mean_dep_delay_7d == 1_111_111 / 7
    assert figures[after(7), "UA", "EWR"].mean_dep_delay_7d == 11_111_110 / 7


def test_cancelled_flights_count_and_have_no_delay(spark: SparkSession) -> None:
    figures = collect_figures(
        build_carrier_delays,
        build_flights(
            spark,
            Flight(dep_delay=10, arr_delay=20),
            Flight(cancelled=True, dep_delay=None, arr_delay=None),
        ),
    )
    assert figures[DAY, "UA", "EWR"] == Figures(2, 1, 10.0, 20.0, 1.0)


def test_figures_without_any_known_delay_are_null(spark: SparkSession) -> None:
    unknown = Flight(cancelled=True, dep_delay=None, arr_delay=None)
    figures = collect_figures(build_carrier_delays, build_flights(spark, unknown))
    assert figures[DAY, "UA", "EWR"] == Figures(1, 1, None, None, None)


def test_departed_flight_with_unknown_arrival_counts_for_departure_only(
    spark: SparkSession,
) -> None:
    diverted = Flight(dep_delay=30, arr_delay=None)
    figures = collect_figures(
        build_carrier_delays, build_flights(spark, diverted, Flight(dep_delay=10, arr_delay=5))
    )
    assert figures[DAY, "UA", "EWR"] == Figures(2, 0, 20.0, 5.0, 0.0)


@pytest.mark.parametrize(("delay", "share"), [(15, 0.0), (16, 1.0), (-16, 0.0)])
def test_late_is_over_fifteen_minutes(spark: SparkSession, delay: int, share: float) -> None:
    figures = collect_figures(build_carrier_delays, build_flights(spark, Flight(arr_delay=delay)))
    assert figures[DAY, "UA", "EWR"].late_share_7d == share


def test_carriers_and_airports_are_kept_apart(spark: SparkSession) -> None:
    flights = [Flight(carrier=c, origin=o) for c in ("UA", "B6") for o in ("EWR", "JFK", "JFK")]
    figures = collect_figures(build_carrier_delays, build_flights(spark, *flights))
    assert {
        key[1:]: window_figures.flights_7d
        for key, window_figures in figures.items()
        if key[0] == DAY
    } == {
        ("UA", "EWR"): 1,
        ("UA", "JFK"): 2,
        ("B6", "EWR"): 1,
        ("B6", "JFK"): 2,
    }


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
