"""What is left of a backfill is asked for again: all that can go now, and nothing else."""

import datetime as dt
from dataclasses import replace
from pathlib import Path

import pytest
from dagster import AssetKey

from backfill_engine.errors import BackfillError
from backfill_engine.lake.origins import Origin
from backfill_engine.lake.protections import Protection, add_protection
from backfill_engine.orchestration.backfills.resuming import (
    RESUMES_TAG,
    Resumer,
    Resumption,
    request_resumption,
)
from backfill_engine.orchestration.instance.dagster_internals import (
    BulkActionStatus,
)
from backfill_engine.orchestration.runs.run_tags import (
    COMMAND_TAG,
    LAUNCHED_BY_TAG,
    OVERRIDE_TAG,
    REASON_TAG,
)
from backfill_engine_tests.pipeline.alerting import Home
from backfill_engine_tests.pipeline.landing_zone import LandingZone, double_distance
from backfill_engine_tests.pipeline.requesting import (
    get_backfill,
    read_progress,
    read_target,
    request,
    set_status,
)
from backfill_engine_tests.pipeline.running import FEATURES, RAW, STAGING, Pipeline, list_days
from backfill_engine_tests.project import CATALOG, defs

DAYS = list_days(4, 7)
ASKED = Origin(by="anna", command="backfill-assets backfill retry abcdefgh")
ACCEPTED = [{"check": "partition_is_stable", "reason": "moved", "partitions": []}]
GRAPH = defs.get_repository_def().asset_graph


@pytest.fixture
def home(home: Home, tmp_path: Path) -> Home:
    LandingZone(tmp_path / "landing").land(list_days(1, 12))
    return home


def find(
    home: Home | Pipeline, backfill: str, *, take_all: bool = False, code: str = ""
) -> Resumption:
    """What would be asked for; where all code has another version, if one is given."""
    recipes = {
        key: replace(recipe, code_version=code or recipe.code_version)
        for key, recipe in CATALOG.recipes.items()
    }
    landing = Path(home.warehouse.root).parent / "landing"
    catalog = replace(CATALOG, recipes=recipes)
    resumer = Resumer(home.instance, GRAPH, home.warehouse, catalog, str(landing))
    return resumer.find(read_progress(home.instance, backfill), take_all=take_all)


def test_what_failed_or_was_never_requested_is_asked_for_again(home: Home) -> None:
    backfill = home.start_backfill(RAW, STAGING, days=DAYS, published=2)
    with pytest.raises(BackfillError, match=r"is at work \(1 of its runs have not ended\)"):
        find(home, backfill)
    home.fail("first", "No space left on device")
    set_status(home.instance, backfill, BulkActionStatus.COMPLETED_FAILED)
    found = find(home, backfill)
    assert found.describe_partitions() == {
        RAW: ["2013-01-06...2013-01-07"],
        STAGING: ["2013-01-04...2013-01-07"],
    }
    assert found.describe_left_alone() == []
    resumed, title = request_resumption(home.instance, GRAPH, found, ASKED)
    assert title == f"resumes {backfill}: mend them"
    record = get_backfill(home.instance, resumed)
    assert read_target(record) == {RAW: DAYS[2:], STAGING: DAYS}
    assert record.title == title
    assert record.tags[REASON_TAG] == "wrong numbers"
    assert record.tags[RESUMES_TAG] == backfill
    assert record.tags[LAUNCHED_BY_TAG] == "anna"
    assert record.tags[COMMAND_TAG] == ASKED.command


def test_a_title_is_as_long_as_dagster_takes_it_and_has_no_quotes(home: Home) -> None:
    long = 'the "wrong" numbers, by 10 % ' + "or more" * 10
    backfill = request(home.instance, RAW, days=DAYS, title=long)
    set_status(home.instance, backfill, BulkActionStatus.CANCELED)
    resumed, title = request_resumption(home.instance, GRAPH, find(home, backfill), ASKED)
    assert title.startswith(f"resumes {backfill}: the  wrong  numbers, by 10   or more")
    assert (len(title), title[-1]) == (100, "…")
    assert get_backfill(home.instance, resumed).title == title


def test_what_was_published_before_and_not_by_it_is_left_of_a_cancelled_replay(home: Home) -> None:
    home.complete("earlier", RAW, days=DAYS)
    backfill = request(home.instance, RAW, days=DAYS)
    home.complete("first", RAW, days=DAYS[:2], backfill=backfill)
    set_status(home.instance, backfill, BulkActionStatus.CANCELED)
    assert find(home, backfill).describe_partitions() == {RAW: ["2013-01-06...2013-01-07"]}


def test_nothing_is_left_of_what_others_have_published_since(home: Home) -> None:
    backfill = home.start_backfill(RAW, days=DAYS)
    home.fail("first")
    set_status(home.instance, backfill, BulkActionStatus.COMPLETED_FAILED)
    home.begin("other", RAW, days=DAYS)
    with pytest.raises(BackfillError, match=f"other runs are at work on {RAW} 2013-01-04...2013"):
        find(home, backfill)
    home.publish("other", RAW, *DAYS)
    home.succeed("other")
    found = find(home, backfill)
    assert (found.count, found.left_alone) == (0, {})


def test_what_waits_for_others_is_left_alone_and_said(home: Home) -> None:
    backfill = home.start_backfill(STAGING, days=DAYS[:1])
    home.fail("first", withheld=STAGING)
    set_status(home.instance, backfill, BulkActionStatus.COMPLETED_FAILED)
    found = find(home, backfill)
    assert found.count == 0
    assert found.describe_left_alone() == [f"{STAGING} 2013-01-04: {RAW} 2013-01-04 is missing"]


def test_what_is_protected_is_left_alone_unless_that_is_overridden(home: Home) -> None:
    now = dt.datetime.now(tz=dt.UTC)
    closed = Protection(table=RAW, first=DAYS[1], last=DAYS[1], reason="closed", by="anna")
    backfill = request(home.instance, RAW, days=DAYS)
    set_status(home.instance, backfill, BulkActionStatus.COMPLETED_FAILED)
    home.begin("first-run", RAW, days=DAYS)
    home.fail("first-run")
    add_protection(home.warehouse, closed, now=now)
    for resumed in (backfill, "first-run"):
        found = find(home, resumed)
        assert found.describe_partitions() == {RAW: [DAYS[0], f"{DAYS[2]}...{DAYS[3]}"]}
        (left,) = found.describe_left_alone()
        assert left.startswith(f"{RAW} {DAYS[1]}: protected: closed (by anna, ")
    record = get_backfill(home.instance, backfill)
    overriding = {**record.tags, OVERRIDE_TAG: "agreed"}
    home.instance.update_backfill(record._replace(tags=overriding))
    home.instance.add_run_tags("first-run", {OVERRIDE_TAG: "agreed"})
    for resumed in (backfill, "first-run"):
        found = find(home, resumed)
        assert found.describe_partitions() == {RAW: [f"{DAYS[0]}...{DAYS[3]}"]}
        assert found.left_alone == {}


def test_a_run_of_no_backfill_is_resumed_as_it_was_told(home: Home) -> None:
    home.begin("first-run", RAW, days=DAYS)
    home.instance.add_run_tags("first-run", {"backfill_assets/write_mode": "merge"})
    home.publish("first-run", RAW, DAYS[0])
    home.fail("first-run", "killed")
    found = find(home, "first-run")
    resumed, title = request_resumption(home.instance, GRAPH, found, ASKED)
    assert title == f"resumes first-ru: {RAW} 2013-01-04...2013-01-07"
    record = get_backfill(home.instance, resumed)
    assert read_target(record) == {RAW: DAYS[1:]}
    assert record.run_config == {"ops": {"raw__flights": {"config": {"write_mode": "merge"}}}}


def test_what_was_withheld_is_taken_once_its_input_or_code_is_another(
    pipeline: Pipeline,
) -> None:
    days = list_days(3, 6)
    pipeline.zone.add_lines(days[1], *["{"] * 5)
    pipeline.zone.truncate(days[3])
    backfill = request(pipeline.instance, RAW, STAGING, FEATURES, days=days)
    tags = {"dagster/backfill": backfill}
    assert not pipeline.run(RAW, STAGING, first=days[0], last=days[3], tags=tags).success
    set_status(pipeline.instance, backfill, BulkActionStatus.COMPLETED_FAILED)
    found = find(pipeline, backfill)
    assert set(found.left_alone[RAW]) == {days[1], days[3]}
    assert "neither its input nor its code" in found.describe_left_alone()[0]
    assert found.left_alone[STAGING][days[1]].startswith(f"{RAW} {days[1]} is failed or withheld")
    assert find(pipeline, backfill, take_all=True).partitions[AssetKey(RAW.split("/"))] == [
        days[1],
        days[3],
    ]
    pipeline.zone.land([days[1]])
    found = find(pipeline, backfill)
    assert found.partitions[AssetKey(RAW.split("/"))] == [days[1]]
    assert days[1] in found.partitions[AssetKey(STAGING.split("/"))]
    assert days[1] in found.partitions[AssetKey(FEATURES.split("/"))]
    assert set(found.left_alone[RAW]) == {days[3]}
    # By other code it may come out otherwise.
    found = find(pipeline, backfill, code="another")
    assert found.partitions[AssetKey(RAW.split("/"))] == [days[1], days[3]]


@pytest.mark.slow
@pytest.mark.by_hand
def test_rows_say_what_changed_for_a_withheld_day_and_not_the_days_it_may_read(
    pipeline: Pipeline,
) -> None:
    day, in_window, after_window = "2013-01-07", "2013-01-08", "2013-01-11"
    pipeline.zone.change(day, double_distance)
    assert pipeline.run(RAW, first=day, last=day, accept=ACCEPTED).success
    backfill = request(pipeline.instance, STAGING, days=[day])
    run = pipeline.run(STAGING, first=day, last=day, tags={"dagster/backfill": backfill})
    assert "withheld 1 of 1 partitions" in run.message
    set_status(pipeline.instance, backfill, BulkActionStatus.COMPLETED_FAILED)

    def add(landing_day: str, flight_day: str) -> None:
        """Another flight of a day lands, and raw has it."""
        pipeline.zone.add_flights(landing_day, flight_day)
        assert pipeline.run(RAW, first=landing_day, last=landing_day).success

    add(in_window, in_window)
    found = find(pipeline, backfill)
    assert (found.count, found.left_alone[STAGING].keys()) == (0, {day}), "no row of it moved"
    add(after_window, day)
    assert find(pipeline, backfill).partitions == {AssetKey(STAGING.split("/")): [day]}
