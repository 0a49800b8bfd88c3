"""Opens Delta logs with delta-rs: milliseconds, no JVM; what can't be read is an error by its name.

delta-rs says that a file is cut off, but not which. Where it can't open a log, its files are looked
at one by one.
"""

import json
import os
import re
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable, QueryBuilder
from deltalake.exceptions import DeltaError
from pyarrow import fs

from backfill_engine.errors import TableError
from backfill_engine.filesystems import open_filesystem
from backfill_engine.uris import is_local, local_path

_ANSI = re.compile(r"\x1b\[[0-9;]*m")
_CAUSE_LENGTH = 200
_STORE_CODE = re.compile(r"<Code>(\w+)</Code>")  # S3's answer, behind a URL of any length
_HINT = "_last_checkpoint"


def has_log(uri: str) -> bool:
    """Tells whether there is a Delta table.

    Raises:
        TableError: if that can't be told: the storage doesn't answer, or something else is in the
            log's place.
    """
    try:
        if DeltaTable.is_deltatable(uri):
            return True
        if is_local(uri):
            # To delta-rs a folder that it may not read looks like one that isn't there.
            os.scandir(local_path(uri) / "_delta_log").close()
    except FileNotFoundError:
        return False
    except (OSError, DeltaError) as error:
        raise TableError(
            f"the log of {uri} can't be looked for ({shorten_cause(error)}): make its storage "
            "answer, and this user read it"
        ) from error
    return False


def open_log(uri: str, *, version: int | None = None) -> DeltaTable:
    """Opens the log of a Delta table, which must exist.

    Args:
        uri: where the table is.
        version: the newest version to know of; None for all.

    Raises:
        TableError: if a file of the log is broken, or the storage doesn't answer.
        DeltaError: if the log no longer has `version`.
    """
    try:
        return DeltaTable(uri, version=version)
    except (OSError, DeltaError) as error:
        fault = _find_fault(uri)
        if fault is None and version is not None and isinstance(error, DeltaError):
            raise
        raise describe_unreadable(uri, fault or shorten_cause(error)) from error


def describe_unreadable(uri: str, fault: str) -> TableError:
    """Builds the error of a log in which something is wrong, and that names the cure."""
    cure = (
        f"delete {_HINT}, which is a hint only"
        if fault.startswith(_HINT)
        else "restore it from a copy of the table"
    )
    return TableError(f"the log of {uri} can't be read: {fault}: {cure}")


def shorten_cause(error: Exception) -> str:
    """Makes one line of what a library says of an error, which may go on for many."""
    answer = _STORE_CODE.search(str(error))
    if answer:
        return f"the store answers {answer[1]}"
    lines = (_ANSI.sub("", line).strip(" ↳\t") for line in str(error).splitlines())
    readable = [line for line in lines if line and "<unknown>" not in line]
    return " - ".join(readable)[:_CAUSE_LENGTH] or type(error).__name__


def _find_fault(uri: str) -> str | None:
    """Finds the first file of the log that is broken, and says how; None if none is."""
    filesystem, base = open_filesystem(uri)
    try:
        listed = filesystem.get_file_info(fs.FileSelector(f"{base}/_delta_log"))
        names = sorted(info.base_name for info in listed if info.is_file)
        for name in names:
            fault = _look_at(filesystem, f"{base}/_delta_log/{name}", name)
            if fault:
                return fault
    except FileNotFoundError:
        return None
    except OSError as error:
        return shorten_cause(error)
    versions = [int(name[:20]) for name in names if re.fullmatch(r"\d{20}\.json", name)]
    for before, after in pairwise(versions):
        if after != before + 1:
            return f"{before + 1:020}.json is gone"
    left = [int(name[:20]) for name in names if re.fullmatch(r"\d{20}\.crc", name)]
    if max(left, default=-1) > max(versions, default=-1):
        return f"{max(left):020}.json is gone, whose checksum file is left"
    if _HINT in names and not any(".checkpoint." in name for name in names):
        return f"{_HINT} names a checkpoint that is gone"
    return None


def _look_at(filesystem: fs.FileSystem, path: str, name: str) -> str | None:
    with filesystem.open_input_file(path) as file:
        try:
            if name.endswith(".parquet"):
                pq.ParquetFile(file)
            elif name.endswith(".json") and not name.startswith("."):
                lines = file.read().splitlines()
                if not lines:
                    return f"{name} is empty"
                for line in lines:
                    json.loads(line)
        except (ValueError, pa.ArrowException) as error:
            return f"{name} is cut off or overwritten ({shorten_cause(error)})"
    return None


_READER_SETTINGS = {"datafusion.execution.parquet.coerce_int96": "us"}  # as Spark writes times


def query_rows(table: DeltaTable, name: str, sql: str) -> list[dict[str, Any]]:
    """Reads all rows that a query answers, by column.

    By DataFusion: Arrow's own reader keeps threads that now and then abort a process at its end.

    Args:
        table: a snapshot.
        name: what the query calls it.
        sql: the query.

    Raises:
        DeltaError, OSError, ArrowException: if a data file can't be read.
    """
    found = QueryBuilder(_READER_SETTINGS).register(name, table).execute(sql)
    return pa.RecordBatchReader.from_stream(found).read_all().to_pylist()
