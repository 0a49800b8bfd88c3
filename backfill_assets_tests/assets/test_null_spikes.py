"""Values that a source loses on a day stop where they are first seen, by the samples' own rules."""

from typing import Any

import pytest
from dagster import AssetCheckSeverity

from backfill_engine.rules.verdicts import Check
from backfill_engine_tests.pipeline.landing_zone import Flight
from backfill_engine_tests.pipeline.running import FEATURES, RAW, STAGING, FinishedRun, Pipeline

DAY = "2013-01-11"


def run_with_half_lost(pipeline: Pipeline, column: str) -> FinishedRun:
    """Every other flight of a day lands without a value in a column."""

    def lose(flight: Flight) -> Flight:
        return {**flight, column: None} if flight["flight"] % 2 else flight

    pipeline.zone.change(DAY, lose)
    return pipeline.run(RAW, STAGING, FEATURES, first=DAY, last=DAY)


def find_evaluation(pipeline: Pipeline, run: FinishedRun, key: str) -> Any:
    """What `partition_is_valid` says of the day."""
    (evaluation,) = (
        evaluation
        for evaluation in pipeline.read_evaluations(run)
        if evaluation.asset_key.to_user_string() == key
        and (evaluation.check_name, evaluation.partition) == (Check.VALID, DAY)
    )
    return evaluation


@pytest.mark.parametrize(
    ("lost", "contradicted"),
    [("dep_delay", "agrees(dep_delay) = 0.49"), ("sched_arr_time", "agrees(arr_delay) = 0.49")],
)
def test_half_of_a_time_lost_warns_in_raw_and_stops_before_the_features(
    pipeline: Pipeline, lost: str, contradicted: str
) -> None:
    run = run_with_half_lost(pipeline, lost)
    assert run.message.startswith("staging/flights: withheld 1 of 1 partitions")
    assert f"partition_is_valid: {contradicted}" in run.message
    landed = find_evaluation(pipeline, run, RAW)
    assert (landed.passed, landed.severity) == (False, AssetCheckSeverity.WARN)
    assert DAY not in pipeline.find_days(STAGING, "MATERIALIZED")
    assert DAY not in pipeline.find_days(FEATURES, "MATERIALIZED")


def test_half_of_any_column_lost_is_withheld_where_it_landed(pipeline: Pipeline) -> None:
    run = run_with_half_lost(pipeline, "minute")
    assert run.message.startswith("raw/flights: withheld 1 of 1 partitions")
    bound = "null_spike(minute) = 0.5 (at most 0.25, 0.25 above the median of 11)"
    assert bound in run.message
    assert DAY not in pipeline.find_days(FEATURES, "MATERIALIZED")
