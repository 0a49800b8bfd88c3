"""The watching assets report lateness, lag, and what is due, changed or withheld."""

import datetime as dt
import json
import re
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from dagster import (
    AssetCheckEvaluation,
    AssetKey,
    DagsterRun,
    DagsterRunStatus,
)
from dagster._core.definitions.schedule_definition import ScheduleExecutionData
from pyspark.sql import SparkSession

from backfill_engine.orchestration.instance.own_runs import OWN_STEP
from backfill_engine.orchestration.runs.run_tags import (
    IN_BACKGROUND,
    RANGE_END_TAG,
    RANGE_START_TAG,
)
from backfill_engine_tests.pipeline.landing_zone import build_flights
from backfill_engine_tests.pipeline.running import (
    FEATURES,
    RAW,
    STAGING,
    Pipeline,
    list_days,
    open_pipeline,
)
from backfill_engine_tests.pipeline.watching import evaluate_rolling, watch


class Watched(NamedTuple):
    """What a run of the job found, asset by asset."""

    figures: dict[str, dict[str, Any]]
    checks: dict[str, AssetCheckEvaluation]
    pages: dict[str, str]


def run_watch(pipeline: Pipeline) -> Watched:
    run = pipeline.run_watch().confirm()
    figures: dict[str, dict[str, Any]] = {}
    pages: dict[str, str] = {}
    for name in ("late_arrivals", "backfill_health"):
        event = pipeline.instance.get_latest_materialization_event(AssetKey(["ops", name]))
        assert event is not None
        assert event.asset_materialization is not None
        metadata = event.asset_materialization.metadata
        figures[name] = {key: value.value for key, value in metadata.items()}
        pages[name] = Path(figures[name].pop("page")).read_text(encoding="utf-8")
    evaluations = pipeline.read_evaluations(run)
    return Watched(figures, {check.check_name: check for check in evaluations}, pages)


def test_an_installation_without_tables_is_well(
    empty_pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    watch(empty_pipeline, monkeypatch)
    found = run_watch(empty_pipeline)
    assert [name for name, check in found.checks.items() if not check.passed] == []
    assert found.checks["staging_flights_late_share"].description == "nothing is published yet"


@pytest.fixture(scope="module")
def root(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Eight days; then one with flights five days late, and a bad one that is withheld."""
    root = tmp_path_factory.mktemp("watched")
    with open_pipeline(root) as pipeline, pytest.MonkeyPatch.context() as monkeypatch:
        sensor = watch(pipeline, monkeypatch)
        pipeline.zone.land(list_days(1, 8))
        sensor.settle()
        late = [{**build_flights("2013-01-04")[0], "flight": 9000 + at} for at in range(20)]
        pipeline.zone.add_lines("2013-01-09", *map(json.dumps, late))
        pipeline.zone.add_lines("2013-01-10", *["{"] * 5)
        sensor.settle()
        where = {"tables": [RAW], "first": "2013-01-01", "last": "2013-01-02"}
        assert pipeline.run_job("reconcile", "compare_with_source", **where).success
    return root


@pytest.mark.slow
@pytest.mark.by_hand
def test_they_tell_what_came_late_what_lags_and_what_is_withheld(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_pipeline(root) as pipeline:
        watch(pipeline, monkeypatch)
        monkeypatch.setenv("BACKFILL_MAX_LAG_DAYS", "2")
        pipeline.zone.land(["2014-01-02"])
        found = run_watch(pipeline)
    late, health = found.figures["late_arrivals"], found.figures["backfill_health"]
    # Two flights a day land on the next; and the twenty that are five days late.
    rows = late["staging/flights rows"]
    assert late["staging/flights late rows"] == 8 * 2 + 20
    assert late["staging/flights days late, most"] == 5
    assert late["staging/flights share after D+2"] == pytest.approx(20 / rows)
    check = found.checks["staging_flights_late_share"]
    assert not check.passed
    late_rows = r"1\.8\d% of [\d,]+ rows landed more than two days late"
    assert re.match(late_rows, check.description or "")

    assert health["raw/flights failed now"] == 1
    assert health["partitions withheld"] == 1
    # Of staging the day that the late ones are of, and days computed again as their window closed.
    assert health["partitions changed"] >= 2
    assert health["rows in changed partitions"] > 0
    assert health["different at the last reconciliation"] == 0
    assert health["raw seconds, p50"] > 0
    assert health["raw seconds, p95"] >= health["raw seconds, p50"]

    lag = found.checks["raw_flights_lag"]
    assert not lag.passed
    assert lag.metadata["next"].value == "2013-01-10"
    # The range goes up to BACKFILL_END, 2014-01-02.
    assert lag.metadata["behind"].value == 357
    assert (found.checks["raw_orders_lag"].description or "").startswith("no watermark")

    due = found.checks["nothing_is_due"]
    assert not due.passed
    for words in (
        "raw/flights 2013-01-10...2013-01-10: 1 new",
        "beyond BACKFILL_END 2014-01-02: 2014-01-02: set BACKFILL_END",
    ):
        assert words in (due.description or "")
    to_do = str(due.metadata["what to do"].value)
    assert "--partition-range 2013-01-10...2013-01-10" in to_do


def test_their_pages_need_nothing_beside_them(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with open_pipeline(root) as pipeline:
        watch(pipeline, monkeypatch)
        pages = run_watch(pipeline).pages
    assert "later than two days" in pages["late_arrivals"]
    for page in pages.values():
        assert page.count("<svg") == 1
        assert not re.search(r"<(script|link|img|iframe)|url\((?!#)|@import", page)
    assert "2013-01-10" in pages["backfill_health"]


def evaluate(pipeline: Pipeline, name: str) -> ScheduleExecutionData:
    return evaluate_rolling(name, pipeline.instance, dt.datetime(2013, 1, 11, 4, tzinfo=dt.UTC))


def test_the_last_days_are_run_again_unless_runs_are_at_work_on_them(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_pipeline(root) as pipeline:
        watch(pipeline, monkeypatch)
        (request,) = evaluate(pipeline, "flights").run_requests or []
        assert request.run_key == "2013-01-11 2013-01-07"
        tags = request.tags
        assert (tags[RANGE_START_TAG], tags[RANGE_END_TAG]) == ("2013-01-07", "2013-01-09")
        assert IN_BACKGROUND.items() <= tags.items()
        # The second version goes with the table that serves it.
        asked = [key.to_user_string() for key in request.asset_selection or []]
        assert asked == [RAW, STAGING, FEATURES]
        monkeypatch.setenv("BACKFILL_ROLLING_DAYS", "1")
        (request,) = evaluate(pipeline, "flights").run_requests or []
        assert request.tags[RANGE_START_TAG] == "2013-01-09"
        busy = DagsterRun(
            "flights",
            tags={RANGE_START_TAG: "2013-01-09", RANGE_END_TAG: "2013-01-09", **OWN_STEP},
            asset_selection=frozenset({AssetKey(STAGING.split("/"))}),
            status=DagsterRunStatus.STARTED,
        )
        pipeline.instance.add_run(busy)
        skipped = evaluate(pipeline, "flights").skip_message or ""
        assert "runs are at work on 1 of these partitions of staging/flights" in skipped
        skipped = evaluate(pipeline, "weather_hours").skip_message or ""
        assert "no partition is published" in skipped
