"""The lease that lets one writer at a time into a table of an object store."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import obstore
import pytest
from delta.exceptions.base import MetadataChangedException
from obstore.store import from_url

from backfill_engine.errors import TableError, TableLockedError
from backfill_engine.lake.leases import Lease, LeaseContent, LeaseObject, LeaseVersion, take_lease
from backfill_engine.lake.locks import hold_lock
from backfill_engine.lake.warehouse import Warehouse
from backfill_engine.lake.writer import retry_conflicts
from backfill_engine_tests.lake.readings import READINGS
from backfill_engine_tests.object_store import BUCKET, ObjectStore

EXPIRY = 1.0


@pytest.fixture
def remote(object_store: ObjectStore, tmp_path: Path) -> Warehouse:
    """A warehouse of the test's own in the store."""
    return Warehouse(f"s3a://{BUCKET}/{tmp_path.name}")


@pytest.fixture
def place(remote: Warehouse) -> LeaseObject:
    """Where the lease of READINGS is."""
    return LeaseObject(remote, READINGS.key)


def take(warehouse: Warehouse, *, timeout_seconds: float = 0.0) -> Lease:
    lease = LeaseObject(warehouse, READINGS.key)
    return take_lease(lease, READINGS.key, timeout_seconds=timeout_seconds, expiry_seconds=EXPIRY)


@contextmanager
def holding_process(warehouse: Warehouse) -> Iterator[subprocess.Popen[str]]:
    """Another process that holds the lease; it checks it and ends when it is sent a line."""
    program = (
        "import sys\n"
        "from backfill_engine.lake.warehouse import Warehouse\n"
        "from backfill_engine_tests.lake.test_leases import take\n"
        "lease = take(Warehouse(sys.argv[1]))\n"
        "print('held', flush=True)\n"
        "sys.stdin.readline()\n"
        "lease.check()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, warehouse.root],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[2],
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "held\n"
            yield process
        finally:
            process.kill()


def test_second_holder_is_told_who_waits_for_what(remote: Warehouse) -> None:
    def hold_too() -> None:
        with hold_lock(remote, READINGS.key, timeout_seconds=0.1):
            pytest.fail("two held the lease")

    with (
        holding_process(remote) as other,
        pytest.raises(
            TableLockedError, match=rf"process {other.pid}\) .*raw/readings .*_locks/raw\.readings"
        ) as caught,
    ):
        hold_too()
    assert "\n" not in str(caught.value)


def test_lease_is_renewed_for_as_long_as_it_is_held(remote: Warehouse) -> None:
    lease = take(remote)
    with pytest.raises(TableLockedError, match="has been writing"):
        take(remote, timeout_seconds=3 * EXPIRY)
    lease.release()
    take(remote).release()


def test_lease_of_a_killed_process_is_taken_over_when_it_ends(remote: Warehouse) -> None:
    with holding_process(remote) as other:
        other.kill()
        other.wait()
        began = time.monotonic()
        lease = take(remote, timeout_seconds=10 * EXPIRY)
    assert EXPIRY < time.monotonic() - began < 5 * EXPIRY
    lease.release()


def test_holder_that_stood_still_learns_that_it_lost_the_lease(remote: Warehouse) -> None:
    with holding_process(remote) as holder:
        os.kill(holder.pid, signal.SIGSTOP)
        taken_over = take(remote, timeout_seconds=10 * EXPIRY)
        os.kill(holder.pid, signal.SIGCONT)
        _, errors = holder.communicate("\n", timeout=30)
    assert "TableLockedError: raw/readings: the lease s3a://" in errors
    assert "was lost" in errors
    taken_over.check()
    taken_over.release()


def test_work_that_lost_its_lease_ends_with_an_error(remote: Warehouse, place: LeaseObject) -> None:
    with (
        pytest.raises(TableLockedError, match=r"lost while it was in use.* run again"),
        hold_lock(remote, READINGS.key),
    ):
        assert place.put(build_content("another"), over=place.read())


def test_no_commit_is_tried_once_the_lease_is_lost(remote: Warehouse, place: LeaseObject) -> None:
    with (
        pytest.raises(TableLockedError, match="another process took it over"),
        hold_lock(remote, READINGS.key) as lock,
    ):
        for attempt in retry_conflicts(lock):
            with attempt:
                assert place.put(build_content("another"), over=place.read())
                raise MetadataChangedException("what Delta says of a conflict")


def test_put_whose_answer_got_lost_is_known_as_ones_own(
    remote: Warehouse, place: LeaseObject
) -> None:
    lease = take(remote)
    standing = place.read()
    assert standing is not None and standing.content is not None
    again = standing.content.model_copy(update={"number": 1000})
    assert place.put(again, over=standing)  # this stands for a put without an answer
    lease.check()
    lease.release()


def test_put_meets_itself(place: LeaseObject) -> None:
    content = build_content("one")
    assert place.put(content, over=None) == place.put(content, over=None)
    assert place.put(build_content("other"), over=None) is None


def test_what_is_no_lease_holds_nobody_off_for_ever(
    remote: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("backfill_engine.lake.leases.EXPIRY_SECONDS", EXPIRY)
    obstore.put(from_url(remote.root), "_locks/raw.readings.json", b"not a lease")
    with pytest.raises(TableLockedError, match="another process"):
        take(remote)
    take(remote, timeout_seconds=5 * EXPIRY).release()


def test_store_that_ignores_conditions_is_refused(
    remote: Warehouse, object_store: ObjectStore
) -> None:
    object_store.heed_conditions(heed=False)
    with pytest.raises(TableLockedError, match="overwrites objects though asked not to") as caught:
        take(Warehouse(f"{remote.root}/blind"))
    assert "\n" not in str(caught.value)


def test_store_without_the_bucket_is_named(remote: Warehouse) -> None:
    absent = Warehouse("s3a://no-such-bucket/lake")
    message = r"lease s3a://no-such-bucket/.* can't be .* \(the store answers NoSuchBucket\)"
    with pytest.raises(TableLockedError, match=message) as caught:
        take(absent)
    assert "\n" not in str(caught.value)
    with pytest.raises(TableError, match=r"can't be looked for \(the store answers NoSuchBucket\)"):
        absent.exists(READINGS)


def test_one_lease_costs_a_handful_of_requests(
    remote: Warehouse, object_store: ObjectStore
) -> None:
    take(remote).release()  # the store is then known to go by conditions
    object_store.take_requests()
    with hold_lock(remote, READINGS.key) as lock:
        lock.check()
    assert object_store.take_requests() == {"GET": 1, "PUT": 3}


def build_content(lease: str) -> LeaseContent:
    return LeaseContent(lease=lease, number=0, holder="somebody", expiry_seconds=EXPIRY)


def test_versions_compare_by_content_and_tag(place: LeaseObject) -> None:
    put = place.put(build_content("one"), over=None)
    assert isinstance(put, LeaseVersion)
    assert place.read() == put
