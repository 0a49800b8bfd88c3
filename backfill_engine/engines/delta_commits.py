"""Commits of a Delta log that an engine doesn't make: without rows, or of new columns.

By Delta's protocol a commit is one file of actions, which is there or isn't.
"""

import json
import os
import time
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import obstore
from deltalake import DeltaTable
from obstore.exceptions import AlreadyExistsError
from obstore.store import from_url

from backfill_engine.errors import TableError
from backfill_engine.uris import is_local, join_uri, local_path


def write_empty_commit(uri: str, user_metadata: str) -> None:
    """Writes a commit that changes nothing, as Spark does of a write without rows.

    Args:
        uri: of the table.
        user_metadata: what the commit carries.

    Raises:
        TableError: if somebody else has made this version meanwhile; nothing was written.
    """
    info = {
        "operation": "WRITE",
        "operationParameters": {"mode": "Append"},
        "isBlindAppend": True,
        "userMetadata": user_metadata,
    }
    _write(DeltaTable(uri), uri, info)


def write_new_columns(uri: str, fields: Sequence[Mapping[str, Any]]) -> None:
    """Writes a commit that adds columns, null in all rows that are there.

    Args:
        uri: of the table, without column mapping.
        fields: the columns, as Delta's schemas have them.

    Raises:
        TableError: as `write_empty_commit`.
    """
    table = DeltaTable(uri)
    stored, schema = table.metadata(), json.loads(table.schema().to_json())
    schema["fields"].extend(fields)
    metadata = {
        "id": str(stored.id),
        "name": stored.name,
        "description": stored.description,
        "format": {"provider": "parquet", "options": {}},
        "schemaString": json.dumps(schema),
        "partitionColumns": stored.partition_columns,
        "configuration": stored.configuration,
        "createdTime": stored.created_time,
    }
    info = {"operation": "ADD COLUMNS", "operationParameters": {"columns": json.dumps(fields)}}
    _write(table, uri, info, {"metaData": metadata})


def _write(
    table: DeltaTable, uri: str, info: Mapping[str, Any], *actions: Mapping[str, Any]
) -> None:
    version, now = table.version() + 1, time.time_ns() // 1_000_000
    # In a table that has times in its commits, each is later than the one before.
    times = {"inCommitTimestamp": max(now, _read_timestamp(uri, version - 1) + 1)}
    first = {"commitInfo": {**times, "timestamp": now, **info}}
    content = "".join(f"{json.dumps(action)}\n" for action in (first, *actions)).encode()
    if not _create(uri, _name_commit(version), content):
        raise TableError(
            f"another writer has made version {version} of {uri}: run this again; nothing was "
            "written"
        )


def _name_commit(version: int) -> str:
    return f"_delta_log/{version:020}.json"


def _read_timestamp(uri: str, version: int) -> int:
    """Reads the time of a commit, in milliseconds."""
    if is_local(uri):
        content = local_path(join_uri(uri, _name_commit(version))).read_bytes()
    else:
        content = bytes(obstore.get(from_url(uri), _name_commit(version)).bytes())
    info = json.loads(content.partition(b"\n")[0]).get("commitInfo", {})
    return int(info.get("inCommitTimestamp") or info.get("timestamp") or 0)


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
