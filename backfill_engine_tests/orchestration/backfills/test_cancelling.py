"""What is at work ends when it is cancelled, whoever runs it; what is over is left as it is."""

import subprocess
import sys
import time
from pathlib import Path
from threading import Timer

import pytest
from dagster import DagsterInstance, DagsterRun, RunsFilter
from dagster._daemon.types import DaemonHeartbeat

from backfill_engine.errors import BackfillError
from backfill_engine.orchestration.backfills.cancelling import (
    Cancellation,
    cancel,
    describe_wanted,
    is_cancelled,
)
from backfill_engine.orchestration.instance.dagster_internals import BulkActionStatus
from backfill_engine.orchestration.instance.processes import identify_process
from backfill_engine.orchestration.runs.claims import CREATOR_TAG, PROCESS_TAG
from backfill_engine.orchestration.runs.run_tags import DROPPED, PAUSED_TAG
from backfill_engine_tests.pipeline.alerting import Home
from backfill_engine_tests.pipeline.requesting import (
    get_backfill,
    get_run,
    read_progress,
    request,
    set_status,
)
from backfill_engine_tests.pipeline.running import RAW, STAGING, list_days
from backfill_engine_tests.pipeline.slow_runs import materialize_slowly
from backfill_engine_tests.pipeline.watching import evaluate_sensor
from backfill_engine_tests.project import CATALOG, continue_after_withheld

DAYS = list_days(4, 7)
NOBODY = "no such machine/namespace/1/1"


def cancel_now(home: Home, wanted: str, *, wait_seconds: float = 5) -> Cancellation:
    return cancel(CATALOG, home.instance, wanted, wait_seconds=wait_seconds, silent_seconds=0)


def find_status(home: Home, run_id: str) -> str:
    return get_run(home.instance, run_id).status.value


def test_a_backfill_ends_with_all_that_is_at_work_of_it(home: Home) -> None:
    backfill = request(home.instance, RAW, days=DAYS)
    home.begin("of it", RAW, days=DAYS[:2], backfill=backfill)
    home.publish("of it", RAW, DAYS[0])
    home.begin("continues", RAW, days=DAYS[2:3], chain=backfill)
    home.begin("another", RAW, days=DAYS[3:])
    assert not is_cancelled(home.instance, backfill)
    # No process has ever worked on them: they count as dead at once.
    found = cancel_now(home, backfill)
    assert (found.id, found.ended, found.unfinished) == (backfill, ["continues", "of it"], [])
    assert not found.by_daemon
    statuses = {run: find_status(home, run) for run in ("of it", "continues", "another")}
    assert statuses == {"of it": "CANCELED", "continues": "CANCELED", "another": "STARTED"}
    record = get_backfill(home.instance, backfill)
    assert record.status is BulkActionStatus.CANCELED
    assert record.backfill_end_timestamp
    assert is_cancelled(home.instance, backfill)
    progress = read_progress(home.instance, backfill)
    assert (progress.state, progress.published) == ("cancelled", 1)
    with pytest.raises(BackfillError, match=r"is over \(canceled\): there is nothing to cancel"):
        cancel_now(home, backfill)


def test_what_has_no_run_yet_is_cancelled_too(home: Home) -> None:
    backfill = request(home.instance, RAW, days=DAYS)
    assert cancel_now(home, backfill).ended == []
    assert read_progress(home.instance, backfill).state == "cancelled"


def test_a_daemon_that_lives_is_left_to_call_a_backfill_cancelled(home: Home) -> None:
    home.instance.add_daemon_heartbeat(DaemonHeartbeat(time.time(), "BACKFILL", "a daemon", []))
    backfill = request(home.instance, RAW, days=DAYS)
    assert cancel_now(home, backfill).by_daemon
    assert get_backfill(home.instance, backfill).status is BulkActionStatus.CANCELING


def test_what_goes_on_after_dagster_called_the_backfill_failed_is_cancelled_as_such(
    home: Home,
) -> None:
    backfill = home.start_backfill(RAW, days=DAYS, run_id="paused-run")
    home.pause("paused-run", RAW)
    set_status(home.instance, backfill, BulkActionStatus.COMPLETED_FAILED)
    home.begin("goes-on", RAW, days=DAYS, chain=backfill)
    assert not is_cancelled(home.instance, backfill)
    found = cancel_now(home, backfill)
    assert (found.ended, found.unfinished, found.by_daemon) == (["goes-on"], [], False)
    assert is_cancelled(home.instance, backfill), "so no sensor goes on with it"
    assert read_progress(home.instance, backfill).state == "cancelled"


def test_one_run_is_cancelled_alone(home: Home) -> None:
    backfill = request(home.instance, RAW, days=DAYS)
    for run_id, days in (("first-run", DAYS[:2]), ("second-run", DAYS[2:])):
        home.begin(run_id, RAW, days=days, backfill=backfill)
    assert cancel_now(home, "second-run").ended == ["second-run"]
    assert find_status(home, "first-run") == "STARTED"
    assert not is_cancelled(home.instance, backfill)
    with pytest.raises(BackfillError, match=r"run second-run is over \(canceled\)"):
        cancel_now(home, "second-run")


def test_the_first_run_of_a_chain_stands_for_all_of_it(home: Home) -> None:
    home.withhold("first-run")
    home.begin("second-run", STAGING, days=DAYS[2:], chain="first-run")
    home.begin("retried-run", STAGING, days=DAYS[2:], root="first-run")
    assert cancel_now(home, "first-run").ended == ["retried-run", "second-run"]
    home.begin("third-run", STAGING, days=DAYS[2:], chain="first-run")
    home.pause("third-run", STAGING)
    assert cancel_now(home, "first-run").ended == []
    assert get_run(home.instance, "third-run").tags[PAUSED_TAG] == DROPPED
    with pytest.raises(BackfillError, match=r"run first-run is over"):
        cancel_now(home, "first-run")


def test_what_is_asked_about_is_what_would_end(home: Home) -> None:
    backfill = request(home.instance, RAW, days=DAYS, title="mend all")
    home.begin("second-run", RAW, days=DAYS[2:], backfill=backfill)
    home.begin("other-run", RAW, days=DAYS[:3])
    home.begin("later-run", RAW, days=DAYS[3:], chain="other-run")
    assert describe_wanted(CATALOG, home.instance, backfill) == "mend all"
    assert describe_wanted(CATALOG, home.instance, "second-run") == f"{RAW} 2013-01-06...2013-01-07"
    assert describe_wanted(CATALOG, home.instance, "other-run") == f"{RAW} 2013-01-04...2013-01-07"
    assert describe_wanted(CATALOG, home.instance, "later-run") == f"{RAW} 2013-01-07...2013-01-07"


def test_a_run_that_only_starts_is_asked_again_once_its_process_is_known(home: Home) -> None:
    home.begin("starts", RAW, days=DAYS)
    home.instance.add_run_tags("starts", {CREATOR_TAG: NOBODY})
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(30)"]) as process:
        identity = identify_process(process.pid)
        assert identity is not None
        timer = Timer(1, home.instance.add_run_tags, ["starts", {PROCESS_TAG: identity}])
        timer.start()
        found = cancel(CATALOG, home.instance, "starts", wait_seconds=20, silent_seconds=3600)
        timer.join()
        assert process.wait(timeout=5) != 0
    assert (found.ended, found.unfinished) == (["starts"], [])


def test_what_nobody_here_can_end_is_told(home: Home) -> None:
    home.begin("elsewhere", RAW, days=DAYS)
    home.instance.add_run_tags("elsewhere", {CREATOR_TAG: NOBODY})
    found = cancel(CATALOG, home.instance, "elsewhere", wait_seconds=0, silent_seconds=3600)
    assert (found.ended, found.unfinished) == ([], ["elsewhere"])
    assert find_status(home, "elsewhere") == "CANCELING"


def ask_sensor(home: Home, cursor: str | None) -> tuple[str | None, bool, str]:
    """Returns the sensor's new cursor, whether it requests anything, and why not."""
    tick = evaluate_sensor(continue_after_withheld, home.instance, cursor)
    return tick.cursor, bool(tick.run_requests), tick.skip_message or ""


@pytest.mark.parametrize("is_cancelled", [True, False])
def test_nothing_goes_on_from_a_cancelled_backfill(home: Home, *, is_cancelled: bool) -> None:
    backfill = request(home.instance, RAW, STAGING, days=DAYS)
    cursor, _, _ = ask_sensor(home, None)
    home.withhold("first-run", backfill=backfill)
    home.complete("earlier", RAW, days=list_days(8, 8))
    if is_cancelled:
        cancel_now(home, backfill)
    _, goes_on, why = ask_sensor(home, cursor)
    assert goes_on is not is_cancelled
    assert ("which the run is of, was cancelled" in why) is is_cancelled


def find_run(instance: DagsterInstance) -> DagsterRun | None:
    """The one that works already."""
    runs = instance.get_runs(RunsFilter())
    return runs[0] if runs and runs[0].status.value == "STARTED" else None


def test_a_run_that_a_shell_started_ends_within_seconds(tmp_path: Path) -> None:
    with materialize_slowly(tmp_path) as (project, process):
        with DagsterInstance.from_config(project.environment["DAGSTER_HOME"]) as instance:
            deadline = time.monotonic() + 120
            while (run := find_run(instance)) is None:
                assert time.monotonic() < deadline, (tmp_path / "log").read_text()
                time.sleep(0.5)
            time.sleep(5)
            found = cancel(CATALOG, instance, run.run_id[:8], wait_seconds=60, silent_seconds=3600)
            assert (found.id, found.ended, found.unfinished) == (run.run_id, [run.run_id], [])
            assert get_run(instance, run.run_id).status.value == "CANCELED"
        assert process.wait(timeout=60) != 0
