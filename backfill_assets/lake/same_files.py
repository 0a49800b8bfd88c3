"""Finds files that hold the same content under two names, packed or not."""

import hashlib
import zlib
from collections import defaultdict
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from itertools import chain

from backfill_assets.lake.landed_lines import UNREADABLE, read_pieces
from backfill_assets.lake.landing import LandingFile, open_landing_zone
from backfill_assets.uris import is_local, local_path

_PACKED_HEAD, _HEAD = 4096, 1024
_GZIP = 31
_AT_ONCE = 8
"""Files of an object store that are looked into together."""


def find_same_files(files: Iterable[LandingFile]) -> list[tuple[LandingFile, LandingFile]]:
    """Finds each file that holds the same as an earlier one, once both are unpacked.

    Files without a gzip among them are looked into only where sizes are equal. Only those are read
    whole that begin alike. One that can't be read is the same as none.

    Returns:
        Pairs of a file and the first, by name, that holds the same.
    """
    ordered = [file for file in sorted(set(files)) if file.size]
    if any(map(_is_packed, ordered)):
        alike = _split_by_head(ordered)
    else:
        alike = list(chain.from_iterable(map(_split_by_head, _split_by_size(ordered))))
    same: list[tuple[LandingFile, LandingFile]] = []
    for group in alike:
        first: dict[bytes, LandingFile] = {}
        for file in group:
            digest = _hash_content(file)
            earlier = first.setdefault(digest, file) if digest else file
            if earlier is not file:
                same.append((file, earlier))
    return same


def _is_packed(file: LandingFile) -> bool:
    return file.uri.endswith(".gz")


def _split_by_size(files: list[LandingFile]) -> list[list[LandingFile]]:
    by_size: dict[int, list[LandingFile]] = defaultdict(list)
    for file in files:
        by_size[file.size].append(file)
    return [alike for alike in by_size.values() if len(alike) > 1]


def _split_by_head(files: list[LandingFile]) -> list[list[LandingFile]]:
    """Splits files into those that begin alike, and leaves out those that begin as no other."""
    if len(files) < 2:
        return []
    if all(is_local(file.uri) for file in files):
        heads = list(map(_read_head, files))
    else:
        with ThreadPoolExecutor(_AT_ONCE) as threads:
            heads = list(threads.map(_read_head, files))
    by_head: dict[bytes, list[LandingFile]] = defaultdict(list)
    for head, file in zip(heads, files, strict=True):
        by_head[head].append(file)
    return [alike for head, alike in by_head.items() if head and len(alike) > 1]


def _read_head(file: LandingFile) -> bytes:
    """Reads the first bytes of the content; of an empty or unreadable file there are none."""
    try:
        if is_local(file.uri):
            with local_path(file.uri).open("rb", buffering=0) as opened:
                piece = opened.read(_PACKED_HEAD)
        else:
            filesystem, path = open_landing_zone(file.uri)
            with filesystem.open_input_file(path) as source:
                piece = source.read(_PACKED_HEAD)
        if not _is_packed(file):
            return piece[:_HEAD]
        head = b""
        while piece and len(head) < _HEAD:
            member = zlib.decompressobj(_GZIP)
            head += member.decompress(piece, _HEAD - len(head))
            piece = member.unused_data  # of a gzip in pieces: the next one
    except UNREADABLE:
        return b""
    return head


def _hash_content(file: LandingFile) -> bytes:
    digest = hashlib.sha256()
    try:
        for piece in read_pieces(file):
            digest.update(piece)
    except UNREADABLE:
        return b""
    return digest.digest()
