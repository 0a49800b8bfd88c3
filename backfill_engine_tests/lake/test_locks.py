"""The lock file that lets one writer at a time into a local table."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from backfill_engine.errors import TableLockedError
from backfill_engine.lake.locks import hold_lock
from backfill_engine.lake.warehouse import Warehouse
from backfill_engine_tests.lake.readings import READINGS


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


def test_nobody_holds_it_twice(warehouse: Warehouse) -> None:
    again = hold_lock(warehouse, READINGS.key, timeout_seconds=0.1)
    with hold_lock(warehouse, READINGS.key), pytest.raises(TableLockedError):
        again.__enter__()


def test_lock_is_free_again_after_an_error(warehouse: Warehouse) -> None:
    with pytest.raises(ZeroDivisionError), hold_lock(warehouse, READINGS.key):
        raise ZeroDivisionError
    with hold_lock(warehouse, READINGS.key, timeout_seconds=0.1):
        pass


def test_hdfs_needs_no_lock_file() -> None:
    remote = Warehouse("hdfs://cluster/lake")
    with hold_lock(remote, READINGS.key), hold_lock(remote, READINGS.key, timeout_seconds=0.1):
        pass
