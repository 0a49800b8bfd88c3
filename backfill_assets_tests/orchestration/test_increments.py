"""Incremental runs take a table on from its watermark; backfills leave that alone, unless told."""

import shutil
from collections.abc import Sequence
from dataclasses import dataclass

import pytest
from dagster import RunRequest, build_sensor_context

from backfill_assets.definitions import defs
from backfill_assets.errors import LandingError, LandingNotFoundError
from backfill_assets.lake.watermarks import read_watermarks
from backfill_assets.orchestration.increments import Increment, find_increments
from backfill_assets.pipelines import list_recipes
from backfill_assets.sensors import (
    RANGE_END_TAG,
    RANGE_START_TAG,
    process_new_partitions,
)
from backfill_assets.tables.orders import RAW_ORDERS
from backfill_assets_tests.pipeline.running import FEATURES, RAW, STAGING, Pipeline, list_days

INCREMENTAL = {"backfill_assets/incremental": "true"}


def read(pipeline: Pipeline) -> dict[str, str]:
    return {
        key: watermark.next_key for key, watermark in read_watermarks(pipeline.warehouse).items()
    }


@dataclass(frozen=True)
class Requested:
    """A run that the sensor asks for."""

    key: str
    first: str
    last: str
    request: RunRequest


def ask_sensor(pipeline: Pipeline) -> list[Requested]:
    """What it requests now, run keys seen before left out, as the daemon does."""
    with build_sensor_context(
        instance=pipeline.instance, repository_def=defs.get_repository_def()
    ) as context:
        found = process_new_partitions.evaluate_tick(context).run_requests or []
    return [
        Requested(
            one.asset_selection[0].to_user_string(),
            one.tags[RANGE_START_TAG],
            one.tags[RANGE_END_TAG],
            one,
        )
        for one in found
        if one.asset_selection
    ]


def run_all(pipeline: Pipeline, requested: Sequence[Requested]) -> None:
    for one in requested:
        pipeline.run(one.key, first=one.first, last=one.last, tags=INCREMENTAL)


def test_a_backfill_leaves_the_watermark_alone_unless_told(empty_pipeline: Pipeline) -> None:
    empty_pipeline.zone.land(list_days(1, 4))
    first, last = "2013-01-01", "2013-01-03"
    assert empty_pipeline.run(RAW, first=first, last=last).success
    assert read(empty_pipeline) == {}
    assert empty_pipeline.run(
        RAW, first=first, last=last, ops={RAW: {"save_watermark": True}}
    ).success
    assert read(empty_pipeline) == {RAW: "2013-01-04"}
    assert empty_pipeline.run(RAW, first="2013-01-04", last="2013-01-04", tags=INCREMENTAL).success
    assert read(empty_pipeline) == {RAW: "2013-01-05"}


def test_an_incremental_run_stops_before_what_it_withheld_or_could_not_finish(
    empty_pipeline: Pipeline,
) -> None:
    empty_pipeline.zone.land(list_days(1, 5))
    empty_pipeline.zone.add_lines("2013-01-04", *["{"] * 5)
    first, last = "2013-01-01", "2013-01-05"
    assert not empty_pipeline.run(RAW, first=first, last=last, tags=INCREMENTAL).success
    assert read(empty_pipeline) == {RAW: "2013-01-04"}
    # Days 2 and 3 await landing days that are withheld or have not come.
    empty_pipeline.run(STAGING, first=first, last=last, tags=INCREMENTAL)
    assert read(empty_pipeline)[STAGING] == "2013-01-02"
    # What is computed from a provisional day is provisional itself.
    empty_pipeline.run(FEATURES, first=first, last=last, tags=INCREMENTAL)
    assert read(empty_pipeline)[FEATURES] == "2013-01-02"


@pytest.fixture
def watched(empty_pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch) -> Pipeline:
    """With the environment that the sensor reads."""
    monkeypatch.setenv("BACKFILL_LANDING", str(empty_pipeline.zone.root))
    monkeypatch.setenv("BACKFILL_WAREHOUSE", empty_pipeline.warehouse.root)
    return empty_pipeline


def test_the_sensor_takes_each_table_on_as_far_as_its_input_has_come(watched: Pipeline) -> None:
    assert ask_sensor(watched) == []
    watched.zone.land(list_days(1, 4))
    first = ask_sensor(watched)
    assert [(one.key, one.first, one.last) for one in first] == [(RAW, "2013-01-01", "2013-01-04")]
    run_all(watched, first)
    second = ask_sensor(watched)
    assert [(one.key, one.first, one.last) for one in second] == [
        (STAGING, "2013-01-01", "2013-01-04")
    ]
    run_all(watched, second)
    assert read(watched) == {RAW: "2013-01-05", STAGING: "2013-01-03"}
    third = ask_sensor(watched)
    assert {(one.key, one.first, one.last) for one in third} == {
        (STAGING, "2013-01-03", "2013-01-04"),
        (FEATURES, "2013-01-01", "2013-01-04"),
    }
    (again,) = (one for one in third if one.key == STAGING)
    # Provisional days are tried again once their input has changed, not at each tick.
    assert ask_sensor(watched)[0].request.run_key == again.request.run_key
    watched.zone.land(list_days(5, 6))
    run_all(watched, [one for one in ask_sensor(watched) if one.key == RAW])
    later = {one.key: one for one in ask_sensor(watched)}
    assert later[STAGING].request.run_key != again.request.run_key
    run_all(watched, [later[STAGING]])
    assert read(watched)[STAGING] == "2013-01-05"


def find_raw(pipeline: Pipeline, key: str = RAW) -> list[Increment]:
    return find_increments(
        pipeline.instance,
        defs.get_repository_def().asset_graph,
        pipeline.warehouse,
        list_recipes()[key],
        None,
        landing_root=str(pipeline.zone.root),
    )


def test_a_pipeline_that_nobody_feeds_is_no_error_and_one_that_lost_its_source_is(
    watched: Pipeline,
) -> None:
    with build_sensor_context(
        instance=watched.instance, repository_def=defs.get_repository_def()
    ) as context:
        skipped = process_new_partitions.evaluate_tick(context).skip_message
    # Neither flights nor weather nor orders have landed.
    assert skipped == "no input has come since the watermarks"
    watched.zone.land(list_days(1, 1))
    assert len(find_raw(watched)) == 1
    run_all(watched, ask_sensor(watched))
    shutil.move(watched.zone.root / "flights", watched.root / "away")
    with pytest.raises(LandingNotFoundError, match=r"landing/flights isn't there: mount it or set"):
        find_raw(watched)


def test_a_table_whose_input_is_unreadable_keeps_no_other_waiting(watched: Pipeline) -> None:
    watched.zone.land(list_days(1, 2))
    broken = watched.zone.root / "orders" / "orders" / "a.parquet"
    broken.parent.mkdir(parents=True)
    broken.write_bytes(b"no Parquet")
    assert [one.key for one in ask_sensor(watched)] == [RAW]
    with pytest.raises(LandingError, match=r"orders/orders/a.parquet can't be read as Parquet"):
        find_raw(watched, RAW_ORDERS.key)
