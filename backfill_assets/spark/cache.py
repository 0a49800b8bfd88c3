"""The user's cache: files that sessions need, made once for all of a user's processes."""

import os
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from filelock import FileLock
from platformdirs import user_cache_path

_UNUSED_SECONDS = 30 * 24 * 3600


def find_cache() -> Path:
    """Finds the folder of the cache, which need not be there."""
    return user_cache_path("backfill-assets")


def make_once(targets: Sequence[Path], make: Callable[[Path], None]) -> None:
    """Makes files of one folder, unless they are there; another process may ask for them too.

    Each comes to its place by a rename, whole: what fails or is killed leaves no half of it.

    Args:
        targets: the files; at least one.
        make: makes them, by their names, in an empty folder that it is given. What it doesn't make
            stays absent.
    """
    if _are_there(targets):
        return
    first = targets[0]
    first.parent.mkdir(parents=True, exist_ok=True)
    with (
        FileLock(first.with_suffix(".lock")),
        tempfile.TemporaryDirectory(dir=first.parent) as scratch,
    ):
        if _are_there(targets):
            return
        make(Path(scratch))
        for target in targets:
            made = Path(scratch, target.name)
            if made.exists():
                made.rename(target)


def note_use(target: Path) -> None:
    """Notes that a file of the cache is used now, if it is there, so that it is kept."""
    with suppress(OSError):  # of another user it may be read, and not touched
        os.utime(target)


def remove_unused(folder: Path, pattern: str) -> None:
    """Removes files for which `note_use` was not called for 30 days; who made them may be gone.

    Args:
        folder: where they are.
        pattern: of their names.
    """
    oldest = time.time() - _UNUSED_SECONDS
    for file in folder.glob(pattern):
        with suppress(OSError):  # another process may remove it too, or still have it open
            if file.stat().st_mtime < oldest:
                file.unlink()
                file.with_suffix(".lock").unlink(missing_ok=True)


def _are_there(targets: Sequence[Path]) -> bool:
    return all(target.exists() for target in targets)
