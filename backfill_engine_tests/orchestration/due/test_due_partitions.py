"""The sensor requests what is new, changed or due, told by what partitions were computed from."""

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from dagster import AssetKey
from pyspark.sql import SparkSession

from backfill_engine.errors import BackfillError
from backfill_engine.lake.table_log import read_log
from backfill_engine.lake.watermarks import read_watermarks
from backfill_engine.orchestration.planning.launching import request_planned
from backfill_engine.orchestration.planning.planning import open_planner
from backfill_engine.orchestration.planning.plans import Only, Plan
from backfill_engine.orchestration.records.events import FINAL_CHANGED
from backfill_engine.orchestration.runs.option_declarations import Launch
from backfill_engine.orchestration.runs.run_tags import (
    LAUNCHED_CODE_TAG,
    RANGE_END_TAG,
    RANGE_START_TAG,
)
from backfill_engine_tests.pipeline.landing_zone import build_landed
from backfill_engine_tests.pipeline.requesting import get_backfill, read_target
from backfill_engine_tests.pipeline.running import (
    FEATURES,
    RAW,
    STAGING,
    Pipeline,
    copy_pipeline,
    list_days,
    open_pipeline,
)
from backfill_engine_tests.pipeline.watching import Sensor, describe, watch
from backfill_engine_tests.project import CATALOG, RAW_FLIGHTS, defs

INCREMENTAL = {"backfill_assets/incremental": "true"}


def read(pipeline: Pipeline) -> dict[str, str]:
    return {
        key: watermark.next_key for key, watermark in read_watermarks(pipeline.warehouse).items()
    }


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
    # Mended alone, the day takes the watermark over the one that was published after it.
    empty_pipeline.zone.land(["2013-01-04"])
    day = "2013-01-04"
    assert empty_pipeline.run(RAW, first=day, last=day, tags=INCREMENTAL).success
    assert read(empty_pipeline)[RAW] == "2013-01-06"


@pytest.fixture
def sensor(empty_pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch) -> Sensor:
    return watch(empty_pipeline, monkeypatch)


def test_it_takes_each_table_on_as_far_as_its_input_has_come(sensor: Sensor) -> None:
    zone = sensor.pipeline.zone
    assert sensor.tick() == []
    assert sensor.skipped == "all is as its input is"
    zone.land(list_days(1, 4))
    assert sensor.tick() == [(RAW, "2013-01-01", "2013-01-04", "4 new")]
    assert sensor.tick() == [(STAGING, "2013-01-01", "2013-01-04", "4 new")]
    assert read(sensor.pipeline) == {RAW: "2013-01-05", STAGING: "2013-01-03"}
    assert sensor.tick() == [(FEATURES, "2013-01-01", "2013-01-04", "4 new")]
    # Days 3 and 4 are provisional: nothing to do before the landing days that they wait for.
    assert sensor.tick() == []
    zone.land(list_days(5, 6))
    assert sensor.tick() == [(RAW, "2013-01-05", "2013-01-06", "2 new")]
    # Flights of day 4 landed on day 5; of day 3 none, but it is final now.
    assert sensor.tick() == [(STAGING, "2013-01-03", "2013-01-06", "1 changed, 1 due, 2 new")]
    assert read(sensor.pipeline)[STAGING] == "2013-01-05"
    assert [request[:3] for request in sensor.settle()] == [(FEATURES, "2013-01-03", "2013-01-06")]


@pytest.fixture(scope="module")
def settled_root(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two weeks, published over all layers."""
    root = tmp_path_factory.mktemp("settled")
    with open_pipeline(root) as pipeline, pytest.MonkeyPatch.context() as monkeypatch:
        pipeline.zone.land(list_days(1, 14))
        watch(pipeline, monkeypatch).settle()
    return root


@pytest.fixture
def settled(
    settled_root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Sensor]:
    with copy_pipeline(settled_root, tmp_path) as pipeline:
        yield watch(pipeline, monkeypatch)


def add_late(sensor: Sensor, landing_day: str, *flight_days: str) -> None:
    """Lands, with a day's own, a flight of each of these days that nobody has reported yet."""
    sensor.pipeline.zone.add_flights(landing_day, *flight_days)


def test_late_rows_reach_exactly_the_days_they_are_of_however_late(settled: Sensor) -> None:
    before = read_versions(settled.pipeline)
    add_late(settled, "2013-01-15", "2013-01-02", "2013-01-03", "2013-01-09")
    assert settled.tick() == [(RAW, "2013-01-15", "2013-01-15", "1 new")]
    # Day 14 has late flights every day; day 13 is final now.
    assert settled.tick() == [
        (STAGING, "2013-01-02", "2013-01-03", "2 changed"),
        (STAGING, "2013-01-09", "2013-01-09", "1 changed"),
        (STAGING, "2013-01-13", "2013-01-15", "1 changed, 1 due, 1 new"),
    ]
    found = settled.tick()
    assert [request[:3] for request in found] == [(FEATURES, "2013-01-02", "2013-01-15")]
    assert settled.tick() == []
    after = read_versions(settled.pipeline)
    assert {key for key in before[STAGING] if before[STAGING][key] != after[STAGING][key]} == {
        *("2013-01-02", "2013-01-03", "2013-01-09", "2013-01-13", "2013-01-14")
    }
    assert settled.pipeline.find_unsynced(FEATURES) == []
    # Final days that changed say why; day 13 was announced to change, day 15 was never there.
    assert "rows for it moved in raw/flights" in find_why_changed(settled, STAGING, "2013-01-02")
    assert find_why_changed(settled, STAGING, "2013-01-13") == ""
    assert find_why_changed(settled, STAGING, "2013-01-15") == ""
    why = find_why_changed(settled, FEATURES, "2013-01-04")
    assert why == "staging/flights 2013-01-02, 2013-01-03 changed"


def plan(
    settled: Sensor,
    *keys: str,
    only: Only,
    first: str = "2013-01-01",
    downstream: bool = False,
    new_code: str = "",
) -> Plan:
    """Plans up to day 15 as if the table `new_code` were computed by another code."""
    tables = [CATALOG.find_table(key) for key in keys]
    recipes = {
        key: replace(recipe, code_version="mended") if key == new_code else recipe
        for key, recipe in CATALOG.recipes.items()
    }
    planner = open_planner(
        settled.pipeline.instance,
        defs.get_repository_def().asset_graph,
        replace(CATALOG, recipes=recipes),
        now=datetime.now(tz=UTC),
    )
    return planner.plan(
        dict.fromkeys(tables, (first, "2013-01-15")), only=[only], downstream=downstream
    )


def list_ranges(found: Plan) -> list[tuple[object, ...]]:
    return [(table.table, *table.ranges) for table in found.tables]


def test_a_plan_says_what_would_be_run_and_why(settled: Sensor) -> None:
    add_late(settled, "2013-01-10", "2013-01-03")
    settled.pipeline.zone.land(["2013-01-15"])
    assert plan(settled, RAW, only=Only.MISSING).tables[0].states == {
        "materialized": 14,
        "missing": 1,
    }
    (raw,) = plan(settled, RAW, only=Only.STALE).tables
    assert raw.states == {"materialized": 14, "missing": 1, "stale": 1}
    assert raw.stale == ["2013-01-10: its landed files changed"]
    assert (raw.ranges, raw.commits) == ([("2013-01-10", "2013-01-10")], 1)
    assert raw.bytes_read == settled.pipeline.zone.path("2013-01-10").stat().st_size
    (mended,) = plan(settled, RAW, only=Only.STALE, new_code=RAW).tables
    assert (raw.up_to_date, mended.up_to_date) == (13, 0)
    assert mended.code_version == "mended"
    assert mended.stale == [
        "2013-01-01...2013-01-09, 2013-01-11...2013-01-14: the code changed",
        "2013-01-10: its landed files changed; the code changed",
    ]
    assert plan(settled, RAW, only=Only.STALE, new_code=STAGING).tables[0].stale == raw.stale
    (day,) = plan(settled, RAW, only=Only.MISSING).tables
    assert day.ranges == [("2013-01-15", "2013-01-15")]
    # What never was published counts as the mean; a step over one day took no longer than over 14.
    assert day.rows == pytest.approx(120, abs=5)
    assert day.seconds is not None
    # Both tables in one plan: staging doesn't wait for what this plan is to publish before.
    both = plan(settled, STAGING, RAW, only=Only.ALL, first="2013-01-14")
    assert [(table.table, table.partitions, table.waits) for table in both.tables] == [
        (RAW, 2, []),
        (STAGING, 2, []),
    ]
    assert both.downstream == {
        STAGING: [("2013-01-12", "2013-01-13")],
        FEATURES: [("2013-01-12", "2013-01-14")],
    }
    # With what was computed from them: no state chooses it, as it is not stale yet.
    more = plan(settled, RAW, only=Only.STALE, downstream=True)
    assert list_ranges(more) == [
        (RAW, ("2013-01-10", "2013-01-10")),
        (STAGING, ("2013-01-08", "2013-01-10")),
        (FEATURES, ("2013-01-08", "2013-01-14")),
    ]
    assert [*more.downstream] == [STAGING, FEATURES]
    assert more.tables[1].states == {"materialized": 3}
    more = plan(settled, STAGING, RAW, only=Only.ALL, first="2013-01-14", downstream=True)
    assert list_ranges(more) == [
        (RAW, ("2013-01-14", "2013-01-15")),
        (STAGING, ("2013-01-12", "2013-01-15")),
        (FEATURES, ("2013-01-12", "2013-01-14")),
    ]
    assert more.downstream == both.downstream
    (alone,) = plan(settled, STAGING, only=Only.MISSING).tables
    assert alone.waits == ["2013-01-15: raw/flights 2013-01-15 is missing"]
    # Once raw is published, the rows say which days are stale, however late they came.
    settled.tick()
    (staging,) = plan(settled, STAGING, only=Only.STALE).tables
    assert staging.stale[0].startswith("2013-01-03")
    assert "rows for it moved in raw/flights" in staging.stale[0]
    with at_work(settled, STAGING, "2013-01-01", "2013-01-05"):
        (busy,) = plan(settled, STAGING, only=Only.STALE).tables
    assert busy.at_work == ["2013-01-03...2013-01-03"]


def test_a_plan_is_launched_as_one_backfill_of_just_its_partitions(settled: Sensor) -> None:
    instance, graph = settled.pipeline.instance, defs.get_repository_def().asset_graph
    settled.pipeline.zone.land(list_days(15, 15))
    for day in ("2013-01-03", "2013-01-10"):
        settled.pipeline.zone.add_lines(day, json.dumps(build_landed(day)[5]))
    found = plan(settled, RAW, only=Only.STALE)
    (raw,) = found.tables
    assert (raw.partitions, raw.commits, len(raw.ranges)) == (2, 2, 2)
    launched = request_planned(
        CATALOG, instance, graph, found, Launch(reason="rewritten files", priority=-1)
    )
    assert launched.title == "raw/flights 2013-01-03...2013-01-10: rewritten files"
    assert not launched.has_daemon
    backfill = get_backfill(instance, launched.backfill_id)
    assert backfill.tags["backfill_assets/reason"] == "rewritten files"
    assert backfill.tags["dagster/priority"] == "-1"
    code = {RAW: CATALOG.recipes[RAW].code_version}
    assert json.loads(backfill.tags[LAUNCHED_CODE_TAG]) == code
    assert read_target(backfill) == {RAW: ["2013-01-03", "2013-01-10"]}
    with at_work(settled, RAW, "2013-01-10", "2013-01-12"):
        busy = plan(settled, RAW, only=Only.STALE)
        with pytest.raises(BackfillError, match=r"at work on raw/flights 2013-01-03.*2013-01-10"):
            request_planned(CATALOG, instance, graph, busy, Launch())
    assert len(instance.get_backfills()) == 1


def find_why_changed(sensor: Sensor, key: str, day: str) -> str:
    """Reads from its newest materialization why a final partition holds something else."""
    metadata = sensor.pipeline.read_materializations(key, day)[0].metadata
    return str(metadata[FINAL_CHANGED].value) if FINAL_CHANGED in metadata else ""


def read_versions(pipeline: Pipeline) -> dict[str, dict[str, int]]:
    logs = [
        read_log(pipeline.warehouse, CATALOG.find_table(key)) for key in (RAW, STAGING, FEATURES)
    ]
    return {
        log.table.key: {day: publish.version for day, publish in log.publishes.items()}
        for log in logs
    }


def test_files_that_come_late_change_or_vanish_are_told_by_themselves(settled: Sensor) -> None:
    zone = settled.pipeline.zone
    # Written again with the same records: raw is computed again, and nothing after it.
    zone.land(["2013-01-04"])
    assert settled.settle() == [(RAW, "2013-01-04", "2013-01-04", "1 changed")]
    assert find_why_changed(settled, RAW, "2013-01-04") == ""
    # Two days lose their file; another gets a flight that was there before, twice.
    zone.remove("2013-01-06")
    again = build_landed("2013-01-10")[5]
    zone.add_lines("2013-01-10", json.dumps(again))
    done = settled.settle()
    assert [request for request in done if request[0] == RAW] == [
        (RAW, "2013-01-06", "2013-01-06", "1 changed"),
        (RAW, "2013-01-10", "2013-01-10", "1 changed"),
    ]
    assert find_why_changed(settled, RAW, "2013-01-10") == "its landed files changed"
    # The sixth's flights, the late ones of the fifth among them.
    assert next(request[1:3] for request in done if request[0] == STAGING) == (
        "2013-01-05",
        "2013-01-06",
    )


def test_what_is_withheld_is_tried_again_once_its_source_is_mended(settled: Sensor) -> None:
    zone = settled.pipeline.zone
    zone.add_lines("2013-01-15", *["{"] * 5)
    assert settled.tick() == [(RAW, "2013-01-15", "2013-01-15", "1 new")]
    assert settled.tick() == []
    zone.land(["2013-01-16"])
    # The day after goes on, and the withheld one isn't tried with it.
    assert settled.tick() == [(RAW, "2013-01-16", "2013-01-16", "1 new")]
    settled.settle()
    assert read(settled.pipeline)[RAW] == "2013-01-15"
    zone.land(["2013-01-15"])
    assert settled.tick() == [(RAW, "2013-01-15", "2013-01-15", "1 new")]
    assert read(settled.pipeline)[RAW] == "2013-01-17"
    settled.settle()
    assert settled.pipeline.find_days(STAGING, "MATERIALIZED") == list_days(1, 16)


@pytest.mark.slow
@pytest.mark.by_hand
def test_a_published_day_whose_bad_file_goes_again_is_no_longer_held_back(
    settled: Sensor,
) -> None:
    day = "2013-01-10"
    bad = settled.pipeline.zone.path(day).with_name("bad.json")
    bad.write_text("{\n" * 50)
    assert settled.tick() == [(RAW, day, day, "1 changed")]
    assert settled.pipeline.find_days(RAW, "FAILED") == [day]
    assert settled.tick() == []
    # All is as it was consumed, and only Dagster doesn't know it.
    bad.unlink()
    assert settled.tick() == [(RAW, day, day, "1 due")]
    assert settled.pipeline.find_days(RAW, "FAILED") == []
    assert settled.tick() == []


def test_a_tick_that_dies_before_its_cursor_is_stored_requests_nothing_twice(
    settled: Sensor,
) -> None:
    settled.pipeline.zone.land(list_days(15, 15))
    assert len(settled.look(forgets=True)) == 1
    assert settled.look() == []
    # A cursor that is lost, or of another release, is found again from the tables.
    settled.used.clear()
    settled.cursor = "no cursor"
    assert [describe(request)[0] for request in settled.look()] == [RAW]


@pytest.mark.slow
@pytest.mark.by_hand
def test_rows_beyond_the_horizon_wait_for_a_person(
    settled: Sensor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BACKFILL_LATE_DAYS", "10")
    add_late(settled, "2013-01-15", "2013-01-02", "2013-01-09")
    settled.tick()
    assert [request[1:3] for request in settled.tick() if request[0] == STAGING] == [
        ("2013-01-09", "2013-01-09"),
        ("2013-01-13", "2013-01-15"),
    ]
    settled.settle()
    assert settled.look() == []
    settled.cursor = None
    assert settled.look() == []
    assert "staging/flights: rows came up to 13 days late for 1 partitions" in settled.skipped
    assert "--partition-range 2013-01-02...2013-01-02" in settled.skipped
    day = "2013-01-02"
    assert settled.pipeline.run(STAGING, first=day, last=day).success
    assert [request[:3] for request in settled.settle()] == [(FEATURES, "2013-01-02", "2013-01-08")]


@pytest.mark.slow
@pytest.mark.by_hand
def test_a_rollback_stands_until_the_input_changes_again(settled: Sensor) -> None:
    day = "2013-01-04"
    settled.pipeline.zone.add_lines(day, json.dumps(build_landed(day)[5]))
    settled.settle()
    version = read_log(settled.pipeline.warehouse, RAW_FLIGHTS).version
    settled.pipeline.roll_back(RAW, day, day, to_version=version - 1).confirm()
    assert RAW not in {request[0] for request in settled.settle()}
    settled.pipeline.zone.land([day])
    assert settled.tick() == [(RAW, day, day, "1 changed")]


@pytest.mark.slow
@pytest.mark.by_hand
def test_a_pipeline_that_lost_its_source_or_cannot_read_it_keeps_no_other_waiting(
    sensor: Sensor,
) -> None:
    sensor.pipeline.zone.land(list_days(1, 2))
    broken = sensor.pipeline.zone.root / "orders" / "orders" / "a.parquet"
    broken.parent.mkdir(parents=True)
    broken.write_bytes(b"no Parquet")
    assert sensor.tick() == [(RAW, "2013-01-01", "2013-01-02", "2 new")]
    shutil.move(sensor.pipeline.zone.root / "flights", sensor.pipeline.root / "away")
    assert [request[0] for request in sensor.tick()] == [STAGING]
    sensor.settle()
    assert "landing/flights isn't there: mount it or set" in sensor.skipped
    assert "orders/orders/a.parquet can't be read as Parquet" in sensor.skipped


def test_it_waits_for_runs_at_work_on_what_they_work(settled: Sensor) -> None:
    zone = settled.pipeline.zone
    zone.add_lines("2013-01-04", "{}")
    zone.land(["2013-01-15"])
    with at_work(settled, RAW, "2013-01-01", "2013-01-05"):
        assert [describe(request) for request in settled.look()] == [
            (RAW, "2013-01-15", "2013-01-15", "1 new")
        ]
    assert [describe(request)[:3] for request in settled.look()] == [
        (RAW, "2013-01-04", "2013-01-04")
    ]


@contextmanager
def at_work(sensor: Sensor, key: str, first: str, last: str) -> Iterator[None]:
    """A run of somebody else that has not ended."""
    instance = sensor.pipeline.instance
    job = defs.resolve_implicit_global_asset_job_def()
    run = instance.create_run_for_job(
        job.get_subset(asset_selection={AssetKey.from_user_string(key)}),
        tags={RANGE_START_TAG: first, RANGE_END_TAG: last},
        asset_selection=frozenset({AssetKey.from_user_string(key)}),
    )
    yield
    instance.report_run_canceled(run)
