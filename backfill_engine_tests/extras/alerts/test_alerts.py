"""The sensor posts notices only when it is asked to, and only of our own runs."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from dagster import AssetKey, DagsterInstance, DagsterRun, DagsterRunStatus
from dagster._core.definitions.run_request import InstigatorType
from dagster._core.remote_origin import (
    RegisteredCodeLocationOrigin,
    RemoteInstigatorOrigin,
    RemoteRepositoryOrigin,
)
from dagster._core.scheduler.instigation import (
    InstigatorState,
    InstigatorStatus,
    SensorInstigatorData,
)

from backfill_engine.lake.warehouse import Warehouse
from backfill_engine.orchestration.runs.claims import PROCESS_TAG
from backfill_engine.orchestration.runs.run_tags import WITHHELD_TAG
from backfill_engine_tests.pipeline.alerting import Home
from backfill_engine_tests.pipeline.watching import evaluate_sensor
from backfill_engine_tests.project import process_due_partitions, report_withheld
from backfill_engine_tests.receivers import Receiver, run_receiver


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with run_receiver() as receiver:
        yield receiver


@pytest.fixture
def home(
    receiver: Receiver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[DagsterInstance]:
    """The environment names the receiver, and chains in this Dagster home end at once."""
    monkeypatch.setenv("BACKFILL_ALERT_URL", receiver.url)
    monkeypatch.setenv("BACKFILL_WAREHOUSE", str(tmp_path / "warehouse"))
    monkeypatch.setattr("backfill_engine.orchestration.runs.chains.SETTLE_SECONDS", 0)
    (tmp_path / "home").mkdir()
    with DagsterInstance.local_temp(str(tmp_path / "home")) as instance:
        yield instance


def look(instance: DagsterInstance, cursor: str | None) -> tuple[str | None, str]:
    """Ticks once and returns the new cursor and the message."""
    tick = evaluate_sensor(report_withheld, instance, cursor)
    assert not tick.run_requests
    return tick.cursor, tick.skip_message or ""


def fail_run(
    instance: DagsterInstance, run_id: str, job: str, asset: str = "", *, is_ours: bool = True
) -> None:
    run = DagsterRun(
        job,
        run_id=run_id,
        status=DagsterRunStatus.STARTED,
        asset_selection=frozenset({AssetKey.from_user_string(asset)}) if asset else None,
        tags={PROCESS_TAG: "elsewhere"} if is_ours else {},
    )
    instance.add_run(run)
    instance.report_run_failed(run, "broken")


def test_it_tells_of_our_failures_from_when_it_is_first_asked_to(
    home: DagsterInstance, receiver: Receiver
) -> None:
    fail_run(home, "old", "maintain")
    cursor, message = look(home, None)
    assert (message, receiver.requests) == ("nothing to tell", 0)
    fail_run(home, "job", "maintain")
    fail_run(home, "asset", "__ASSET_JOB", "raw/flights")
    fail_run(home, "watch", "watch", "ops/backfill_health")
    fail_run(home, "other job", "maintain", is_ours=False)
    fail_run(home, "other asset", "__ASSET_JOB", "raw/flights", is_ours=False)
    cursor, message = look(home, cursor)
    assert message == "notices accepted: 3"
    assert [notice["chain"] for notice in receiver.accepted] == ["job", "asset", "watch"]
    assert look(home, cursor)[1] == "nothing to tell"


def test_nobody_who_sets_no_address_is_told_anything(
    home: DagsterInstance, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    cursor, _ = look(home, None)
    monkeypatch.setenv("BACKFILL_ALERT_URL", "")
    fail_run(home, "meanwhile", "maintain")
    cursor, message = look(home, cursor)
    assert message == "BACKFILL_ALERT_URL is not set: nobody wants notices"
    monkeypatch.setenv("BACKFILL_ALERT_URL", receiver.url)
    cursor, _ = look(home, cursor)
    look(home, cursor)
    assert receiver.requests == 0


@pytest.mark.parametrize("trouble", ["broken", "down", "redirecting"])
def test_the_log_says_what_is_wrong_with_the_receiver_and_no_secret(
    home: DagsterInstance,
    receiver: Receiver,
    trouble: str,
    capfd: pytest.CaptureFixture[str],
) -> None:
    cursor, _ = look(home, None)
    fail_run(home, "job", "maintain")
    receiver.status = {"broken": 500, "down": 200, "redirecting": 302}[trouble]
    if trouble == "down":
        receiver.go_down()
    cursor, message = look(home, cursor)
    out, err = capfd.readouterr()
    assert message.startswith("127.0.0.1 ")
    assert "notices kept, to be posted again for up to a day: 1" in out + err
    assert "s3cret" not in out + err + message + (cursor or "")


def test_no_cursor_and_no_setting_that_is_broken_makes_it_fail(
    home: DagsterInstance, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    cursor, message = look(home, "{")
    assert (message, receiver.requests) == ("nothing to tell", 0)
    monkeypatch.setenv("BACKFILL_ALERT_URL", "ftp://s3cret")
    kept, message = look(home, cursor)
    assert (kept, message) == (cursor, "no notices were posted: SettingsError")


@pytest.mark.parametrize("turned_on", [True, False])
def test_it_says_whether_what_is_withheld_is_tried_again_by_itself(
    home: DagsterInstance, receiver: Receiver, tmp_path: Path, *, turned_on: bool
) -> None:
    repository = RemoteRepositoryOrigin(RegisteredCodeLocationOrigin("here"), "__repository__")
    status = InstigatorStatus.RUNNING if turned_on else InstigatorStatus.STOPPED
    home.add_instigator_state(
        InstigatorState(
            RemoteInstigatorOrigin(repository, process_due_partitions.name),
            InstigatorType.SENSOR,
            status,
            SensorInstigatorData(),
        )
    )
    cursor, _ = look(home, None)
    Home(home, Warehouse(str(tmp_path / "warehouse")), receiver).withhold("run")
    look(home, cursor)
    (notice,) = receiver.accepted
    (run,) = home.get_runs()
    assert WITHHELD_TAG in run.tags
    assert any("tried again once" in line for line in notice["goes_on"]) is turned_on
