"""The user's cache: files that sessions need, made once for all of a user's processes.

Beside them are seals: what the files were when they were made. A file that is something else now,
such as an empty one after a power cut, is made again.
"""

import hashlib
import json
import os
import stat
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from filelock import FileLock
from platformdirs import user_cache_path

_UNUSED_SECONDS = 30 * 24 * 3600
_LOCK, _SEAL = ".lock", ".seal"


def find_cache() -> Path:
    """Finds the folder of the cache, which need not be there."""
    return user_cache_path("backfill-assets")


def make_once(
    targets: Sequence[Path],
    make: Callable[[Path], object],
    *,
    digests: Mapping[str, str] | None = None,
) -> None:
    """Makes files of one folder, unless they are whole; another process may ask for them too.

    Each comes to its place by a rename, whole and on the disk: what fails or is killed, or a power
    cut, leaves no half of it.

    Args:
        targets: the files; at least one.
        make: makes them, by their names, in an empty folder that it is given. What it doesn't make
            stays absent.
        digests: SHA-256 by name, where they are known beforehand: such files need no seal.
    """
    if are_whole(targets):
        return
    first = targets[0]
    first.parent.mkdir(parents=True, exist_ok=True)
    with (
        FileLock(first.with_suffix(_LOCK)),
        tempfile.TemporaryDirectory(dir=first.parent) as scratch,
    ):
        if are_whole(targets):
            return
        if not digests or any(_hash(target) != digests[target.name] for target in targets):
            make(Path(scratch))
            for target in targets:
                made = Path(scratch, target.name)
                if made.exists():
                    _sync(made)
                    made.rename(target)
        _seal(targets, Path(scratch))


def are_whole(targets: Sequence[Path]) -> bool:
    """Tells whether files of the cache are there, as they were made.

    A file is, if it has its size and time, or else its hash.
    """
    try:
        seals = json.loads(targets[0].with_suffix(_SEAL).read_text())
        return all(_is_whole(target, seals[target.name]) for target in targets)
    except (OSError, ValueError, KeyError, TypeError):  # no seal, or none that is whole
        return False


def note_use(target: Path) -> None:
    """Notes that a file of the cache is used now, if it is there, so that it is kept."""
    with suppress(OSError):  # of another user it may be read, and not touched
        os.utime(target.with_suffix(_LOCK))


def remove_unused(folder: Path, pattern: str) -> None:
    """Removes files for which `note_use` was not called for 30 days; who made them may be gone.

    Args:
        folder: where they are.
        pattern: of their names.
    """
    oldest = time.time() - _UNUSED_SECONDS
    for file in folder.glob(pattern):
        lock = file.with_suffix(_LOCK)
        with suppress(OSError):  # another process may remove it too, or still have it open
            if lock.stat().st_mtime < oldest:
                for unused in (file, file.with_suffix(_SEAL), lock):
                    unused.unlink(missing_ok=True)


def _is_whole(target: Path, seal: Mapping[str, object]) -> bool:
    found = target.stat()
    if not stat.S_ISREG(found.st_mode) or found.st_size != seal["size"]:
        return False
    return found.st_mtime_ns == seal["time"] or _hash(target) == seal["sha256"]


def _seal(targets: Sequence[Path], scratch: Path) -> None:
    """Writes down what files are; not if one of them is absent."""
    if not all(target.exists() for target in targets):
        return
    seals = {
        target.name: {
            "sha256": _hash(target),
            "size": target.stat().st_size,
            "time": target.stat().st_mtime_ns,
        }
        for target in targets
    }
    place = targets[0].with_suffix(_SEAL)
    made = scratch / place.name
    made.write_text(json.dumps(seals))
    _sync(made)
    made.rename(place)
    _sync(place.parent)


def _hash(target: Path) -> str | None:
    """Returns the SHA-256 of a file; None if there is none."""
    if not target.is_file():
        return None
    with target.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _sync(path: Path) -> None:
    """Waits until a file, or what a folder lists, is on the disk."""
    opened = os.open(path, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
