"""However a run is started, it publishes only what its upstream allows."""

from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from pyspark.sql import SparkSession

from backfill_engine.proof.certificates import find_certificates
from backfill_engine.rules.verdicts import Check
from backfill_engine_tests.pipeline.running import (
    FEATURES,
    RAW,
    STAGING,
    FinishedRun,
    Pipeline,
    list_days,
    open_pipeline,
)
from backfill_engine_tests.project import CARRIER_DELAYS, STAGING_FLIGHTS

NEVER_LANDED = "2013-01-04"


@dataclass(frozen=True)
class Layers:
    """Nine days through all layers, each layer by a run of its own."""

    pipeline: Pipeline
    raw: FinishedRun
    staging: FinishedRun
    features: FinishedRun


@pytest.fixture(scope="module")
def layers(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Layers]:
    with open_pipeline(tmp_path_factory.mktemp("layers")) as pipeline:
        pipeline.zone.land(day for day in list_days(1, 9) if day != NEVER_LANDED)
        yield Layers(
            pipeline,
            *(
                pipeline.run(key, first="2013-01-01", last="2013-01-09")
                for key in (RAW, STAGING, FEATURES)
            ),
        )


def test_a_day_without_landing_files_is_withheld_alone(layers: Layers) -> None:
    assert layers.raw.message.split("\n") == [
        "raw/flights: withheld 1 of 9 partitions (the other 8 are published):",
        f"  {NEVER_LANDED}: partition_is_complete: landing_files_exist (nothing has ever landed; "
        "its folder isn't there: land it again, or put a file _EMPTY into its folder)",
        *say_how_to_go_on(layers.raw, "the source"),
    ]
    assert layers.pipeline.find_days(RAW, "FAILED") == [NEVER_LANDED]
    assert layers.pipeline.find_days(RAW, "MATERIALIZED") == [*list_days(1, 3), *list_days(5, 9)]


def test_staging_withholds_the_day_that_raw_withheld_and_names_it(layers: Layers) -> None:
    assert layers.staging.message.split("\n") == [
        "staging/flights: withheld 1 of 9 partitions (the other 8 are published):",
        f"  {NEVER_LANDED}: partition_is_complete: upstream_is_published "
        f"(raw/flights {NEVER_LANDED} is failed or withheld)",
        *say_how_to_go_on(layers.staging, RAW),
    ]
    assert layers.pipeline.find_days(STAGING, "FAILED") == [NEVER_LANDED]
    assert layers.pipeline.read_rows(STAGING_FLIGHTS, NEVER_LANDED) == []


def test_staging_days_that_later_landings_may_change_are_published_as_provisional(
    layers: Layers,
) -> None:
    provisional = {
        day: event.metadata["provisional"].value
        for day in list_days(1, 9)
        for event in layers.pipeline.read_materializations(STAGING, day)
        if "provisional" in event.metadata
    }
    withheld, missing = f"raw/flights {NEVER_LANDED} is failed or withheld", "is missing"
    assert provisional == {
        "2013-01-02": f"to be run again: {withheld}",
        "2013-01-03": f"to be run again: {withheld}",
        "2013-01-08": f"to be run again: raw/flights 2013-01-10 {missing}",
        "2013-01-09": f"to be run again: raw/flights 2013-01-10 {missing}, "
        f"raw/flights 2013-01-11 {missing}",
    }
    inputs = layers.pipeline.read_inputs(STAGING, "2013-01-09")
    assert inputs[RAW]["not published"] == ["2013-01-10", "2013-01-11"]


def test_features_withhold_every_day_whose_window_holds_a_withheld_one(layers: Layers) -> None:
    headline, *lines = layers.features.message.split("\n")
    assert headline.startswith("features/carrier_delays: withheld 6 of 9 partitions")
    why = f"upstream_is_published (staging/flights {NEVER_LANDED} is failed or withheld)"
    assert lines == [
        f"  2013-01-04...2013-01-09: partition_is_complete: {why}",
        *say_how_to_go_on(layers.features, STAGING),
    ], "said once"
    assert layers.pipeline.find_days(FEATURES, "FAILED") == list_days(4, 9)
    assert layers.pipeline.find_days(FEATURES, "MATERIALIZED") == list_days(1, 3)
    published = {
        row["flight_date"].isoformat() for row in layers.pipeline.read_rows(CARRIER_DELAYS)
    }
    assert published == {*list_days(1, 3)}


def test_what_waits_for_days_that_never_came_is_not_due_and_counted_apart(
    layers: Layers,
) -> None:
    run = layers.pipeline.run(FEATURES, first="2013-01-09", last="2013-01-12", check_events=400)
    headline, *withheld, not_due, mended, retry = run.message.split("\n")
    assert [mended, retry] == say_how_to_go_on(run, STAGING)
    assert headline == (
        "features/carrier_delays: withheld 2 of 4 partitions, 2 more are not due (the other 0 are "
        "published):"
    )
    assert [line.strip()[:10] for line in withheld] == ["2013-01-09", "2013-01-10"]
    assert not_due == (
        f"  2013-01-11...2013-01-12: not due: {STAGING} 2013-01-10, {STAGING} 2013-01-11, "
        f"{STAGING} 2013-01-12 never came"
    )
    remarks = {
        (evaluation.partition, evaluation.check_name): evaluation.metadata.get("not asked")
        for evaluation in layers.pipeline.read_evaluations(run)
        if evaluation.passed and evaluation.partition is not None
    }
    checks = {check.value for check in Check}
    assert {check for day, check in remarks if day == "2013-01-11"} == checks
    assert None not in remarks.values(), "nothing else passed"
    (certificate,) = find_certificates(layers.pipeline.warehouse, run.id)
    statuses = {row.partition: row.status for row in certificate.partitions}
    assert [statuses[day] for day in list_days(9, 12)] == [*["withheld"] * 2, *["not due"] * 2]
    assert read_features(layers.pipeline) == [*["failed"] * 2, *["not_due"] * 2]
    # Once what they wait for has been tried, they are to be run again.
    layers.pipeline.run(STAGING, first="2013-01-12", last="2013-01-12")
    assert read_features(layers.pipeline) == [*["failed"] * 2, "not_due", "failed"]


def say_how_to_go_on(run: FinishedRun, source: str) -> list[str]:
    return [
        f"Once {source} is mended, go on with them and what waits for them:",
        f"  backfill-assets backfill retry {run.id[:8]}",
    ]


def read_features(pipeline: Pipeline) -> list[str]:
    (found,) = pipeline.read_statuses(CARRIER_DELAYS, first="2013-01-09", last="2013-01-12")
    return [status.status for status in found.partitions]
