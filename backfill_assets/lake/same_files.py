"""Finds files that hold the same bytes under two names."""

import hashlib
from collections import defaultdict
from collections.abc import Iterable

from backfill_assets.errors import LandingError
from backfill_assets.lake.landing import LandingFile, open_landing_zone

_PIECE = 1 << 20
_GZIP_TRAILER = 8


def find_same_files(files: Iterable[LandingFile]) -> list[tuple[LandingFile, LandingFile]]:
    """Finds each file that holds the same as an earlier one.

    Only files of equal size are looked into: of a gzip file the last bytes, which are a checksum
    and the length of its content; of any other all.

    Returns:
        Pairs of a file and the first, by name, that holds the same.

    Raises:
        LandingError: if one can't be read.
    """
    by_size: dict[tuple[int, bool], list[LandingFile]] = defaultdict(list)
    for file in sorted(set(files)):
        if file.size:
            by_size[file.size, file.uri.endswith(".gz")].append(file)
    same: list[tuple[LandingFile, LandingFile]] = []
    for alike in by_size.values():
        if len(alike) == 1:
            continue
        first: dict[bytes, LandingFile] = {}
        for file in alike:
            earlier = first.setdefault(_read_digest(file), file)
            if earlier is not file:
                same.append((file, earlier))
    return same


def _read_digest(file: LandingFile) -> bytes:
    filesystem, path = open_landing_zone(file.uri)
    try:
        with filesystem.open_input_file(path) as source:
            if file.uri.endswith(".gz"):
                source.seek(max(0, file.size - _GZIP_TRAILER))
                return source.read(_GZIP_TRAILER)
            digest = hashlib.sha256()
            while piece := source.read(_PIECE):
                digest.update(piece)
            return digest.digest()
    except OSError as error:
        raise LandingError(
            f"can't read {file.uri}: {error}; nothing was written: run this again"
        ) from error
