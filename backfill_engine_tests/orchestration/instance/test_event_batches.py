"""Batches of events: the same rows as Dagster's storage writes, all or none; others can read."""

import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from dagster import AssetCheckKey, AssetKey, DagsterEventType, EventLogEntry, serialize_value
from dagster._core.storage.event_log import SqliteEventLogStorage
from dagster_postgres import PostgresEventLogStorage

from backfill_engine.orchestration.instance.event_batches import (
    BatchingSqliteEventLogStorage,
    StoresBatches,
)
from backfill_engine.orchestration.instance.postgres_event_batches import (
    BatchingPostgresEventLogStorage,
)
from backfill_engine_tests.commands import PROJECT
from backfill_engine_tests.orchestration.instance.event_storages import (
    DAYS,
    HalfRead,
    list_events,
    open_storage,
    read_tables,
    wait_for_half,
)
from backfill_engine_tests.postgres import Postgres, serve_postgres

Places = Callable[[str], str]

_STORE_HALF = """
import sys
from pathlib import Path
from dagster import EventLogEntry
from dagster._serdes import deserialize_value
from backfill_engine_tests.orchestration.instance.event_storages import HalfRead, open_storage
place, gate = sys.argv[1], Path(sys.argv[2])
events = [deserialize_value(line, EventLogEntry) for line in sys.stdin]
open_storage(place).store_event_batch(HalfRead(events, gate, place=place))
"""


@pytest.fixture(scope="module")
def events(tmp_path_factory: pytest.TempPathFactory) -> list[EventLogEntry]:
    return list_events(tmp_path_factory.mktemp("events") / "home")


@pytest.fixture(scope="module")
def postgres() -> Iterator[Postgres]:
    with serve_postgres() as server:
        yield server


@pytest.fixture(params=["sqlite", "postgres"])
def places(request: pytest.FixtureRequest, tmp_path: Path) -> Places:
    """Gives places for storages, by name."""
    if request.param == "sqlite":
        return lambda name: str(tmp_path / name)
    server: Postgres = request.getfixturevalue("postgres")
    databases: dict[str, str] = {}
    return lambda name: databases.setdefault(name, server.create_database())


@contextmanager
def store_half(place: str, events: list[EventLogEntry], gate: Path) -> Iterator[threading.Thread]:
    """A batch that is being stored, until the gate is gone."""
    storage = open_storage(place)
    half_read = HalfRead(events, gate, place=place)
    storing = threading.Thread(target=storage.store_event_batch, args=[half_read])
    storing.start()
    wait_for_half(gate)
    try:
        yield storing
    finally:
        gate.unlink(missing_ok=True)
        storing.join()


def store_plainly(place: str, events: list[EventLogEntry]) -> dict[str, list[dict[str, Any]]]:
    """What all tables hold once Dagster's own storage has stored events of a run as well."""
    storage = open_storage(place, batching=False)
    for event in events:
        storage.store_event(event)
    return read_tables(storage, [events[0].run_id])


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_a_batch_leaves_the_rows_of_the_plain_storage(
    size: int, events: list[EventLogEntry], places: Places
):
    batching = open_storage(places("batching"))
    for start in range(0, len(events), size):
        batching.store_event_batch(events[start : start + size])
    expected = store_plainly(places("plain"), events)
    assert sum(map(len, expected.values())) > 2 * len(events)
    assert read_tables(batching, [events[0].run_id]) == expected


def test_evaluations_that_nobody_planned_leave_the_rows_of_the_plain_storage(
    events: list[EventLogEntry], places: Places
):
    planned = DagsterEventType.ASSET_CHECK_EVALUATION_PLANNED
    left = [
        event
        for event in events
        if event.dagster_event_type != planned or _name_check(event) == "c"
    ]
    assert len(left) == len(events) - 1
    left += [
        event
        for event in left
        if event.dagster_event_type == DagsterEventType.ASSET_CHECK_EVALUATION
    ]
    batching = open_storage(places("batching"))
    batching.store_event_batch(left)
    assert read_tables(batching, [events[0].run_id]) == store_plainly(places("plain"), left)


def test_batches_and_the_plain_storage_go_on_where_the_other_ended(
    events: list[EventLogEntry], places: Places
):
    store_plainly(places("shared"), events[:9])
    open_storage(places("shared")).store_event_batch(events[9:20])
    assert store_plainly(places("shared"), events[20:]) == store_plainly(places("plain"), events)


def test_a_killed_process_leaves_nothing_of_a_batch(
    events: list[EventLogEntry], places: Places, tmp_path: Path
):
    place, gate, run_ids = places("killed"), tmp_path / "gate", [events[0].run_id]
    storage = open_storage(place)
    storage.store_event(events[0])
    before = read_tables(storage, run_ids)
    with subprocess.Popen(
        [sys.executable, "-c", _STORE_HALF, place, str(gate)],
        cwd=PROJECT,
        stdin=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None
        process.stdin.write("\n".join(serialize_value(event) for event in events[1:]))
        process.stdin.close()
        wait_for_half(gate)
        process.kill()
    assert read_tables(storage, run_ids) == before
    started = time.monotonic()
    storage.store_event_batch(events[1:])
    assert time.monotonic() - started < 5, "a dead process holds no lock"
    assert len(storage.get_logs_for_run(events[0].run_id)) == len(events)


def test_a_failed_batch_leaves_nothing(events: list[EventLogEntry], places: Places):
    storage = open_storage(places("failed"))
    storage.store_event(events[0])
    before = read_tables(storage, [events[0].run_id])
    broken = events[-1]._replace(timestamp="never")  # pyright: ignore[reportArgumentType]
    with pytest.raises(TypeError):
        storage.store_event_batch([*events[1:-1], broken])
    assert read_tables(storage, [events[0].run_id]) == before


def test_others_read_while_a_batch_is_stored(
    events: list[EventLogEntry], places: Places, tmp_path: Path
):
    reader = open_storage(places("read"))
    with store_half(places("read"), events, tmp_path / "gate"):
        started = time.monotonic()
        assert list(reader.all_asset_keys()) == []
        assert reader.get_logs_for_run(events[0].run_id) == []
        assert time.monotonic() - started < 1
    found = sorted(key.to_user_string() for key in reader.all_asset_keys())
    assert found == ["lower", "upper"]


def test_others_store_what_is_of_assets_once_a_batch_is_stored(
    events: list[EventLogEntry], places: Places, tmp_path: Path
):
    """So that no event appears after one with a higher number."""
    planned = events[0]._replace(run_id="other")
    writer = open_storage(places("written"))
    with store_half(places("written"), events, tmp_path / "gate"):
        storing = threading.Thread(target=writer.store_event, args=[planned])
        storing.start()
        storing.join(timeout=0.5)
        assert storing.is_alive()
    storing.join()
    *_, last = writer.get_records_for_run("other").records
    assert writer.get_maximum_record_id() == last.storage_id or isinstance(
        writer, SqliteEventLogStorage
    )


def test_a_message_waits_for_nobody_in_its_runs_own_file(
    events: list[EventLogEntry], tmp_path: Path
):
    message = next(event for event in events if not event.is_dagster_event)._replace(run_id="other")
    writer = open_storage(str(tmp_path / "events"))
    with store_half(str(tmp_path / "events"), events, tmp_path / "gate"):
        writer.store_event(message)
        assert len(writer.get_logs_for_run("other")) == 1


def test_the_row_of_a_planned_check_does_not_name_all_partitions(
    events: list[EventLogEntry], places: Places
):
    """Else the rows of so many partitions grow by the square of their number."""
    planned = [
        event
        for event in events
        if event.dagster_event_type is DagsterEventType.ASSET_CHECK_EVALUATION_PLANNED
    ]
    storage = open_storage(places("planned"))
    storage.store_event_batch(planned)
    keys = [AssetCheckKey(AssetKey("upper"), name) for name in ("c", "d")]
    for key in keys:
        records = storage.get_asset_check_execution_history(key, limit=9)
        days = sorted(record.partition for record in records if record.partition)
        assert days == DAYS.get_partition_keys()
        for record in records:
            assert record.event is not None
            stored = record.event.get_dagster_event().asset_check_planned_data
            assert stored.asset_check_key == key
            assert stored.partitions_subset is None
    assert storage.get_logs_for_run(planned[0].run_id) == planned


@pytest.mark.parametrize(
    "storage", [BatchingSqliteEventLogStorage, BatchingPostgresEventLogStorage]
)
def test_what_is_private_is_as_expected(storage: type[StoresBatches]):
    assert storage.find_changed_names() == []


def test_the_lock_of_dagsters_connections_is_the_one_that_is_replaced(tmp_path: Path):
    assert "_db_lock" in vars(SqliteEventLogStorage(str(tmp_path)))


@pytest.mark.parametrize(
    ("plain", "storage"),
    [
        (SqliteEventLogStorage, BatchingSqliteEventLogStorage),
        (PostgresEventLogStorage, BatchingPostgresEventLogStorage),
    ],
)
def test_a_changed_name_is_named(
    plain: type, storage: type[StoresBatches], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(plain, "_connect", lambda self, shard, mode: None)
    assert storage.find_changed_names() == ["_connect"]


def _name_check(event: EventLogEntry) -> str:
    return event.get_dagster_event().asset_check_planned_data.check_name
