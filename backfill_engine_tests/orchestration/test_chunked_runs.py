"""A range is worked through in chunks, which are recorded, stand, pause or fail."""

import datetime as dt
import json
import time
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from threading import Thread

import pytest
from dagster import AssetKey, DagsterInstance, RunRequest

from backfill_engine.lake.partitions import build_partitions
from backfill_engine.lake.table_log import read_log
from backfill_engine.lake.watermarks import read_watermarks
from backfill_engine.orchestration.runs.chains import find_partitions_at_work
from backfill_engine.orchestration.runs.pausing import find_pause, pause, unpause
from backfill_engine.orchestration.runs.run_tags import (
    CHAIN_TAG,
    CONTINUES_TAG,
    PAUSED_AT_TAG,
    PAUSED_TAG,
    RANGE_END_TAG,
    RANGE_START_TAG,
    SETTLED,
    find_run_range,
)
from backfill_engine.proof.certificates import Certificate, list_documents
from backfill_engine.proof.verification import verify_certificate
from backfill_engine_tests.pipeline.landing_zone import build_landed
from backfill_engine_tests.pipeline.requesting import get_run
from backfill_engine_tests.pipeline.running import FEATURES, RAW, STAGING, Pipeline, list_days
from backfill_engine_tests.pipeline.watching import evaluate_sensor
from backfill_engine_tests.project import RAW_FLIGHTS, STAGING_FLIGHTS, defs, go_on_after_pause

FIRST, LAST = "2013-01-01", "2013-01-12"
# ISO weeks: the first is cut by the range.
WEEKS = [("2013-01-01", "2013-01-06"), ("2013-01-07", "2013-01-12")]
# Days of two years, up to the last one that there is.
TURN = ["2013-12-29", "2013-12-30", "2013-12-31", "2014-01-01"]
# Days of three months and two quarters.
SPRING = [f"{dt.date(2013, 5, 31) + dt.timedelta(days=day)}" for day in range(32)]


def read_certificate(pipeline: Pipeline, run_id: str, table: str) -> Certificate:
    documents = list_documents(pipeline.warehouse)
    (found,) = [document.read() for document in documents if document.subject == (run_id, table)]
    return found


def list_statuses(pipeline: Pipeline, run_id: str, table: str) -> list[str]:
    return [chunk.status for chunk in read_certificate(pipeline, run_id, table).chunks]


def ask_sensor(instance: DagsterInstance) -> tuple[Sequence[RunRequest], str]:
    """Returns what the sensor requests, or why it requests nothing."""
    tick = evaluate_sensor(go_on_after_pause, instance)
    return tick.run_requests or [], tick.skip_message or ""


def go_on(pipeline: Pipeline, request: RunRequest) -> str:
    """Runs what the sensor requests, as the daemon does, and returns the run's id."""
    run = pipeline.run(
        *(key.to_user_string() for key in request.asset_selection or ()),
        first=request.tags[RANGE_START_TAG],
        last=request.tags[RANGE_END_TAG],
        tags=request.tags,
        ops={
            name.replace("__", "/"): op["config"]
            for name, op in request.run_config.get("ops", {}).items()
        },
    ).confirm()
    return run.id


def test_a_chunk_that_stands_is_left_and_one_that_does_not_is_published(
    pipeline: Pipeline,
) -> None:
    options = {STAGING: {"chunk": "weeks"}}
    before = read_log(pipeline.warehouse, STAGING_FLIGHTS).version
    run = pipeline.run(STAGING, first=FIRST, last=LAST, ops=options).confirm()
    found = read_certificate(pipeline, run.id, STAGING)
    assert [(chunk.first, chunk.last) for chunk in found.chunks] == WEEKS
    assert [chunk.status for chunk in found.chunks] == ["already published", "published"]
    assert [chunk.operation_type for chunk in found.chunks] == ["none", "overwrite"]
    assert [(chunk.partitions, chunk.published) for chunk in found.chunks] == [(6, 0), (6, 2)]
    messages = [entry.user_message for entry in pipeline.instance.all_logs(run.id)]
    assert [
        line for line in messages if "published 0 of 6" in line and "6 already published" in line
    ]
    times = [time for chunk in found.chunks for time in (chunk.started_at, chunk.completed_at)]
    assert None not in times
    assert times == sorted(map(str, times)), "one begins once the one before it is done"
    assert found.chunks[1].rows == sum(row.rows for row in found.partitions[10:])
    log = read_log(pipeline.warehouse, STAGING_FLIGHTS)
    assert before is not None
    assert log.version == before + 1
    assert pipeline.find_days(STAGING, "MATERIALIZED") == list_days(1, 12)
    (newest, *_) = pipeline.read_materializations(STAGING, "2013-01-02")
    assert "already_published" in newest.metadata
    assert newest.metadata["delta_version"].value == before
    partitions = build_partitions(STAGING_FLIGHTS, [row.partition for row in found.partitions])
    lines = verify_certificate(log, found, partitions)
    assert all(line.holds is not False for line in lines), lines

    again = pipeline.run(STAGING, first=FIRST, last=LAST, ops=options).confirm()
    assert {*list_statuses(pipeline, again.id, STAGING)} == {"already published"}
    restarted = pipeline.run(
        STAGING, first=FIRST, last=LAST, ops={STAGING: {"chunk": "weeks", "restart": True}}
    )
    assert {*list_statuses(pipeline, restarted.id, STAGING)} == {"published"}
    assert read_log(pipeline.warehouse, STAGING_FLIGHTS).version == before + 3
    assert read_watermarks(pipeline.warehouse) == {}, "no run was told to move one"


@pytest.mark.parametrize(
    ("size", "chunks"),
    [
        ("years", [TURN[:3], TURN[3:]]),
        ("months=3", [SPRING[:31], SPRING[31:]]),
        # The second day landed in two files.
        ("files=3", [TURN[:2], TURN[2:]]),
    ],
)
def test_a_chunk_is_a_year_or_a_quarter_or_so_many_landed_files_at_most(
    pipeline: Pipeline, size: str, chunks: list[list[str]]
) -> None:
    days = [*chain(*chunks)]
    landed = {day: [*map(json.dumps, build_landed(day))] for day in days}
    pipeline.zone.land(days)
    pipeline.zone.write(days[1], landed[days[1]][::2])
    second = pipeline.zone.path(days[1]).with_name("more.json")
    second.write_text("".join(f"{line}\n" for line in landed[days[1]][1::2]))
    run = pipeline.run(RAW, first=days[0], last=days[-1], ops={RAW: {"chunk": size}}).confirm()
    found = read_certificate(pipeline, run.id, RAW)
    assert [(chunk.first, chunk.last, chunk.status) for chunk in found.chunks] == [
        (chunk[0], chunk[-1], "published") for chunk in chunks
    ]
    assert len(found.commits) == len(chunks)
    rows = read_log(pipeline.warehouse, RAW_FLIGHTS).count_rows()
    assert {day: rows[day] for day in days} == {day: len(landed[day]) for day in days}


def test_rows_that_came_late_bring_down_just_their_chunk(pipeline: Pipeline) -> None:
    late = {**build_landed("2013-01-03")[5], "flight": 999}
    pipeline.zone.add_lines("2013-01-09", json.dumps(late))
    assert pipeline.run(RAW, first="2013-01-09", last="2013-01-09").success
    options = {STAGING: {"chunk": "days=1"}}
    run = pipeline.run(STAGING, first=FIRST, last="2013-01-10", ops=options).confirm()
    chunks = read_certificate(pipeline, run.id, STAGING).chunks
    assert [chunk.first for chunk in chunks if chunk.status == "published"] == ["2013-01-03"]


def test_of_a_chunk_with_a_withheld_day_only_that_day_is_tried_again(pipeline: Pipeline) -> None:
    pipeline.zone.add_lines("2013-01-05", *["{"] * 5)
    options = {RAW: {"chunk": "weeks"}}
    first = pipeline.run(RAW, first=FIRST, last=LAST, ops=options)
    assert pipeline.find_days(RAW, "FAILED") == ["2013-01-05"]
    statuses = list_statuses(pipeline, first.id, RAW)
    assert statuses == ["partly published", "already published"]
    version = read_log(pipeline.warehouse, RAW_FLIGHTS).version
    again = pipeline.run(RAW, first=FIRST, last=LAST, ops=options)
    assert "withheld 1 of 12 partitions" in again.message
    assert read_log(pipeline.warehouse, RAW_FLIGHTS).version == version, "nothing was good"
    assert pipeline.find_days(RAW, "FAILED") == ["2013-01-05"]


def test_the_watermark_moves_over_what_stands_or_is_published_and_stops_at_what_is_withheld(
    pipeline: Pipeline,
) -> None:
    day = "2013-01-05"
    options = {RAW: {"chunk": "weeks", "save_watermark": True}}
    pipeline.zone.add_lines(day, *["{"] * 5)
    run = pipeline.run(RAW, first=FIRST, last=LAST, ops=options)
    assert "withheld 1 of 12 partitions" in run.message
    assert read_watermarks(pipeline.warehouse)[RAW].next_key == day, "later days stand"
    pipeline.zone.land([day])
    pipeline.zone.add_lines(day, json.dumps({**build_landed(day)[5], "flight": 999}))
    again = pipeline.run(RAW, first=FIRST, last=LAST, ops=options).confirm()
    chunks = read_certificate(pipeline, again.id, RAW).chunks
    assert [chunk.published for chunk in chunks] == [1, 0]
    assert read_watermarks(pipeline.warehouse)[RAW].next_key == "2013-01-13"


@pytest.mark.slow
@pytest.mark.by_hand
def test_what_a_paused_append_has_added_it_does_not_add_again(pipeline: Pipeline) -> None:
    options = {STAGING: {"chunk": "days", "write_mode": "append_once"}}
    days = ("2013-01-11", "2013-01-12")
    run = pipeline.run(STAGING, first=days[0], last=days[0], ops=options).confirm()
    rows = read_log(pipeline.warehouse, STAGING_FLIGHTS).count_rows()
    # The input moves on, as by the daily run: to an append that goes by it, that is another batch.
    assert pipeline.run(RAW, first="2013-01-02", last="2013-01-02").success
    pipeline.run(
        STAGING, first=days[0], last=days[1], ops=options, tags={CHAIN_TAG: run.id}
    ).confirm()
    after = read_log(pipeline.warehouse, STAGING_FLIGHTS).count_rows()
    assert after[days[0]] == rows[days[0]]
    assert after[days[1]] > 0


def test_a_size_that_does_not_fit_one_of_the_tables_stops_the_run_before_it_begins(
    pipeline: Pipeline,
) -> None:
    before = read_log(pipeline.warehouse, RAW_FLIGHTS).version
    options = {RAW: {"chunk": "weeks", "restart": True}, STAGING: {"chunk": "hours=6"}}
    run = pipeline.run(RAW, STAGING, first=FIRST, last=LAST, ops=options)
    assert "staging/flights: hours=6 is smaller than a partition" in run.message
    assert read_log(pipeline.warehouse, RAW_FLIGHTS).version == before


def test_a_run_that_is_paused_between_chunks_goes_on_with_what_is_left(
    pipeline: Pipeline,
) -> None:
    instance = pipeline.instance
    before = read_log(pipeline.warehouse, RAW_FLIGHTS).version
    assert before is not None

    def pause_after_the_first_chunk() -> None:
        while read_log(pipeline.warehouse, RAW_FLIGHTS).version == before:
            time.sleep(0.02)
        (run,) = instance.get_runs(limit=1)
        pause(instance, run.run_id, reason="disk", now=dt.datetime.now(tz=dt.UTC))

    thread = Thread(target=pause_after_the_first_chunk)
    thread.start()
    options = {"chunk": "days", "restart": True}
    accept = [{"check": "partition_is_stable", "reason": "moved", "partitions": []}]
    paused = pipeline.run(
        RAW,
        STAGING,
        first="2013-01-01",
        last="2013-01-08",
        accept=accept,
        ops={RAW: options, STAGING: options},
    )
    thread.join()
    done = read_log(pipeline.warehouse, RAW_FLIGHTS).version
    assert done is not None
    written = done - before
    assert 0 < written < 8
    assert f"raw/flights: paused, {8 - written} of 8 partitions left" in paused.message
    assert "paused it at" in paused.message
    assert "disk, until `backfill-assets backfill resume" in paused.message
    assert pipeline.find_days(RAW, "FAILED") == list_days(written + 1, 8)
    assert ask_sensor(instance)[0] == []
    assert "disk" in ask_sensor(instance)[1]

    assert unpause(instance, paused.id)
    assert find_pause(instance, paused.id) is None
    assert not unpause(instance, paused.id)
    ((request,), _) = ask_sensor(instance)
    assert [key.to_user_string() for key in request.asset_selection or ()] == [RAW, STAGING]
    assert request.tags[CHAIN_TAG] == request.tags[CONTINUES_TAG] == paused.id
    run_id = go_on(pipeline, request)
    # The chunks that it had computed again itself stand, although it restarts.
    assert read_log(pipeline.warehouse, RAW_FLIGHTS).version == before + 8
    statuses = ["already published"] * written + ["published"] * (8 - written)
    assert list_statuses(pipeline, run_id, RAW) == statuses
    assert {*list_statuses(pipeline, run_id, STAGING)} == {"published"}
    assert pipeline.find_days(RAW, "FAILED") == []
    assert ask_sensor(instance) == ([], "no run is paused")
    assert get_run(instance, paused.id).tags[PAUSED_TAG] == SETTLED


def test_outside_its_window_a_run_ends_before_it_writes(pipeline: Pipeline) -> None:
    now = dt.datetime.now(tz=dt.UTC)
    closed = f"{now + dt.timedelta(hours=2):%H:%M}-{now + dt.timedelta(hours=4):%H:%M}"
    options = {STAGING: {"chunk": "weeks", "window": closed}}
    before = read_log(pipeline.warehouse, STAGING_FLIGHTS).version
    run = pipeline.run(STAGING, FEATURES, first=FIRST, last=LAST, ops=options)
    assert f"paused, 12 of 12 partitions left: until its window opens, {closed} UTC" in run.message
    assert read_log(pipeline.warehouse, STAGING_FLIGHTS).version == before
    assert f"until its window opens, {closed} UTC" in ask_sensor(pipeline.instance)[1]
    # The paused run keeps its partitions, and a launch would compute them twice.
    graph = defs.get_repository_def().asset_graph
    at_work = find_partitions_at_work(pipeline.instance, graph)
    assert at_work[AssetKey.from_user_string(STAGING)] == {*list_days(1, 12)}
    stored = get_run(pipeline.instance, run.id)
    assert stored.tags[PAUSED_AT_TAG] == STAGING
    assert find_run_range(stored) == (FIRST, LAST)


@pytest.mark.parametrize("keeps_going", [False, True])
def test_a_chunk_that_fails_stops_its_table_or_only_itself(
    pipeline: Pipeline,
    keeps_going: bool,  # noqa: FBT001 (a case)
) -> None:
    log = read_log(pipeline.warehouse, RAW_FLIGHTS)
    for path in Path(log.uri).glob("landing_date=2013-01-05/*.parquet"):
        path.unlink()
    options = {"chunk": "days", "restart": True, "keep_going": keeps_going, "save_watermark": True}
    run = pipeline.run(STAGING, first="2013-01-01", last="2013-01-07", ops={STAGING: options})
    assert not run.success
    chunks = {chunk.first: chunk for chunk in read_certificate(pipeline, run.id, STAGING).chunks}
    failed = [key for key, chunk in chunks.items() if chunk.status == "failed"]
    # Its flights and those of the day before landed on the day of the lost file.
    assert failed[0] == "2013-01-04"
    assert read_watermarks(pipeline.warehouse)[STAGING].next_key == failed[0]
    assert all(chunks[key].error for key in failed)
    assert pipeline.find_days(STAGING, "FAILED") == (
        failed if keeps_going else list_days(int(failed[0][-2:]), 7)
    )
    if keeps_going:
        assert chunks["2013-01-07"].status == "published"
        assert "step_ended" in run.message
    else:
        assert [*chunks][-1] == failed[-1]
