"""Reads landed lines without Spark: whether a file can be read at all, and what it holds."""

import gzip
import os
import zlib
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from urllib.parse import unquote

from pyarrow import NativeFile

from backfill_engine.lake.landing import LandingFile, open_landing_zone

UNREADABLE = (OSError, EOFError, zlib.error)
"""What reading a file ends with that is broken."""

_PIECE = 1 << 20
_GZIP, _GZIP_MAGIC = 31, b"\x1f\x8b"
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def find_broken_files(files: Collection[LandingFile], error: str) -> dict[LandingFile, str]:
    """Finds the files that can't be read, and why, by reading all of them.

    Args:
        files: which.
        error: Spark's message, which may name one that can be read here, and not by Spark.
    """
    named = find_named_files(files, error)
    found = {file: find_fault(file) for file in files}
    found |= {file: "can't be read by Spark" for file in named if not found[file]}
    return {file: fault for file, fault in found.items() if fault}


def find_named_files(files: Collection[LandingFile], error: str) -> set[LandingFile]:
    """Finds the files that a message names, percent-encoded or not."""
    text = unquote(error)
    named = [file for file in files if file.uri in text]
    # `a.json` is in `a.json.gz`; were both meant, the next message would name the other.
    longer = [file.uri for file in named]
    return {
        file
        for file in named
        if not any(uri != file.uri and uri.startswith(file.uri) for uri in longer)
    }


def find_fault(file: LandingFile) -> str:
    """Finds why a file can't be read to its end, after its name; empty if it can."""
    try:
        filesystem, path = open_landing_zone(file.uri)
        with filesystem.open_input_file(path) as source:
            if file.uri.endswith(".gz"):
                return _find_gzip_fault(source)
            while source.read(_PIECE):
                pass
    except OSError as error:
        return f"can't be read ({os.strerror(error.errno) if error.errno else error})"
    except zlib.error as error:
        return f"can't be read: it is no whole gzip ({error})"
    return ""


def _find_gzip_fault(source: NativeFile) -> str:
    """Finds what Hadoop's reader stumbles over, which Python's may pass over.

    Raises:
        zlib.error: if it is no gzip.
    """
    member = zlib.decompressobj(_GZIP)
    while piece := source.read(_PIECE):
        while piece:
            if member.eof:
                member = zlib.decompressobj(_GZIP)
                if not _GZIP_MAGIC.startswith(piece[:2]):
                    return "can't be read: bytes that are no gzip follow its end"
            member.decompress(piece, _PIECE)
            piece = member.unconsumed_tail or member.unused_data
    if not member.eof:
        return "can't be read: it is cut off"
    return ""


def count_lines(file: LandingFile) -> int:
    r"""Counts the lines that aren't blank, as Spark splits and sees them.

    Lines end with `\n`, `\r` or both; blank is what has only ASCII white space, as for Java's `\S`.

    Raises:
        OSError, EOFError, zlib.error: if the file can't be read; see `UNREADABLE`.
    """
    count, rest = 0, b""
    for number, piece in enumerate(read_pieces(file)):
        if number == 0:
            piece = piece.removeprefix(_BYTE_ORDER_MARK)
        # The last one may go on in the next piece, also behind its `\r`.
        *lines, rest = (rest + piece).splitlines(keepends=True) or [b""]
        count += sum(map(bool, map(bytes.strip, lines)))
    return count + bool(rest.strip())


def read_pieces(file: LandingFile) -> Iterator[bytes]:
    """Reads a file piece by piece, unpacked.

    Raises:
        OSError, EOFError, zlib.error: if the file can't be read; see `UNREADABLE`.
    """
    with _open(file) as content:
        while piece := content.read(_PIECE):
            yield piece


@contextmanager
def _open(file: LandingFile) -> Iterator[gzip.GzipFile | NativeFile]:
    filesystem, path = open_landing_zone(file.uri)
    with filesystem.open_input_file(path) as source:
        if file.uri.endswith(".gz"):
            with gzip.open(source) as content:
                yield content
        else:
            yield source
