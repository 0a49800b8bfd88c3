"""What is protected stays as it is, however a run is asked for. No Spark: nothing is computed.

On a warehouse that older code made, in a Dagster home that was told of it.
"""

import datetime as dt
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from dagster import DagsterRun
from dagster._core.definitions.schedule_definition import ScheduleExecutionData

from backfill_engine.lake.protections import Protection, Protections, add_protection
from backfill_engine.orchestration.backfills.outcomes import find_outcome
from backfill_engine.orchestration.backfills.progress_reader import State
from backfill_engine.orchestration.instance.partition_definitions import find_asset_key
from backfill_engine.orchestration.runs.pausing import Continuation, find_continuation
from backfill_engine.orchestration.runs.protecting import list_in_force
from backfill_engine.orchestration.runs.run_tags import OVERRIDE_TAG, RANGE_END_TAG, RANGE_START_TAG
from backfill_engine.tables.protected import Protected
from backfill_engine_tests.pipeline.alerting import Home
from backfill_engine_tests.pipeline.requesting import read_progress
from backfill_engine_tests.pipeline.running import (
    FEATURES,
    RAW,
    STAGING,
    Pipeline,
    list_days,
    list_files,
)
from backfill_engine_tests.pipeline.watching import describe, evaluate_rolling, watch
from backfill_engine_tests.project import (
    CATALOG,
    RAW_FLIGHTS,
    STAGING_FLIGHTS,
    defs,
)
from backfill_engine_tests.receivers import Receiver

NOW = dt.datetime.now(tz=dt.UTC)
FIRST, CLOSED, LAST = "2013-01-01", "2013-01-02", "2013-01-04"


def protect(pipeline: Pipeline, key: str, first: str | None, last: str | None) -> None:
    decision = Protection(table=key, first=first, last=last, reason="books closed", by="anna")
    add_protection(pipeline.warehouse, decision, now=NOW)


def test_a_run_of_a_range_that_is_partly_protected_is_refused_as_a_whole(
    pipeline: Pipeline,
) -> None:
    protect(pipeline, STAGING, CLOSED, CLOSED)
    before = list_files(Path(pipeline.warehouse.root))
    run = pipeline.run(RAW, STAGING, first=FIRST, last=LAST)
    assert run.message == (
        f"protected: {STAGING} {CLOSED}: books closed (by anna, {NOW:%Y-%m-%d %H:%M} UTC): leave "
        "them out, lift it with `backfill-assets protect --lift` or in the declaration, or say why "
        "they are to be written all the same, in the configuration as `override_protection`, or by "
        f"the tag {OVERRIDE_TAG}; nothing was written"
    )
    assert list_files(Path(pipeline.warehouse.root)) == before


def test_what_is_protected_still_shows_as_published_after_a_refusal(pipeline: Pipeline) -> None:
    protect(pipeline, RAW, CLOSED, CLOSED)
    assert CLOSED in pipeline.find_days(RAW, "MATERIALIZED")
    assert not pipeline.run(RAW, first=FIRST, last=LAST).success
    assert pipeline.find_days(RAW, "MATERIALIZED") == [CLOSED, *list_days(5, 12)]
    assert pipeline.find_days(RAW, "FAILED") == [FIRST, "2013-01-03", LAST]
    newest, before = pipeline.read_materializations(RAW, CLOSED)
    assert newest == before


def test_what_a_refused_run_did_not_publish_does_not_count_as_its_work(pipeline: Pipeline) -> None:
    protect(pipeline, RAW, CLOSED, CLOSED)
    run = pipeline.run(RAW, first=FIRST, last=CLOSED)
    progress = read_progress(pipeline.instance, run.id)
    assert progress.states == {RAW: dict.fromkeys([FIRST, CLOSED], State.HELD_BACK)}
    outcome = find_outcome(CATALOG, pipeline.instance, pipeline.warehouse, progress)
    assert outcome.state == "held back"
    for entry in outcome.held_back:
        assert (entry["table"], entry["status"]) == (RAW, "failed")
        assert f"protected: {RAW} {CLOSED}: books closed" in entry["reasons"][0]
    assert sum(entry["partitions"] for entry in outcome.held_back) == 2
    # Another run has published it since, by whatever right.
    other = Home(pipeline.instance, pipeline.warehouse, Receiver())
    other.begin("other", RAW, days=[CLOSED])
    # SQLite keeps in whole seconds when a run was made; when it was touched it keeps exactly.
    pipeline.instance.add_run_tags("other", {"by": "another"})
    other.publish("other", RAW, CLOSED)
    states = read_progress(pipeline.instance, run.id).states[RAW]
    assert states == {FIRST: State.HELD_BACK, CLOSED: State.PUBLISHED}


def test_a_reason_lets_a_run_go_on_and_a_blank_one_does_not(pipeline: Pipeline) -> None:
    protect(pipeline, RAW, None, None)
    pipeline.zone.root.rename(pipeline.root / "gone")
    # With the reason, the run gets as far as the landing zone, which isn't there.
    by_tag = pipeline.run(RAW, first=CLOSED, last=CLOSED, tags={OVERRIDE_TAG: "restated"})
    assert "landing" in by_tag.message
    assert "protected" not in by_tag.message
    by_config = {RAW: {"override_protection": "restated"}}
    assert pipeline.run(RAW, first=CLOSED, last=CLOSED, ops=by_config).message == by_tag.message
    blank = pipeline.run(RAW, first=CLOSED, last=CLOSED, tags={OVERRIDE_TAG: " "})
    assert blank.message == f"{OVERRIDE_TAG} needs a reason: say why, or leave it out"
    # One asset's reason is none for another.
    other = pipeline.run(
        RAW, STAGING, first=CLOSED, last=CLOSED, ops={STAGING: {"override_protection": "restated"}}
    )
    assert f"protected: {RAW} {CLOSED}" in other.message


def test_a_rollback_is_refused_too(pipeline: Pipeline) -> None:
    protect(pipeline, RAW, CLOSED, None)
    before = list_files(Path(pipeline.warehouse.root))
    refused = pipeline.roll_back(RAW, FIRST, LAST, to_version=1)
    assert f"protected: {RAW} {CLOSED}...{LAST}: books closed" in refused.message
    assert "with --override-protection, or by the tag" in refused.message
    assert list_files(Path(pipeline.warehouse.root)) == before


def test_the_late_data_sensor_leaves_out_what_is_protected_and_says_so(
    pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    sensor = watch(pipeline, monkeypatch)
    (landed,) = pipeline.zone.path(LAST).parent.iterdir()
    for day in list_days(13, 14):
        pipeline.zone.path(day).parent.mkdir()
        shutil.copy(landed, pipeline.zone.path(day))
    protect(pipeline, RAW, "2013-01-13", None)
    protect(pipeline, STAGING, None, None)  # whose days 11 and 12 are due
    protect(pipeline, FEATURES, None, None)
    assert sensor.look() == []
    assert (
        f"protected, left out: {RAW} 2013-01-13...2013-01-14: books closed (by anna, "
    ) in sensor.skipped
    lift = Protection(table=RAW, last="2013-01-13", protected=False, reason="open", by="anna")
    add_protection(pipeline.warehouse, lift, now=NOW)
    assert [describe(request) for request in sensor.look()] == [
        (RAW, "2013-01-13", "2013-01-13", "1 new")
    ]


def test_nothing_is_due_of_what_is_protected(
    pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    watch(pipeline, monkeypatch)
    for table in CATALOG.tables:
        protect(pipeline, table.key, None, None)
    found = {
        evaluation.check_name: evaluation
        for evaluation in pipeline.read_evaluations(pipeline.run_watch())
    }["nothing_is_due"]
    assert found.passed, found.description
    assert f"protected, left out: {STAGING}" in (found.description or "")


def test_the_nightly_run_of_the_last_days_leaves_out_what_is_protected(
    pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    watch(pipeline, monkeypatch)

    def evaluate() -> ScheduleExecutionData:
        at = dt.datetime(2013, 1, 5, 4, tzinfo=dt.UTC)
        return evaluate_rolling("flights", pipeline.instance, at)

    first, second, third = list_days(8, 10)  # Up to where all tables are published.
    protect(pipeline, RAW, third, third)
    (request,) = evaluate().run_requests or []
    assert (request.tags[RANGE_START_TAG], request.tags[RANGE_END_TAG]) == (first, second)
    protect(pipeline, STAGING, first, None)
    skipped = evaluate().skip_message or ""
    assert f"protected, left out: {STAGING} {first}...{third}: books closed" in skipped


def test_a_run_that_goes_on_leaves_out_what_is_protected_unless_it_overrides_it(
    pipeline: Pipeline,
) -> None:
    protect(pipeline, STAGING, CLOSED, CLOSED)
    found = find_what_goes_on(pipeline)
    assert found.ranges == ((FIRST, FIRST),)
    (left_out,) = found.protected
    assert left_out.startswith(f"protected, left out: {STAGING} {CLOSED}: books closed")
    assert find_what_goes_on(pipeline, **{OVERRIDE_TAG: "restated"}).ranges == ((FIRST, CLOSED),)
    protect(pipeline, STAGING, None, None)
    assert "books closed" in find_what_goes_on(pipeline).describe_nothing()


def find_what_goes_on(pipeline: Pipeline, **tags: str) -> Continuation:
    """After a run that withheld a day of raw other than the first two."""
    assets = frozenset({find_asset_key(RAW_FLIGHTS), find_asset_key(STAGING_FLIGHTS)})
    return find_continuation(
        CATALOG,
        pipeline.instance,
        defs.get_repository_def().asset_graph,
        find_asset_key(RAW_FLIGHTS),
        DagsterRun(
            "flights",
            tags={**tags, RANGE_START_TAG: FIRST, RANGE_END_TAG: CLOSED},
            asset_selection=assets,
        ),
        warehouse=pipeline.warehouse,
    )


def test_standing_protections_are_listed_by_who_set_them() -> None:
    table = replace(RAW_FLIGHTS, protected=(Protected(first=FIRST, last=FIRST, reason="audited"),))
    decided = [
        Protection(
            table=RAW, first="2013-01-03", last="2013-01-05", reason="new", by="ben", at=NOW
        ),
        Protection(table=RAW, first=LAST, last=LAST, protected=False, reason="x", by="ben", at=NOW),
        Protection(table=RAW, last="2013-01-04", reason="old", by="anna", at=NOW),
    ]
    found = list_in_force(table, Protections(decided))
    assert [
        (standing.reason, standing.by, standing.ranges, standing.and_later) for standing in found
    ] == [
        ("audited", "", [(FIRST, FIRST)], False),
        ("new", "ben", [("2013-01-03", "2013-01-05")], False),
        ("old", "anna", [(CLOSED, CLOSED)], False),
    ]
    (all_,) = list_in_force(RAW_FLIGHTS, Protections([Protection(table=RAW, reason="frozen")]))
    assert all_.and_later
    assert all_.ranges == [("2013-01-01", "2014-01-01")]
