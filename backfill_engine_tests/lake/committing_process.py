"""A process of its own that commits as Delta's JVM does on S3: looks, and then puts.

Arguments: warehouse root, own name, number of commits, whether to hold the lock. It waits for a
line on stdin before it begins, and prints the versions that it made, one a line.
"""

import random
import sys
import time
from contextlib import nullcontext

import obstore
from obstore.store import from_url

from backfill_engine.lake.locks import hold_lock
from backfill_engine.lake.warehouse import Warehouse

NAME = "raw/racing"
_LONGEST_WORK_SECONDS = 0.05  # between commits, so that the other process has its turn


def commit_versions(root: str, writer: str, commits: int, *, locked: bool) -> list[int]:
    """Makes so many commits, each of the version after the newest, and returns their versions."""
    warehouse, store = Warehouse(root), from_url(root)
    made = list[int]()
    version = 0
    while len(made) < commits:
        time.sleep(random.uniform(0, _LONGEST_WORK_SECONDS))
        with hold_lock(warehouse, NAME) if locked else nullcontext() as lock:
            while _is_there(store, version):
                version += 1
            if lock is not None:
                lock.check()
            obstore.put(store, name_commit(version), f"{writer} {len(made)}".encode())
            made.append(version)
    return made


def name_commit(version: int) -> str:
    """Where the commit of a version is, as Delta names them."""
    return f"racing/{version:020}.json"


def _is_there(store: obstore.store.ObjectStore, version: int) -> bool:
    try:
        obstore.head(store, name_commit(version))
    except FileNotFoundError:
        return False
    return True


if __name__ == "__main__":
    root, name, number, with_lock = sys.argv[1:]
    sys.stdin.readline()
    for version in commit_versions(root, name, int(number), locked=with_lock == "locked"):
        sys.stdout.write(f"{version}\n")
