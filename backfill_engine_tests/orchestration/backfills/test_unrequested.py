"""When a run pauses, Dagster requests no runs for the rest, and the sensor does in the end."""

import datetime as dt
import time
from pathlib import Path

import pytest
from dagster import AssetKey
from dagster._daemon.types import DaemonHeartbeat

from backfill_engine.orchestration.backfills.resuming import (
    Resumer,
    UnrequestedPartitions,
    look_for_unrequested,
)
from backfill_engine.orchestration.due.downstream import request_backfill
from backfill_engine.orchestration.instance.dagster_internals import BulkActionStatus
from backfill_engine.orchestration.runs import chains
from backfill_engine.orchestration.runs.pausing import pause, unpause
from backfill_engine.orchestration.runs.run_tags import (
    CHAIN_TAG,
    CONTINUES_TAG,
    GOES_ON_WITH_TAG,
    IN_BACKGROUND,
    PAUSED_TAG,
    RANGE_END_TAG,
    RANGE_START_TAG,
    SETTLED,
    WENT_ON,
)
from backfill_engine_tests.orchestration.runs.test_paused_runs import ask_sensor, list_assets
from backfill_engine_tests.pipeline.alerting import Home
from backfill_engine_tests.pipeline.landing_zone import LandingZone
from backfill_engine_tests.pipeline.requesting import get_run, read_progress, set_status
from backfill_engine_tests.pipeline.running import FEATURES, RAW, STAGING, list_days
from backfill_engine_tests.project import CATALOG, defs

GRAPH = defs.get_repository_def().asset_graph
DAYS = list_days(1, 4)
HOURLY, DAILY = "raw/weather", "staging/weather"
HOURS = [f"{day}-{hour:02}:00" for day in DAYS for hour in range(24)]
NEXT_HOURS = [f"2013-01-05-{hour:02}:00" for hour in range(24)]


@pytest.fixture
def home(home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    LandingZone(tmp_path / "landing").land(list_days(1, 6))
    monkeypatch.setenv("BACKFILL_WAREHOUSE", home.warehouse.root)
    monkeypatch.setenv("BACKFILL_LANDING", str(tmp_path / "landing"))
    return home


def look(home: Home, *, later: float = 60) -> UnrequestedPartitions:
    """Looks for unrequested partitions some seconds later than now."""
    landing = str(Path(home.warehouse.root).parent / "landing")
    resumer = Resumer(home.instance, GRAPH, home.warehouse, CATALOG, landing)
    return look_for_unrequested(
        resumer, now=dt.datetime.now(tz=dt.UTC) + dt.timedelta(seconds=later)
    )


def list_requested(found: UnrequestedPartitions) -> list[tuple[str, ...]]:
    return [
        (*(key.to_user_string() for key in requested.assets), *requested.ends)
        for requested in found.requested
    ]


def request(home: Home, targets: dict[str, list[str]], **tags: str) -> str:
    """Asks for a backfill of partitions by table."""
    return request_backfill(
        home.instance,
        GRAPH,
        {AssetKey.from_user_string(key): keys for key, keys in targets.items()},
        title="mend them",
        tags={f"backfill_assets/{name}": value for name, value in tags.items()},
    )


def pause_backfill(home: Home, targets: dict[str, list[str]], **tags: str) -> str:
    """Pauses the run of a backfill's first table, so that Dagster is done with the backfill."""
    backfill = request(home, targets, **tags)
    table, keys = next(iter(targets.items()))
    home.begin("first-run", table, days=keys, backfill=backfill)
    home.publish("first-run", table, keys[0])
    home.pause("first-run", table)
    set_status(home.instance, backfill, BulkActionStatus.COMPLETED_FAILED)
    return backfill


def go_on(home: Home, backfill: str, table: str, keys: list[str], *, withheld: str = "") -> None:
    """The run that the sensor requests for the rest, which publishes it; but for one of it."""
    home.begin("next-run", table, days=keys, chain=backfill)
    home.instance.add_run_tags("next-run", {GOES_ON_WITH_TAG: "first-run"})
    home.instance.add_run_tags("first-run", {PAUSED_TAG: WENT_ON})
    home.publish("next-run", table, *(key for key in keys if key != withheld))
    if withheld:
        home.fail("next-run", withheld=table)
    else:
        home.succeed("next-run")


def read_tag(home: Home) -> str:
    return get_run(home.instance, "first-run").tags[PAUSED_TAG]


def test_tables_of_runs_of_their_own_are_requested_once_what_they_read_is_published(
    home: Home,
) -> None:
    targets = {HOURLY: HOURS + NEXT_HOURS, DAILY: DAYS}
    backfill = pause_backfill(home, targets)
    assert list_requested(look(home)) == [], "it is paused"
    go_on(home, backfill, HOURLY, targets[HOURLY])
    found = look(home, later=0)
    assert (list_requested(found), found.waiting) == (
        [],
        [f"backfill {backfill}: it ended a moment ago, and may go on"],
    )
    found = look(home)
    assert list_requested(found) == [(DAILY, DAYS[0], DAYS[-1])]
    assert (found.requested[0].model.run_id, found.requested[0].continues) == (
        backfill,
        "first-run",
    )
    assert read_tag(home) == WENT_ON, "what reads these is looked for next"
    home.begin("days-run", DAILY, days=DAYS, chain=backfill)
    (waiting,) = look(home).waiting
    assert waiting == f"backfill {backfill}: 1 of its runs have not ended"
    home.publish("days-run", DAILY, *DAYS)
    home.succeed("days-run")
    assert look(home) == UnrequestedPartitions()
    assert read_tag(home) == SETTLED


def test_what_was_withheld_and_what_reads_it_is_left_alone_and_the_rest_goes_in_waves(
    home: Home,
) -> None:
    backfill = pause_backfill(home, {RAW: DAYS, STAGING: DAYS, FEATURES: DAYS})
    go_on(home, backfill, RAW, DAYS, withheld=DAYS[2])
    found = look(home)
    # Features of the days after it read the withheld day, too: other ranges, so other runs.
    assert list_requested(found) == [
        (STAGING, DAYS[0], DAYS[1]),
        (STAGING, DAYS[3], DAYS[3]),
    ]
    assert [line.split(":")[0] for line in found.left_alone] == [
        f"{STAGING} {DAYS[2]}",
        f"{FEATURES} {DAYS[2]}...{DAYS[3]}",
    ]
    for run_id, days in (("run-a", DAYS[:2]), ("run-b", DAYS[3:])):
        home.complete(run_id, STAGING, days=days, chain=backfill)
    assert list_requested(look(home)) == [(FEATURES, DAYS[0], DAYS[1])]
    home.begin("run-c", FEATURES, days=DAYS[:2], chain=backfill)
    home.fail("run-c", "No space left on device")
    assert list_requested(look(home)) == [], "what an error ended is not asked for again"
    assert read_tag(home) == SETTLED
    # Its cause is mended later, so a person has to run `backfill retry`.
    home.complete("mended", RAW, days=[DAYS[2]])
    assert look(home) == UnrequestedPartitions()


def test_tables_of_the_same_ranges_share_a_run(home: Home) -> None:
    backfill = pause_backfill(home, {RAW: DAYS, STAGING: DAYS, FEATURES: DAYS})
    go_on(home, backfill, RAW, DAYS)
    assert list_requested(look(home)) == [(STAGING, FEATURES, DAYS[0], DAYS[-1])]


def test_what_is_cancelled_or_paused_again_or_resumed_by_hand_is_not_requested(home: Home) -> None:
    backfill = pause_backfill(home, {RAW: DAYS, STAGING: DAYS})
    go_on(home, backfill, RAW, DAYS)
    pause(home.instance, backfill, reason="disk", now=dt.datetime.now(tz=dt.UTC))
    found = look(home)
    assert (list_requested(found), "disk, until" in found.waiting[0]) == ([], True)
    unpause(home.instance, backfill)
    assert list_requested(look(home)) == [(STAGING, DAYS[0], DAYS[-1])]
    request(home, {STAGING: DAYS}, resumes=backfill)
    found = look(home)
    assert (list_requested(found), f"resumes {backfill} already" in found.waiting[0]) == ([], True)
    set_status(home.instance, backfill, BulkActionStatus.CANCELED)
    assert (look(home), read_tag(home)) == (UnrequestedPartitions(), SETTLED)


def test_the_sensor_requests_it_as_the_backfill_was_told(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chains, "SETTLE_SECONDS", 0)
    options = {"chunk": "days=1", "reason": "wrong numbers"}
    backfill = pause_backfill(home, {RAW: DAYS, STAGING: DAYS}, **options)
    go_on(home, backfill, RAW, DAYS)
    ((found,), _) = ask_sensor(home)
    assert list_assets(found) == [STAGING]
    assert found.run_key == f"{backfill} lacks {STAGING} {DAYS[0]}...{DAYS[-1]}"
    assert found.run_config == {"ops": {"staging__flights": {"config": {"chunk": "days=1"}}}}
    assert found.tags.items() >= {
        (CHAIN_TAG, backfill),
        (CONTINUES_TAG, "first-run"),
        *IN_BACKGROUND.items(),
        (RANGE_START_TAG, DAYS[0]),
        (RANGE_END_TAG, DAYS[-1]),
        ("backfill_assets/reason", "wrong numbers"),
    }
    assert GOES_ON_WITH_TAG not in found.tags


def test_until_it_is_looked_for_the_backfill_is_not_over(home: Home) -> None:
    backfill = pause_backfill(home, {RAW: DAYS, STAGING: DAYS})
    paused = read_progress(home.instance, backfill)
    assert [(table.held_back, table.waiting) for table in paused.tables] == [(0, 3), (0, 4)]
    go_on(home, backfill, RAW, DAYS)
    assert read_progress(home.instance, backfill).is_over, "no daemon is there to look"
    beat = DaemonHeartbeat(time.time(), "BACKFILL", "a daemon", [])
    home.instance.add_daemon_heartbeat(beat)
    found = read_progress(home.instance, backfill, later=60)
    assert [(table.held_back, table.waiting) for table in found.tables] == [(0, 0), (0, 4)]
    why = "it was paused, and what no run was requested for is to be looked at"
    assert (found.state, found.at_work) == ("running", why)
    found = read_progress(home.instance, backfill, later=700)
    assert (found.state, found.is_over) == ("held back", True), "its sensor seems to be off"
    look(home)
    assert not read_progress(home.instance, backfill, later=60).is_over
    home.complete("days-run", STAGING, days=DAYS, chain=backfill)
    look(home)
    found = read_progress(home.instance, backfill)
    assert (found.state, found.is_over) == ("published", True)
