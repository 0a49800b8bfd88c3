"""The lock file that lets one writer at a time into a local table."""

import pytest

from backfill_assets.errors import TableLockedError
from backfill_assets.lake.locks import hold_lock
from backfill_assets.lake.warehouse import Warehouse
from backfill_assets_tests.lake.readings import READINGS


def test_second_holder_is_told_who_waits_for_what(warehouse: Warehouse) -> None:
    with (
        hold_lock(warehouse, READINGS.key),
        pytest.raises(TableLockedError, match=r"raw/readings .*raw\.readings\.lock"),
        hold_lock(warehouse, READINGS.key, timeout_seconds=0.1),
    ):
        pytest.fail("two held the lock")


def test_lock_is_free_again_after_an_error(warehouse: Warehouse) -> None:
    with pytest.raises(ZeroDivisionError), hold_lock(warehouse, READINGS.key):
        raise ZeroDivisionError
    with hold_lock(warehouse, READINGS.key, timeout_seconds=0.1):
        pass


def test_object_stores_need_no_lock_file() -> None:
    remote = Warehouse("s3a://bucket/lake")
    with hold_lock(remote, READINGS.key), hold_lock(remote, READINGS.key, timeout_seconds=0.1):
        pass
