"""Batches of events: the same rows as Dagster's storage writes, all or none; others can read."""

import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from dagster import EventLogEntry
from dagster._core.storage.event_log import SqliteEventLogStorage
from dagster._serdes import serialize_value

from backfill_assets.orchestration.event_batches import BatchingSqliteEventLogStorage
from backfill_assets_tests.commands import PROJECT
from backfill_assets_tests.orchestration.event_storages import (
    HalfRead,
    list_events,
    read_tables,
    wait_for_half,
)

_STORE_HALF = """
import sys
from pathlib import Path
from dagster import EventLogEntry
from dagster._serdes import deserialize_value
from backfill_assets.orchestration.event_batches import BatchingSqliteEventLogStorage
from backfill_assets_tests.orchestration.event_storages import HalfRead
folder, gate = sys.argv[1], Path(sys.argv[2])
events = [deserialize_value(line, EventLogEntry) for line in sys.stdin]
BatchingSqliteEventLogStorage(folder).store_event_batch(HalfRead(events, gate))
"""


@pytest.fixture(scope="module")
def events(tmp_path_factory: pytest.TempPathFactory) -> list[EventLogEntry]:
    return list_events(tmp_path_factory.mktemp("events") / "home")


@contextmanager
def store_half(folder: Path, events: list[EventLogEntry], gate: Path) -> Iterator[threading.Thread]:
    """A batch that is being stored, until the gate is gone."""
    storage = BatchingSqliteEventLogStorage(str(folder))
    half_read = HalfRead(events, gate)
    storing = threading.Thread(target=storage.store_event_batch, args=[half_read])
    storing.start()
    wait_for_half(gate)
    try:
        yield storing
    finally:
        gate.unlink(missing_ok=True)
        storing.join()


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_a_batch_leaves_the_rows_of_the_plain_storage(
    size: int, events: list[EventLogEntry], tmp_path: Path
):
    plain = SqliteEventLogStorage(str(tmp_path / "plain"))
    for event in events:
        plain.store_event(event)
    batching = BatchingSqliteEventLogStorage(str(tmp_path / "batching"))
    for start in range(0, len(events), size):
        batching.store_event_batch(events[start : start + size])
    expected = read_tables(plain, [events[0].run_id])
    assert sum(map(len, expected.values())) > 2 * len(events)
    assert read_tables(batching, [events[0].run_id]) == expected


def test_a_batch_goes_on_where_the_plain_storage_ended(events: list[EventLogEntry], tmp_path: Path):
    plain = SqliteEventLogStorage(str(tmp_path / "plain"))
    for event in events[:9]:
        plain.store_event(event)
    shutil.copytree(tmp_path / "plain", tmp_path / "batching")
    for event in events[9:]:
        plain.store_event(event)
    BatchingSqliteEventLogStorage(str(tmp_path / "batching")).store_event_batch(events[9:])
    reopened = SqliteEventLogStorage(str(tmp_path / "batching"))
    run_ids = [events[0].run_id]
    assert read_tables(reopened, run_ids) == read_tables(plain, run_ids)


def test_a_killed_process_leaves_nothing_of_a_batch(events: list[EventLogEntry], tmp_path: Path):
    folder, gate = tmp_path / "events", tmp_path / "gate"
    storage = BatchingSqliteEventLogStorage(str(folder))
    storage.store_event(events[0])
    before = read_tables(storage, [events[0].run_id])
    with subprocess.Popen(
        [sys.executable, "-c", _STORE_HALF, str(folder), str(gate)],
        cwd=PROJECT,
        stdin=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None
        process.stdin.write("\n".join(serialize_value(event) for event in events[1:]))
        process.stdin.close()
        wait_for_half(gate)
        process.kill()
    assert read_tables(storage, [events[0].run_id]) == before
    started = time.monotonic()
    storage.store_event_batch(events[1:])
    assert time.monotonic() - started < 5
    assert len(storage.get_logs_for_run(events[0].run_id)) == len(events)


def test_a_failed_batch_leaves_nothing(events: list[EventLogEntry], tmp_path: Path):
    storage = BatchingSqliteEventLogStorage(str(tmp_path))
    storage.store_event(events[0])
    before = read_tables(storage, [events[0].run_id])
    broken = events[-1]._replace(timestamp="never")  # pyright: ignore[reportArgumentType]
    with pytest.raises(TypeError):
        storage.store_event_batch([*events[1:-1], broken])
    assert read_tables(storage, [events[0].run_id]) == before


def test_others_read_while_a_batch_is_stored(events: list[EventLogEntry], tmp_path: Path):
    run_id = events[0].run_id
    with store_half(tmp_path / "events", events, tmp_path / "gate"):
        reader = BatchingSqliteEventLogStorage(str(tmp_path / "events"))
        started = time.monotonic()
        assert list(reader.all_asset_keys()) == []
        assert reader.get_logs_for_run(run_id) == []
        assert time.monotonic() - started < 1
    assert [key.to_user_string() for key in reader.all_asset_keys()] == ["lower", "upper"]


def test_others_store_what_is_of_assets_once_a_batch_is_stored(
    events: list[EventLogEntry], tmp_path: Path
):
    planned, message = (
        next(event for event in events if event.is_dagster_event is is_dagster_event)._replace(
            run_id="other"
        )
        for is_dagster_event in (True, False)
    )
    writer = SqliteEventLogStorage(str(tmp_path / "events"))
    with store_half(tmp_path / "events", events, tmp_path / "gate"):
        writer.store_event(message)  # in its run's own file
        of_asset = threading.Thread(target=writer.store_event, args=[planned])
        of_asset.start()
        of_asset.join(timeout=0.5)
        assert of_asset.is_alive()
    of_asset.join()
    assert len(writer.get_logs_for_run("other")) == 2


def test_what_is_private_is_as_expected(tmp_path: Path):
    assert BatchingSqliteEventLogStorage.find_changed_names() == []
    assert "_db_lock" in vars(SqliteEventLogStorage(str(tmp_path)))


def test_a_changed_name_is_named(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(SqliteEventLogStorage, "_connect", lambda self, shard, mode: None)
    assert BatchingSqliteEventLogStorage.find_changed_names() == ["_connect"]
