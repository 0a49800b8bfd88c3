"""A home that lost any of its events shows after `recover` what the real one shows."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from dagster import AssetCheckKey, AssetKey, DagsterInstance, SkipReason, build_sensor_context
from pyspark.sql import SparkSession

from backfill_engine.orchestration.instance.dagster_internals import CheckStatus
from backfill_engine.orchestration.recovery.recovery import RecoveryReport, recover_tables
from backfill_engine.settings import Settings
from backfill_engine_tests.pipeline.aging import clean_log
from backfill_engine_tests.pipeline.landing_zone import double_distance
from backfill_engine_tests.pipeline.running import (
    FEATURES,
    RAW,
    STAGING,
    Pipeline,
    list_days,
    open_pipeline,
)
from backfill_engine_tests.project import (
    CARRIER_DELAYS,
    CATALOG,
    RAW_FLIGHTS,
    STAGING_FLIGHTS,
    recover_dead_runs,
)

TABLES = {table.key: table for table in (RAW_FLIGHTS, STAGING_FLIGHTS, CARRIER_DELAYS)}
DAYS = list_days(1, 10)
BROKEN, DRIFTED, ACCEPTED = "2013-01-05", "2013-01-08", "2013-01-09"
ACCEPT = [{"check": "partition_is_stable", "reason": "longer routes", "partitions": [ACCEPTED]}]
OF_RECOVERY = {"recovered_at"}
OF_PLACE = {"dagster/uri", "certificate"}
EVENT_POINTER = "dagster/input_event_pointer"
"""The pointer counts the events of one home."""


@dataclass(frozen=True)
class View:
    """A home shows statuses, figures of what is published, and what failed or is unsynced."""

    statuses: dict[tuple[str, str], str]
    figures: dict[tuple[str, str], dict[str, Any]]
    failed_checks: set[tuple[str, str, str]]
    unsynced: dict[str, list[str]]


@dataclass(frozen=True)
class Story:
    """A range with bad days, run in a home of which a copy was made before the end."""

    root: Path
    real: View


@pytest.fixture(scope="module")
def story(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Story:
    root = tmp_path_factory.mktemp("homes")
    with open_pipeline(root) as pipeline:
        pipeline.zone.land(DAYS)
        # In one run: what is entered of it for one table says nothing of the other.
        assert pipeline.run(RAW, STAGING, first=DAYS[0], last=DAYS[-1]).success
    shutil.copytree(root / "dagster_home", root / "week_old")
    with open_pipeline(root) as pipeline:
        pipeline.zone.truncate(BROKEN)
        for day in (DRIFTED, ACCEPTED):
            pipeline.zone.change(day, double_distance)
        pipeline.run(RAW, first="2013-01-04", last=DAYS[-1])
        pipeline.run(STAGING, first="2013-01-04", last=DAYS[-1], accept=ACCEPT)
        pipeline.run(FEATURES, first=DAYS[0], last=DAYS[-1])
        assert pipeline.find_days(RAW, "FAILED") == [BROKEN]
        assert pipeline.find_days(STAGING, "FAILED") == [BROKEN, DRIFTED]
        assert pipeline.find_days(FEATURES, "FAILED") == list_days(5, 10)
        real = read_view(pipeline)
    return Story(root, real)


@contextmanager
def open_home(story: Story, tmp_path: Path, home: str) -> Iterator[Pipeline]:
    """The same tables, in another home: a copy of one, an empty one, or one that was damaged."""
    place = tmp_path / "home"
    if home != "empty":
        shutil.copytree(story.root / (home if home == "week_old" else "dagster_home"), place)
    place.mkdir(exist_ok=True)
    index = Path("history", "runs", "index.db")
    if home.startswith("index"):
        for file in (place / index).parent.glob("index.db*"):
            file.unlink()
    if home == "index is older":
        shutil.copy(story.root / "week_old" / index, place / index)
    with DagsterInstance.local_temp(
        str(place), overrides={"telemetry": {"enabled": False}}
    ) as instance:
        if home.endswith("wiped"):
            wiped = TABLES if home == "all wiped" else [home.split()[0]]
            instance.wipe_assets([AssetKey.from_user_string(key) for key in wiped])
        runs = instance.get_runs() if home.endswith("deleted") else []
        for run in runs if home == "runs deleted" else runs[-1:]:
            instance.delete_run(run.run_id)
        yield Pipeline(story.root, instance)


def copy_tables(story: Story, tmp_path: Path) -> Path:
    """Without any home; returns where."""
    ignored = shutil.ignore_patterns("dagster_home", "week_old")
    return Path(shutil.copytree(story.root, tmp_path / "copy", ignore=ignored))


def read_view(pipeline: Pipeline) -> View:
    statuses: dict[tuple[str, str], str] = {}
    figures: dict[tuple[str, str], dict[str, Any]] = {}
    failed: set[tuple[str, str, str]] = set()
    for key in TABLES:
        for status in ("MATERIALIZED", "FAILED"):
            statuses |= {(key, day): status for day in pipeline.find_days(key, status)}
        for day in DAYS:
            for event in pipeline.read_materializations(key, day)[:1]:
                figures[key, day] = {
                    name: round(value.value, 6) if isinstance(value.value, float) else value.value
                    for name, value in event.metadata.items()
                    if name not in OF_RECOVERY
                } | {
                    tag: value
                    for tag, value in (event.tags or {}).items()
                    if not tag.startswith(EVENT_POINTER)
                }
        for check in ("partition_is_complete", "partition_is_valid", "partition_is_stable"):
            records = pipeline.instance.event_log_storage.get_asset_check_execution_history(
                AssetCheckKey(AssetKey.from_user_string(key), check),
                limit=1000,
                status={CheckStatus.FAILED},
            )
            failed |= {(key, check, record.partition) for record in records if record.partition}
    unsynced = {key: pipeline.find_unsynced(key) for key in TABLES}
    return View(statuses, figures, failed, unsynced)


def drop_uri(view: View) -> dict[tuple[str, str], dict[str, Any]]:
    return {
        partition: {name: value for name, value in figures.items() if name not in OF_PLACE}
        for partition, figures in view.figures.items()
    }


def count_rows(view: View) -> dict[tuple[str, str], int]:
    return {key: figures["dagster/partition_row_count"] for key, figures in view.figures.items()}


def recover(pipeline: Pipeline, *, dry_run: bool = False) -> RecoveryReport:
    catalog = replace(CATALOG, given=Settings(warehouse=pipeline.warehouse.root))
    return recover_tables(catalog, pipeline.instance, None, dry_run=dry_run)


@pytest.mark.slow
@pytest.mark.by_hand
@pytest.mark.parametrize(
    "home",
    [
        *("empty", "week_old", "index lost", "index is older"),
        *("all wiped", f"{RAW} wiped", "runs deleted", "first run deleted"),
    ],
)
def test_another_home_shows_after_recover_what_the_real_one_shows(
    story: Story, tmp_path: Path, home: str
) -> None:
    with open_home(story, tmp_path, home) as pipeline:
        expected = recover(pipeline, dry_run=True)
        assert expected.published
        assert f"{RAW} {BROKEN}" in expected.withheld
        assert read_view(pipeline) != story.real, "a dry run records nothing"

        done = recover(pipeline)
        assert (done.published, done.withheld) == (expected.published, expected.withheld)
        view = read_view(pipeline)
        assert view.statuses == story.real.statuses
        assert view.figures == story.real.figures
        assert view.failed_checks == story.real.failed_checks

        again = recover(pipeline)
        assert again.messages == ()
        assert read_view(pipeline) == view, "recovered once"


@pytest.mark.parametrize("index", ["kept", "lost"])
def test_a_new_home_adopts_what_the_log_no_longer_tells(
    story: Story, tmp_path: Path, index: str
) -> None:
    """Past the retention of the log: from the index of publishes, or else from certificates."""
    root = copy_tables(story, tmp_path)
    with open_pipeline(root) as pipeline:
        for table in TABLES.values():
            clean_log(pipeline.warehouse, table, keep=1)
        if index == "lost":
            shutil.rmtree(root / "warehouse" / "publishes")
            messages = recover(pipeline, dry_run=True).messages
            assert any(
                "what was published before is to be read from cert" in message
                for message in messages
            )
        recover(pipeline)
        view = read_view(pipeline)
        assert view.statuses == story.real.statuses
        assert count_rows(view) == count_rows(story.real)
        if index == "kept":
            assert drop_uri(view) == drop_uri(story.real), "but for where the copy is"
            assert view.failed_checks == story.real.failed_checks
        assert recover(pipeline).messages == ()


def test_the_real_home_has_nothing_to_recover(story: Story, tmp_path: Path) -> None:
    with open_home(story, tmp_path, "dagster_home") as pipeline:
        assert recover(pipeline).messages == ()
        assert read_view(pipeline) == story.real


def test_status_in_an_empty_home_says_what_is_published_and_what_was_withheld(
    story: Story, tmp_path: Path
) -> None:
    with open_home(story, tmp_path, "empty") as pipeline:
        found = pipeline.read_statuses(*TABLES.values(), first=DAYS[0], last=DAYS[-1])
        statuses = {
            (status.table, status.partition): status.status.upper()
            for table in found
            for status in table.partitions
        }
        assert statuses == story.real.statuses
        assert all(table.recovery.is_new for table in found)
        assert read_view(pipeline).statuses == {}, "status records nothing"


def test_a_step_in_an_empty_home_recovers_what_it_reads_before_it_goes(
    story: Story, tmp_path: Path
) -> None:
    root = copy_tables(story, tmp_path)
    with open_pipeline(root) as pipeline:
        run = pipeline.run(STAGING, first="2013-01-04", last="2013-01-06")
        assert (
            f"{BROKEN}: partition_is_complete: upstream_is_published (raw/flights {BROKEN} is "
            in (run.message)
        )
        assert pipeline.find_days(STAGING, "FAILED") == [BROKEN, DRIFTED]
        assert pipeline.find_days(RAW, "FAILED") == [BROKEN]
        assert pipeline.find_days(RAW, "MATERIALIZED") == [day for day in DAYS if day != BROKEN]


def test_the_sensor_recovers_an_empty_home_once(
    story: Story, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BACKFILL_WAREHOUSE", str(story.root / "warehouse"))
    with open_home(story, tmp_path, "empty") as pipeline:
        context = build_sensor_context(pipeline.instance)
        first = recover_dead_runs(context)
        assert isinstance(first, SkipReason)
        assert f"{RAW}: recorded {BROKEN} as withheld by run" in str(first.skip_message)
        view = read_view(pipeline)
        assert (view.statuses, view.figures) == (story.real.statuses, story.real.figures)
        again = recover_dead_runs(context)
        assert isinstance(again, SkipReason)
        assert again.skip_message == "no run is dead, and no table is unknown here"


def test_a_certificate_that_cannot_be_read_is_named_and_the_others_count(
    story: Story, tmp_path: Path
) -> None:
    root = copy_tables(story, tmp_path)
    torn = max((root / "warehouse/certificates").glob("*/*/staging.flights.json"))
    torn.write_bytes(torn.read_bytes()[:100])
    with open_pipeline(root) as pipeline:
        report = recover(pipeline)
        (named,) = [message for message in report.messages if str(torn) in message]
        assert "is cut off or was edited" in named
        assert pipeline.find_days(RAW, "FAILED") == [BROKEN]
