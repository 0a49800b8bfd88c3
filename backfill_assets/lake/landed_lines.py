"""Reads landed lines without Spark: whether a file can be read at all, and what it holds."""

import gzip
import zlib
from collections.abc import Iterator
from contextlib import contextmanager

from pyarrow import NativeFile

from backfill_assets.lake.landing import LandingFile, open_landing_zone

UNREADABLE = (OSError, EOFError, zlib.error)
"""What reading a file ends with that is broken."""

_PIECE = 1 << 20
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def is_broken(file: LandingFile) -> bool:
    """Tells whether a compressed file doesn't decompress."""
    if not file.uri.endswith(".gz"):
        return False
    try:
        for _ in _read_pieces(file):
            pass
    except UNREADABLE:
        return True
    return not file.size


def count_lines(file: LandingFile) -> int:
    r"""Counts the lines that aren't blank, as Spark splits and sees them.

    Lines end with `\n`, `\r` or both; blank is what has only ASCII white space, as for Java's `\S`.

    Raises:
        OSError, EOFError, zlib.error: if the file can't be read; see `UNREADABLE`.
    """
    count, rest = 0, b""
    for number, piece in enumerate(_read_pieces(file)):
        if number == 0:
            piece = piece.removeprefix(_BYTE_ORDER_MARK)
        # The last one may go on in the next piece, also behind its `\r`.
        *lines, rest = (rest + piece).splitlines(keepends=True) or [b""]
        count += sum(map(bool, map(bytes.strip, lines)))
    return count + bool(rest.strip())


def _read_pieces(file: LandingFile) -> Iterator[bytes]:
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
