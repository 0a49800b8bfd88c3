"""One writer at a time per local table.

On a local disk Delta's commit is not exclusive across processes: Hadoop's LocalFileSystem has no
atomic "create if absent", so two JVMs can both be told that they wrote the same version. A lock
file closes that gap; the operating system frees it when its process dies. Object stores have
exclusive commits of their own.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from filelock import FileLock, Timeout

from backfill_assets.errors import TableLockedError
from backfill_assets.lake.warehouse import Warehouse
from backfill_assets.uris import is_local, local_path

_PATIENCE_SECONDS = 1800.0


@contextmanager
def hold_lock(
    warehouse: Warehouse, name: str, *, timeout_seconds: float = _PATIENCE_SECONDS
) -> Iterator[None]:
    """Holds the lock of one Delta table of the warehouse while commits are read and written.

    Who holds it already may hold it again.

    Args:
        warehouse: where the table is.
        name: the table's key, or another name of its own.
        timeout_seconds: how long to wait for another process.

    Raises:
        TableLockedError: if another process keeps it for longer than `timeout_seconds`.
    """
    if not is_local(warehouse.root):
        yield
        return
    path = local_path(warehouse.root) / "_locks" / f"{name.replace('/', '.')}.lock"
    path.parent.mkdir(parents=True, exist_ok=True)
    lock = FileLock(path, is_singleton=True)
    try:
        lock.acquire(timeout=timeout_seconds)
    except Timeout as error:
        raise TableLockedError(
            f"another process has been writing {name} for over {timeout_seconds:.0f} s "
            f"(lock {path}): wait for it or stop it, then run again"
        ) from error
    try:
        yield
    finally:
        lock.release()
