"""Finds files that hold the same content under two names, packed or not."""

import hashlib
import zlib
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import TypeAlias

from backfill_engine.lake.landing import LandingFile, open_landing_zone
from backfill_engine.sources.landed_lines import UNREADABLE, read_pieces
from backfill_engine.uris import is_local, local_path

_PACKED_HEAD, _HEAD = 4096, 1024
_GZIP = 31
_AT_ONCE = 32
"""Files of an object store that are looked into together."""

Pairs: TypeAlias = list[tuple[LandingFile, LandingFile]]
"""Files, each with the first of its group, by name, that holds the same."""


def find_same_in_groups(groups: Iterable[Iterable[LandingFile]]) -> list[Pairs]:
    """Finds, within each group, the files that hold the same as an earlier one, once unpacked.

    Where no file of a group is a gzip, those are looked into whose sizes are equal; else all of
    it. Those are read whole that begin alike. One that can't be read is the same as none.
    """
    alike = [_split_by_size([file for file in sorted(set(group)) if file.size]) for group in groups]
    heads = _read_heads({file for split in alike for files in split for file in files})
    return [[pair for files in split for pair in _compare(files, heads)] for split in alike]


def _is_packed(file: LandingFile) -> bool:
    return file.uri.endswith(".gz")


def _split_by_size(files: list[LandingFile]) -> list[list[LandingFile]]:
    by_size: dict[int, list[LandingFile]] = defaultdict(list)
    are_packed = any(map(_is_packed, files))
    for file in files:
        by_size[0 if are_packed else file.size].append(file)
    return [alike for alike in by_size.values() if len(alike) > 1]


def _read_heads(files: Collection[LandingFile]) -> dict[LandingFile, bytes]:
    if all(is_local(file.uri) for file in files):
        return {file: _read_head(file) for file in files}
    with ThreadPoolExecutor(_AT_ONCE) as threads:
        return dict(zip(files, threads.map(_read_head, files), strict=True))


def _compare(files: list[LandingFile], heads: Mapping[LandingFile, bytes]) -> Pairs:
    same: Pairs = []
    begins, first = Counter(heads[file] for file in files), dict[bytes, LandingFile]()
    for file in files:
        if not heads[file] or begins[heads[file]] == 1:
            continue
        digest = _hash_content(file)
        earlier = first.setdefault(digest, file) if digest else file
        if earlier is not file:
            same.append((file, earlier))
    return same


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
