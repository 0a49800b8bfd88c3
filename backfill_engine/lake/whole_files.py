"""Files beside the tables, written by us: how they may be called, and whether they are whole.

The first line counts the others and has their hash. A file that is cut off anywhere, or changed,
counts as damaged, never as a shorter one. Nobody sees a file half-written. Runs name files and
folders, so that how a person names a run by its id is here, too.
"""

import hashlib
import json
import os
import re
import uuid
from collections.abc import Iterable, Sequence

from pyarrow import fs

from backfill_engine.errors import SettingsError, UnknownRunError
from backfill_engine.filesystems import open_filesystem
from backfill_engine.uris import is_local, join_uri

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,199}")


def is_file_name(text: str) -> bool:
    """Tells whether a text may name a file: it leads to no other folder, on any file system."""
    return _NAME.fullmatch(text) is not None


def check_file_name(text: str, what: str) -> str:
    """Returns a text that may name a file.

    Args:
        text: the name.
        what: what it is, in words, for the error.

    Raises:
        SettingsError: if it may not.
    """
    if is_file_name(text):
        return text
    raise SettingsError(
        f"{what} is {text[:100]!r}, which can't name a file: give up to 200 letters (a to z), "
        "digits, and '_', '-' or '.' after the first; nothing was written"
    )


def join_names(root: str, *names: str) -> str:
    """Appends names of folders, and of a file, to a place of ours.

    Raises:
        SettingsError: if one of them may not name a file.
    """
    return join_uri(root, *(check_file_name(name, "the name of a file") for name in names))


_ENOUGH = 8
"""Characters; as many as a backfill's whole id has, and as Dagster shows of a run's."""


def find_id(wanted: str, ids: Iterable[str]) -> str | None:
    """Finds the id that is `wanted`, or else the one that begins with it; None if there is none.

    Raises:
        UnknownRunError: if `wanted` is no whole id and too short to be the beginning of one, or if
            several ids begin with it.
    """
    known = set(ids)
    if wanted in known:
        return wanted
    refuse_short_id(wanted)
    found = sorted(known_id for known_id in known if known_id.startswith(wanted))
    if len(found) > 1:
        raise UnknownRunError(f"{wanted} is the beginning of {' and '.join(found)}: say more")
    return found[0] if found else None


def refuse_short_id(wanted: str) -> None:
    """Refuses what is too short to name a run or a backfill.

    Raises:
        UnknownRunError: naming the cure.
    """
    if len(wanted) < _ENOUGH:
        raise UnknownRunError(
            f"'{wanted}' names no run or backfill: give the whole id, or {_ENOUGH} characters or "
            "more of its beginning (`backfill-assets backfill list` lists backfills, "
            "`backfill-assets history TABLE` the runs of a table)"
        )


def write_whole_file(place: str, lines: Sequence[bytes]) -> None:
    """Writes a file of lines, none of which contains a newline, in place of the one before."""
    body = b"".join(line + b"\n" for line in lines)
    write_file(place, _build_header(len(lines), body) + body)


def read_whole_file(place: str) -> list[bytes]:
    """Reads the lines of a file that `write_whole_file` wrote.

    Raises:
        FileNotFoundError: if it is not there.
        ValueError: if it isn't as it was written.
    """
    filesystem, path = open_filesystem(place)
    with filesystem.open_input_file(path) as file:
        header, newline, body = file.read().partition(b"\n")
    lines = body.split(b"\n")[:-1]
    if header + newline != _build_header(len(lines), body):
        raise ValueError(f"{place} is cut off or was edited")
    return lines


def write_file(place: str, content: bytes) -> None:
    """Writes a file in place of the one before: after a power cut it is the old or the new one."""
    filesystem, path = open_filesystem(place)
    filesystem.create_dir(path.rpartition("/")[0], recursive=True)
    if not is_local(place):  # an object store shows nobody half an object
        with filesystem.open_output_stream(path) as out:
            out.write(content)
        return
    unfinished = f"{path}.{uuid.uuid4().hex}.unfinished"
    try:
        with open(unfinished, "xb") as out:  # noqa: PTH123 (Arrow's files can't be synced)
            out.write(content)
            out.flush()
            os.fsync(out.fileno())
        filesystem.move(unfinished, path)
    except OSError:
        if filesystem.get_file_info(unfinished).type is fs.FileType.File:
            filesystem.delete_file(unfinished)
        raise


def _build_header(count: int, body: bytes) -> bytes:
    digest = hashlib.sha256(body).hexdigest()
    return json.dumps({"lines": count, "sha256": digest}).encode() + b"\n"
