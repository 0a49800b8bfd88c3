"""Training examples know of their features only what was before the flight's day."""

import datetime as dt

import pytest
from pyspark.sql import DataFrame, SparkSession

from backfill_assets.tables.serving import (
    FEATURE_NAMES,
    SERVED_CARRIER_DELAYS,
    TRAINING_EXAMPLES,
)
from backfill_assets.transforms.carrier_delays import build_carrier_delays
from backfill_assets.transforms.training_examples import build_training_examples
from backfill_assets_tests.transforms.drawn_flights import (
    DAY,
    Flight,
    after,
    build_flights,
    collect_figures,
    draw_flights,
)
from backfill_assets_tests.transforms.frames import list_types
from backfill_engine.tables.declarations import build_ddl


def build_features(spark: SparkSession, *rows: tuple[dt.date, str, str, int]) -> DataFrame:
    """Rows of the served features with a number of flights; the rest is made of it."""
    served = [(*row, 1, 2.5 * row[3], 1.5 * row[3], 0.5) for row in rows]
    return spark.createDataFrame(served, build_ddl(SERVED_CARRIER_DELAYS.columns))


def collect(examples: DataFrame) -> list[dict[str, object]]:
    return sorted(
        (row.asDict() for row in examples.collect()), key=lambda row: (row["flight_date"], str(row))
    )


def test_columns_are_those_of_the_table(spark: SparkSession) -> None:
    features = build_features(spark, (DAY, "UA", "EWR", 7))
    examples = build_training_examples(build_flights(spark, Flight(after(1))), features)
    assert examples.dtypes == list_types(TRAINING_EXAMPLES)


def test_a_flight_has_the_features_of_its_carrier_and_airport_the_day_before(
    spark: SparkSession,
) -> None:
    features = build_features(
        spark,
        (after(0), "UA", "EWR", 10),
        (after(1), "UA", "EWR", 11),
        (after(2), "UA", "EWR", 12),
        (after(0), "UA", "JFK", 20),
        (after(0), "B6", "EWR", 30),
    )
    flights = build_flights(spark, Flight(after(1)), Flight(after(2)))
    found = collect(build_training_examples(flights, features))
    assert [
        (example["flight_date"], example["features_date"], example["flights_7d"])
        for example in found
    ] == [
        (after(1), after(0), 10),
        (after(2), after(1), 11),
    ]
    assert [found[0][name] for name in FEATURE_NAMES] == [10, 1, 25.0, 15.0, 0.5]


def test_no_feature_changes_with_what_happens_on_the_day_or_later(spark: SparkSession) -> None:
    flights = draw_flights(300)
    asked = build_flights(spark, *(flight for flight in flights if flight.flight_date == after(5)))
    known = [flight for flight in flights if flight.flight_date < after(5)]
    later = [flight._replace(dep_delay=999) for flight in flights if flight.flight_date >= after(5)]
    found = [
        collect(build_training_examples(asked, build_carrier_delays(build_flights(spark, *given))))
        for given in (known, [*known, *later])
    ]
    assert found[0] == found[1]
    assert {example["features_date"] for example in found[0]} == {after(4)}


def test_a_flight_without_a_row_of_features_keeps_nulls_and_says_that_others_have_one(
    spark: SparkSession,
) -> None:
    features = build_features(spark, (DAY, "UA", "EWR", 10))
    flights = build_flights(spark, Flight(after(1), carrier="OO"), Flight(after(9)))
    new, alone = collect(build_training_examples(flights, features))
    assert (
        {new[name] for name in FEATURE_NAMES} == {alone[name] for name in FEATURE_NAMES} == {None}
    )
    assert (new["features_date"], alone["features_date"]) == (DAY, None)


def test_cancelled_flights_are_no_examples_and_a_diverted_one_has_no_label(
    spark: SparkSession,
) -> None:
    flights = build_flights(
        spark,
        Flight(cancelled=True, dep_delay=None, arr_delay=None),
        Flight(dep_delay=3, arr_delay=None),
    )
    features = build_features(spark, (DAY, "UA", "EWR", 10))
    (diverted,) = collect(build_training_examples(flights, features))
    assert (diverted["arr_delay"], diverted["late"]) == (None, None)


@pytest.mark.parametrize(("delay", "late"), [(15, False), (16, True), (-16, False)])
def test_late_is_over_fifteen_minutes(spark: SparkSession, delay: int, *, late: bool) -> None:
    features = build_features(spark, (DAY, "UA", "EWR", 10))
    flights = build_flights(spark, Flight(after(1), arr_delay=delay))
    (example,) = collect(build_training_examples(flights, features))
    assert (example["arr_delay"], example["late"]) == (delay, late)


def test_a_range_gives_what_its_days_give_one_by_one(spark: SparkSession) -> None:
    flights = draw_flights(200)
    features = build_carrier_delays(build_flights(spark, *flights))
    whole = collect(build_training_examples(build_flights(spark, *flights), features))
    assert len(collect_figures(lambda rows: rows, features)) > 50
    for number in (0, 1, 9):
        day = build_flights(
            spark, *(flight for flight in flights if flight.flight_date == after(number))
        )
        before = features.where(features["flight_date"] == after(number - 1))
        alone = collect(build_training_examples(day, before))
        assert alone == [example for example in whole if example["flight_date"] == after(number)]
