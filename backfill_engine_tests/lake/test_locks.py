"""The lock that lets one writer at a time into a table; test_leases has more of object stores."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from backfill_engine.errors import TableLockedError
from backfill_engine.lake.locks import hold_lock
from backfill_engine.lake.warehouse import Warehouse
from backfill_engine_tests.lake.readings import READINGS
from backfill_engine_tests.object_store import BUCKET


def test_second_holder_is_told_who_waits_for_what(warehouse: Warehouse) -> None:
    def hold_too() -> None:
        with hold_lock(warehouse, READINGS.key, timeout_seconds=0.1):
            pytest.fail("two held the lock")

    with (
        hold_lock(warehouse, READINGS.key),
        ThreadPoolExecutor(1) as other,
        pytest.raises(TableLockedError, match=r"raw/readings .*raw\.readings\.lock"),
    ):
        other.submit(hold_too).result()


@pytest.fixture(params=["disk", "S3"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Warehouse:
    """A warehouse whose tables are locked by a file, and one by a lease."""
    if request.param == "disk":
        return Warehouse(str(tmp_path))
    request.getfixturevalue("object_store")
    return Warehouse(f"s3a://{BUCKET}/{tmp_path.name}")


def test_no_thread_holds_it_twice(place: Warehouse) -> None:
    again = [hold_lock(place, READINGS.key, timeout_seconds=0.1) for _ in range(2)]
    with hold_lock(place, READINGS.key):
        with pytest.raises(TableLockedError):
            again[0].__enter__()
        with ThreadPoolExecutor(1) as other, pytest.raises(TableLockedError):
            other.submit(again[1].__enter__).result()


def test_it_is_free_again_at_once_after_an_error(place: Warehouse) -> None:
    with pytest.raises(ZeroDivisionError), hold_lock(place, READINGS.key):
        raise ZeroDivisionError
    with hold_lock(place, READINGS.key, timeout_seconds=0.0):
        pass


def test_hdfs_needs_no_lock_file() -> None:
    remote = Warehouse("hdfs://cluster/lake")
    with hold_lock(remote, READINGS.key), hold_lock(remote, READINGS.key, timeout_seconds=0.1):
        pass
