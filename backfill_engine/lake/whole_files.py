"""Files of lines that tell whether they are whole: what lies beside the tables, written by us.

The first line counts the others and has their hash. A file that is cut off anywhere, or changed,
counts as damaged, never as a shorter one. Nobody sees a file half-written.
"""

import hashlib
import json
import os
import uuid
from collections.abc import Sequence

from pyarrow import fs

from backfill_engine.lake.filesystems import open_filesystem
from backfill_engine.uris import is_local


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
