"""Both versions of the features, what is served, and examples, over ten days."""

import datetime as dt
import json
from collections.abc import Iterator
from dataclasses import replace

import pytest

from backfill_engine_tests.pipeline.landing_zone import build_flights
from backfill_engine_tests.pipeline.running import (
    RAW,
    STAGING,
    FinishedRun,
    Pipeline,
    copy_pipeline,
    list_days,
)
from backfill_engine_tests.pipeline.watching import watch
from backfill_engine_tests.project import (
    CARRIER_DELAYS,
    CARRIER_DELAYS_V2,
    CATALOG,
    SERVED_CARRIER_DELAYS,
    STAGING_FLIGHTS,
    TRAINING_EXAMPLES,
)

TABLES = (CARRIER_DELAYS, CARRIER_DELAYS_V2, SERVED_CARRIER_DELAYS, TRAINING_EXAMPLES)
KEYS = tuple(table.key for table in TABLES)
ALONE = "2013-01-06"
"""The day that other tests lose, or compute by itself."""


@pytest.fixture(scope="module")
def served(published_root, tmp_path_factory) -> Iterator[tuple[Pipeline, FinishedRun]]:
    """All four tables over ten days, in one run. Tests read it."""
    with copy_pipeline(published_root, tmp_path_factory.mktemp("served")) as pipeline:
        yield pipeline, pipeline.run(*KEYS, first="2013-01-01", last="2013-01-10")


def test_one_run_publishes_each_day_of_them_all_without_a_warning(served) -> None:
    pipeline, run = served
    assert run.success, run.message
    for key in KEYS:
        assert pipeline.find_days(key, "MATERIALIZED") == list_days(1, 10)
    assert [
        (evaluation.asset_check_key, evaluation.partition)
        for evaluation in pipeline.read_evaluations(run)
        if not evaluation.passed
    ] == []


def test_versions_have_the_same_rows_and_other_figures_and_code(served) -> None:
    pipeline, _ = served
    before, now = (pipeline.read_rows(table) for table in (CARRIER_DELAYS, CARRIER_DELAYS_V2))
    keys = [*CARRIER_DELAYS.natural_key, "flights_7d", "cancelled_7d"]
    assert [[row[name] for name in keys] for row in before] == [
        [row[name] for name in keys] for row in now
    ]
    recipes = CATALOG.recipes
    assert len({recipes[key].code_version for key in KEYS}) == len(KEYS)


def test_what_is_served_is_version_1(served) -> None:
    pipeline, _ = served
    assert pipeline.read_rows(SERVED_CARRIER_DELAYS) == pipeline.read_rows(CARRIER_DELAYS) != []


def test_examples_are_the_flights_that_departed_with_the_features_of_the_day_before(
    served,
) -> None:
    pipeline, _ = served
    features = {
        (row["flight_date"], row["carrier"], row["origin"]): row
        for row in pipeline.read_rows(SERVED_CARRIER_DELAYS)
    }
    examples = {
        tuple(row[name] for name in TRAINING_EXAMPLES.natural_key): row
        for row in pipeline.read_rows(TRAINING_EXAMPLES)
    }
    departed = [row for row in pipeline.read_rows(STAGING_FLIGHTS) if not row["cancelled"]]
    assert len(examples) == len(departed) > 1_000
    for flight in departed:
        example = examples[tuple(flight[name] for name in TRAINING_EXAMPLES.natural_key)]
        day_before = flight["flight_date"] - dt.timedelta(days=1)
        feature = features.get((day_before, flight["carrier"], flight["origin"]), {})
        assert example["mean_dep_delay_7d"] == feature.get("mean_dep_delay_7d")
        assert example["arr_delay"] == flight["arr_delay"]
        first = flight["flight_date"] == dt.date(2013, 1, 1)
        assert example["features_date"] == (None if first else day_before)


def test_a_day_by_itself_has_the_contents_that_it_has_in_the_range(served, tmp_path) -> None:
    pipeline, _ = served
    with copy_pipeline(pipeline.root, tmp_path / "alone") as copied:
        for table in (CARRIER_DELAYS_V2, TRAINING_EXAMPLES):
            whole = copied.read_contents_checksums(table)
            run = copied.run(table.key, first=ALONE, last=ALONE)
            assert run.success, run.message
            assert copied.read_contents_checksums(table) == whole
            assert len(whole) == 10


@pytest.mark.slow
@pytest.mark.by_hand
def test_an_example_waits_for_the_features_of_the_day_before(
    pipeline: Pipeline,
) -> None:
    for first, last in (("2013-01-01", "2013-01-05"), ("2013-01-07", "2013-01-08")):
        run = pipeline.run(*KEYS[:1], first=first, last=last)
        assert run.success, run.message
        run = pipeline.run(SERVED_CARRIER_DELAYS.key, first=first, last=last)
        assert run.success, run.message
    run = pipeline.run(TRAINING_EXAMPLES.key, first="2013-01-05", last="2013-01-08")
    assert not run.success
    assert pipeline.find_days(TRAINING_EXAMPLES.key, "MATERIALIZED") == [
        "2013-01-05",
        "2013-01-06",
        "2013-01-08",
    ]
    assert "2013-01-07" in run.message


def test_a_flight_that_comes_late_reaches_both_versions_and_what_is_served(
    served, tmp_path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with copy_pipeline(served[0].root, tmp_path / "late") as pipeline:
        sensor = replace(watch(pipeline, monkeypatch), ignored=())
        sensor.settle()
        late = [{**build_flights("2013-01-09")[0], "flight": 9000}]
        pipeline.zone.add_lines("2013-01-12", *map(json.dumps, late))
        requested = sensor.settle()
        assert [request[:3] for request in requested] == [
            (RAW, "2013-01-12", "2013-01-12"),
            (STAGING, "2013-01-09", "2013-01-09"),
            (CARRIER_DELAYS.key, "2013-01-09", "2013-01-12"),
            (CARRIER_DELAYS_V2.key, "2013-01-09", "2013-01-12"),
            # The flight is an example of its own day, and in the features of the days after it.
            (TRAINING_EXAMPLES.key, "2013-01-09", "2013-01-09"),
            (SERVED_CARRIER_DELAYS.key, "2013-01-09", "2013-01-12"),
            (TRAINING_EXAMPLES.key, "2013-01-10", "2013-01-12"),
        ]
