"""Version 2 of the delay figures against fractions that Python makes window by window."""

import datetime as dt
import re

import pytest
from pyspark.sql import SparkSession

from backfill_assets.tables.flights import (
    CARRIER_DELAYS_V2,
    DAY_WEIGHTS,
    LATE_MINUTES,
    LEAST_DELAY,
    MOST_DELAY,
    WINDOW_DAYS,
)
from backfill_assets.transforms.carrier_delays_v2 import build_carrier_delays_v2
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
    figures = build_carrier_delays_v2(build_flights(spark, Flight()))
    assert figures.dtypes == list_types(CARRIER_DELAYS_V2)


def test_comments_of_the_columns_name_what_decides_the_figures() -> None:
    comments = " ".join(column.comment for column in CARRIER_DELAYS_V2.columns)
    for constant in (LEAST_DELAY, MOST_DELAY, LATE_MINUTES, *DAY_WEIGHTS):
        assert re.search(rf"(?<![\d-]){constant}(?!\d)", comments)


def test_each_day_of_the_window_has_a_weight_of_its_own() -> None:
    assert len(DAY_WEIGHTS) == WINDOW_DAYS
    assert [*DAY_WEIGHTS] == sorted({*DAY_WEIGHTS}, reverse=True)


@pytest.mark.parametrize(
    ("delay", "mean"), [(-61, -60), (-60, -60), (179, 179), (180, 180), (1301, 180)]
)
def test_delays_are_clipped(spark: SparkSession, delay: int, mean: float) -> None:
    flights = build_flights(spark, Flight(dep_delay=delay, arr_delay=delay))
    figures = collect_figures(build_carrier_delays_v2, flights)[DAY, "UA", "EWR"]
    assert (figures.mean_dep_delay_7d, figures.mean_arr_delay_7d) == (mean, mean)


def test_figures_without_any_known_delay_are_null(spark: SparkSession) -> None:
    unknown = Flight(cancelled=True, dep_delay=None, arr_delay=None)
    figures = collect_figures(build_carrier_delays_v2, build_flights(spark, unknown))
    assert figures[DAY, "UA", "EWR"] == Figures(1, 1, None, None, None)


def compute_figures(flights: list[Flight], last_day: dt.date) -> Figures | None:
    weighed = [
        (flight, 2 ** (6 - days))
        for flight in flights
        if 0 <= (days := (last_day - flight.flight_date).days) < 7
    ]
    departures = [(flight.dep_delay, by) for flight, by in weighed if flight.dep_delay is not None]
    arrivals = [(flight.arr_delay, by) for flight, by in weighed if flight.arr_delay is not None]
    if not weighed:
        return None
    return Figures(
        len(weighed),
        sum(flight.cancelled for flight, _ in weighed),
        _average([(min(max(delay, -60), 180), by) for delay, by in departures]),
        _average([(min(max(delay, -60), 180), by) for delay, by in arrivals]),
        _average([(int(delay > 15), by) for delay, by in arrivals]),
    )


def _average(values: list[tuple[int, int]]) -> float | None:
    return divide(sum(value * by for value, by in values), sum(by for _, by in values))


def test_figures_are_exact_however_the_work_is_split(spark: SparkSession) -> None:
    flights = draw_flights(600)
    expected, frame = compute_all(flights, compute_figures), build_flights(spark, *flights)
    assert collect_figures(build_carrier_delays_v2, frame.repartition(1)) == expected
    assert collect_figures(build_carrier_delays_v2, frame.repartition(7, "dep_delay")) == expected
