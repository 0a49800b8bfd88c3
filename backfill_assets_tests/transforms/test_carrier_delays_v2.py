"""Version 2 of the delay figures against fractions that Python makes window by window."""

import datetime as dt
import re

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from backfill_assets.tables.flights import (
    CARRIER_DELAYS_V2,
    DAY_WEIGHTS,
    LATE_MINUTES,
    LEAST_DELAY,
    MOST_DELAY,
    WINDOW_DAYS,
)
from backfill_assets.transforms.carrier_delays import build_carrier_delays
from backfill_assets.transforms.carrier_delays_v2 import build_carrier_delays_v2
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
    declared = [(column.name, column.type.lower()) for column in CARRIER_DELAYS_V2.columns]
    assert build_carrier_delays_v2(build_flights(spark, Flight())).dtypes == declared


def test_comments_of_the_columns_name_what_decides_the_figures() -> None:
    comments = " ".join(column.comment for column in CARRIER_DELAYS_V2.columns)
    for constant in (LEAST_DELAY, MOST_DELAY, LATE_MINUTES, *DAY_WEIGHTS):
        assert re.search(rf"(?<![\d-]){constant}(?!\d)", comments)


def test_each_day_of_the_window_has_a_weight_of_its_own() -> None:
    assert len(DAY_WEIGHTS) == WINDOW_DAYS
    assert [*DAY_WEIGHTS] == sorted({*DAY_WEIGHTS}, reverse=True)


def test_the_last_day_weighs_most_and_each_day_before_half(spark: SparkSession) -> None:
    flights = [
        Flight(after(0), dep_delay=100),
        *(Flight(after(n), dep_delay=0) for n in range(1, 8)),
    ]
    figures = collect_figures(build_carrier_delays_v2, build_flights(spark, *flights))
    means = [figures[after(n), "UA", "EWR"].mean_dep_delay_7d for n in range(8)]
    assert means == [100.0, *(100 * 2 ** (6 - n) / (128 - 2 ** (6 - n)) for n in range(1, 7)), 0.0]


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


def test_a_range_gives_what_its_days_give_one_by_one(spark: SparkSession) -> None:
    flights = draw_flights(200)
    whole = collect_figures(build_carrier_delays_v2, build_flights(spark, *flights))
    for number in (0, 6, 9):
        last_day = after(number)
        window = [
            flight for flight in flights if after(number - 6) <= flight.flight_date <= last_day
        ]
        alone = build_carrier_delays_v2(build_flights(spark, *window)).where(
            F.col("flight_date") == F.lit(last_day)
        )
        assert collect_figures(lambda _, rows=alone: rows, alone) == {
            key: figures for key, figures in whole.items() if key[0] == last_day
        }


def test_it_has_the_rows_and_counts_of_the_version_before(spark: SparkSession) -> None:
    frame = build_flights(spark, *draw_flights(200))
    before, now = (
        collect_figures(build, frame) for build in (build_carrier_delays, build_carrier_delays_v2)
    )
    assert {key: window_figures[:2] for key, window_figures in now.items()} == {
        key: window_figures[:2] for key, window_figures in before.items()
    }
    assert now != before
