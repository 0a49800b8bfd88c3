"""One writer at a time per table.

On a local disk Delta's commit is not exclusive across processes: Hadoop's LocalFileSystem has no
atomic "create if absent", so two JVMs can both be told that they wrote the same version. A lock
file closes that gap; the operating system frees it when its process dies.

On S3 it is not exclusive either: Delta 4.4 looks whether the version is there and then puts it, and
keeps only the threads of one JVM from doing both at once. There a lease closes the gap but for one
case; see `lake.leases`. A holder that stands still for over a minute after its last check, loses
the lease, and then puts while the next holder is between its look and its put (or stood still
between its own), makes one of the two commits vanish. It fails then, and so does a run that misses
its commit in the log. Any other lost lease is noticed in time, by the check before each commit or
by Delta's own of conflicts. Google's and Azure's stores have leases too; HDFS commits exclusively.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Protocol

from filelock import FileLock, Timeout

from backfill_engine.errors import TableLockedError
from backfill_engine.lake.leases import Lease, LeaseObject, has_leases, take_lease
from backfill_engine.lake.warehouse import Warehouse
from backfill_engine.uris import is_local, local_path

_PATIENCE_SECONDS = 1800.0


class Lock(Protocol):
    """A lock that is held."""

    def check(self) -> None:
        """Makes sure that it still is, right before a commit.

        Raises:
            TableLockedError: if it was lost, or that can't be told.
        """
        ...


class _Unloseable:
    def check(self) -> None:
        """Does nothing: the operating system keeps the lock as long as the process lives."""


@contextmanager
def hold_lock(
    warehouse: Warehouse, name: str, *, timeout_seconds: float = _PATIENCE_SECONDS
) -> Iterator[Lock]:
    """Holds the lock of one Delta table of the warehouse while commits are read and written.

    Not twice: who holds it passes it on.

    Args:
        warehouse: where the table is.
        name: the table's key, or another name of its own.
        timeout_seconds: how long to wait for another process or thread.

    Yields:
        The lock, for checking it before each commit.

    Raises:
        TableLockedError: if another process keeps it for longer than `timeout_seconds`; on object
            stores also if they don't answer, have no conditional puts, or the lock was lost
            meanwhile.
    """
    if is_local(warehouse.root):
        with _hold_file(warehouse, name, timeout_seconds):
            yield _Unloseable()
    elif has_leases(warehouse.root):
        with _hold_lease(warehouse, name, timeout_seconds) as lease:
            yield lease
    else:
        yield _Unloseable()


@contextmanager
def _hold_file(warehouse: Warehouse, name: str, timeout_seconds: float) -> Iterator[None]:
    path = local_path(warehouse.root) / "_locks" / f"{name.replace('/', '.')}.lock"
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        held = FileLock(path).acquire(timeout=timeout_seconds)
    except Timeout as error:
        raise TableLockedError(
            f"another process has been writing {name} for over {timeout_seconds:.0f} s "
            f"(lock {path}): wait for it or stop it, then run again"
        ) from error
    with held:
        yield


_LEASED: dict[tuple[str, str], threading.Lock] = {}
"""The threads of this process have a lease one at a time."""

_ENTERING = threading.Lock()


@contextmanager
def _hold_lease(warehouse: Warehouse, name: str, timeout_seconds: float) -> Iterator[Lease]:
    with _ENTERING:
        thread = _LEASED.setdefault((warehouse.root, name), threading.Lock())
    if not thread.acquire(timeout=timeout_seconds):
        raise TableLockedError(
            f"another thread of this process has been writing {name} for over "
            f"{timeout_seconds:.0f} s: run again when it is done"
        )
    try:
        lease = take_lease(LeaseObject(warehouse, name), name, timeout_seconds=timeout_seconds)
        try:
            yield lease
        except BaseException:
            with suppress(TableLockedError):  # the first error says more
                lease.release()
            raise
        lease.release()
    finally:
        thread.release()
