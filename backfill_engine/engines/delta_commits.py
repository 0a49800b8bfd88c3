"""Commits of a Delta log that no engine makes: those that only say something."""

import json
import os
import time
import uuid
from pathlib import Path

import obstore
from obstore.exceptions import AlreadyExistsError
from obstore.store import from_url

from backfill_engine.errors import TableError
from backfill_engine.uris import is_local, join_uri, local_path


def write_empty_commit(uri: str, version: int, user_metadata: str) -> None:
    """Writes a commit that changes nothing, as Spark does of a write without rows.

    Args:
        uri: of the table.
        version: of the commit: the one after the newest.
        user_metadata: what the commit carries.

    Raises:
        TableError: if somebody else has made this version meanwhile; nothing was written.
    """
    now = time.time_ns() // 1_000_000
    commit = {
        "inCommitTimestamp": max(now, _read_timestamp(uri, version - 1) + 1),
        "timestamp": now,
        "operation": "WRITE",
        "operationParameters": {"mode": "Append"},
        "isBlindAppend": True,
        "userMetadata": user_metadata,
    }
    content = json.dumps({"commitInfo": commit}).encode() + b"\n"
    if not _create(uri, _name_commit(version), content):
        raise TableError(
            f"DELTA_CONCURRENT_APPEND: another writer has made version {version} of {uri}: run "
            "this again; nothing was written"
        )


def _name_commit(version: int) -> str:
    return f"_delta_log/{version:020}.json"


def _read_timestamp(uri: str, version: int) -> int:
    """Reads the time in a commit, in milliseconds, which those after it must be greater than."""
    if is_local(uri):
        content = local_path(join_uri(uri, _name_commit(version))).read_bytes()
    else:
        content = bytes(obstore.get(from_url(uri), _name_commit(version)).bytes())
    first = json.loads(content.partition(b"\n")[0]).get("commitInfo", {})
    return int(first.get("inCommitTimestamp") or first.get("timestamp") or 0)


def _create(uri: str, name: str, content: bytes) -> bool:
    """Creates a file whole; returns False if it is there."""
    if not is_local(uri):
        try:
            obstore.put(from_url(uri), name, content, mode="create")
        except AlreadyExistsError:
            return False
        return True
    place = Path(local_path(uri), name)
    unfinished = place.with_name(f".{place.name}.{uuid.uuid4().hex}.tmp")
    try:
        unfinished.write_bytes(content)
        os.link(unfinished, place)
    except FileExistsError:
        return False
    finally:
        unfinished.unlink(missing_ok=True)
    return True
