"""What the sensor requests of runs that ended paused, and of which none. No Spark.

The runs are made as they are left; how one comes to be paused is in `test_chunked_runs`.
"""

import datetime as dt
from collections.abc import Sequence

import pytest
from dagster import DagsterRun, RunRequest

from backfill_engine.lake.protections import Protection, add_protection
from backfill_engine.orchestration.instance.dagster_internals import BulkActionStatus
from backfill_engine.orchestration.instance.own_runs import OWN_STEP
from backfill_engine.orchestration.runs.claims import PROCESS_TAG
from backfill_engine.orchestration.runs.run_tags import (
    CONTINUES_TAG,
    DROPPED,
    GOES_ON_WITH_TAG,
    IN_BACKGROUND,
    PAUSED,
    PAUSED_AT_TAG,
    PAUSED_TAG,
    RANGE_END_TAG,
    RANGE_START_TAG,
    REFUSED_TAG,
    SETTLED,
    WENT_ON,
    WITHHELD_TAG,
)
from backfill_engine_tests.pipeline.alerting import Home
from backfill_engine_tests.pipeline.requesting import get_run, request, set_status
from backfill_engine_tests.pipeline.running import FEATURES, RAW, STAGING, list_days
from backfill_engine_tests.pipeline.watching import evaluate_sensor
from backfill_engine_tests.project import go_on_after_pause

DAYS = list_days(4, 7)
NOW = dt.datetime.now(tz=dt.UTC)
GONE = "raw/gone"


@pytest.fixture
def home(home: Home, monkeypatch: pytest.MonkeyPatch) -> Home:
    monkeypatch.setenv("BACKFILL_WAREHOUSE", home.warehouse.root)
    return home


def pause_run(home: Home, run_id: str, *keys: str, at: Sequence[str] = (), **tags: str) -> None:
    """A run over the days that has ended between two chunks of some tables."""
    home.begin(run_id, *keys, days=DAYS, **tags)
    paused_at = ",".join(at or keys[:1])
    home.instance.add_run_tags(run_id, {PAUSED_TAG: PAUSED, PAUSED_AT_TAG: paused_at})
    home.fail(run_id)


def read_tag(home: Home, run_id: str) -> str:
    return get_run(home.instance, run_id).tags[PAUSED_TAG]


def ask_sensor(home: Home) -> tuple[Sequence[RunRequest], str]:
    """Returns what the sensor requests, or why it requests nothing."""
    tick = evaluate_sensor(go_on_after_pause, home.instance)
    return tick.run_requests or [], tick.skip_message or ""


def list_ranges(requests: Sequence[RunRequest]) -> list[tuple[str, str]]:
    return [
        (requested.tags[RANGE_START_TAG], requested.tags[RANGE_END_TAG]) for requested in requests
    ]


def list_assets(request: RunRequest) -> list[str]:
    return [key.to_user_string() for key in request.asset_selection or ()]


def test_the_rest_says_who_asked_and_how_and_not_what_became_of_the_run(home: Home) -> None:
    pause_run(home, "first-run", RAW, STAGING)
    carried = {
        **IN_BACKGROUND,
        "backfill_assets/at_most_1": "a launch",
        "backfill_assets/launched_by": "anna",
        "backfill_assets/reason": "wrong numbers",
    }
    own = {
        WITHHELD_TAG: STAGING,
        REFUSED_TAG: "true",
        ".dagster/backfill_assets/pinned": "{}",
        PROCESS_TAG: "1",
    }
    home.instance.add_run_tags("first-run", {**carried, **own})
    ((found,), _) = ask_sensor(home)
    assert list_assets(found) == [RAW, STAGING]
    assert found.tags == {
        **OWN_STEP,
        **carried,
        RANGE_START_TAG: DAYS[0],
        RANGE_END_TAG: DAYS[-1],
        CONTINUES_TAG: "first-run",
        GOES_ON_WITH_TAG: "first-run",
        "backfill_assets/backfill": "first-run",
        # Dagster sets the tags of a sensor.
        **{tag: value for tag, value in found.tags.items() if tag.startswith("dagster/sensor")},
    }


def test_nothing_goes_on_from_a_backfill_that_was_cancelled_elsewhere(home: Home) -> None:
    backfill = request(home.instance, RAW, days=DAYS)
    pause_run(home, "first-run", RAW, backfill=backfill)
    set_status(home.instance, backfill, BulkActionStatus.CANCELED)
    requests, why = ask_sensor(home)
    assert (list(requests), why) == (
        [],
        f"backfill {backfill}, which run first-run is of, is cancelled",
    )
    assert read_tag(home, "first-run") == DROPPED
    assert ask_sensor(home)[1] == "no run is paused"


def test_a_table_that_a_deploy_removed_keeps_no_other_run(home: Home) -> None:
    pause_run(home, "of-gone", GONE)
    pause_run(home, "of-both", GONE, STAGING, FEATURES, at=(GONE, STAGING))
    (found,), _ = ask_sensor(home)
    assert found.tags[CONTINUES_TAG] == "of-both"
    assert list_assets(found) == [STAGING, FEATURES]
    home.instance.add_run_tags("of-both", {PAUSED_TAG: WENT_ON})
    assert ask_sensor(home)[1] == (
        f"run of-gone can't go on: there is no table {GONE} any more; `backfill-assets backfill "
        "cancel of-gone` ends that"
    )


def pause_with_windows(home: Home, *windows: str) -> None:
    """A run is paused at two tables, each of which has its own window."""
    keys = (RAW, "raw/weather")
    home.begin("template", *keys, days=DAYS)
    template = get_run(home.instance, "template")
    ops = {
        key.replace("/", "__"): {"config": {"window": window}}
        for key, window in zip(keys, windows, strict=True)
    }
    home.instance.add_run(
        DagsterRun(
            "__ASSET_JOB",
            run_id="first-run",
            asset_selection=template.asset_selection,
            tags={**template.tags, PAUSED_TAG: PAUSED, PAUSED_AT_TAG: ",".join(keys)},
            run_config={"ops": ops},
        )
    )
    home.fail("first-run")


def build_window(*, opens_in_hours: int) -> str:
    start = dt.datetime.now(tz=dt.UTC) + dt.timedelta(hours=opens_in_hours)
    return f"{start:%H:%M}-{start + dt.timedelta(hours=2):%H:%M}"


def test_it_waits_while_none_of_its_tables_has_its_window_open(home: Home) -> None:
    soon, later = build_window(opens_in_hours=2), build_window(opens_in_hours=5)
    pause_with_windows(home, soon, later)
    requests, why = ask_sensor(home)
    assert list(requests) == []
    assert why == (
        f"run first-ru is paused: until its window opens, {soon} UTC or until its window opens, "
        f"{later} UTC"
    )


def test_windows_that_are_never_open_together_are_each_gone_on_in(home: Home) -> None:
    closed = build_window(opens_in_hours=4)
    pause_with_windows(home, build_window(opens_in_hours=-1), closed)
    ((found,), _) = ask_sensor(home)
    assert list_assets(found) == [RAW, "raw/weather"]
    # The second pauses again where the run comes to it; the first is done.
    home.begin("next-run", RAW, "raw/weather", days=DAYS, chain="first-run")
    tags = {GOES_ON_WITH_TAG: "first-run", PAUSED_TAG: PAUSED, PAUSED_AT_TAG: "raw/weather"}
    home.instance.add_run_tags("next-run", {**tags, "backfill_assets/window": closed})
    home.fail("next-run")
    assert ask_sensor(home)[1].startswith(
        f"run next-run is paused: until its window opens, {closed} UTC"
    )


def test_what_goes_on_after_withheld_days_is_not_the_rest_of_a_pause(home: Home) -> None:
    pause_run(home, "first-run", RAW, STAGING)
    home.begin("after withheld", STAGING, days=DAYS, chain="first-run")
    home.instance.add_run_tags("after withheld", {CONTINUES_TAG: "first-run"})
    ((found,), _) = ask_sensor(home)
    home.begin("the rest", RAW, days=DAYS, chain="first-run")
    home.instance.add_run_tags("the rest", {GOES_ON_WITH_TAG: found.tags[GOES_ON_WITH_TAG]})
    assert ask_sensor(home)[1] == "no run is paused"
    assert read_tag(home, "first-run") == SETTLED, "it is of no backfill that could lack more"


def test_days_that_were_protected_meanwhile_are_left_out(home: Home) -> None:
    pause_run(home, "first-run", RAW, STAGING)
    one_day = Protection(table=STAGING, first=DAYS[1], last=DAYS[1], reason="closed", by="anna")
    add_protection(home.warehouse, one_day, now=NOW)
    requests, _ = ask_sensor(home)
    assert list_ranges(requests) == [(DAYS[0], DAYS[0]), (DAYS[2], DAYS[3])]
    assert len({requested.run_key for requested in requests}) == 2
    add_protection(home.warehouse, Protection(table=RAW, reason="audited", by="anna"), now=NOW)
    requests, why = ask_sensor(home)
    assert list(requests) == []
    assert why.startswith(
        f"run first-ru can't go on: no partition of {RAW} can go: protected, left out: {RAW} "
        f"{DAYS[0]}...{DAYS[3]}: audited (by anna"
    )
    home.instance.add_run_tags("first-run", {"backfill_assets/override_protection": "agreed"})
    assert list_ranges(ask_sensor(home)[0]) == [(DAYS[0], DAYS[3])]
