"""What is wrong with files, disks and databases, in one line that names the place and the cure.

The operating system says it, and Arrow, delta-rs, Java and SQLite after it; none of them says what
cures it. What Spark or Dagster say of their own does not belong here.
"""

import errno
import os
import sqlite3
import traceback
from collections.abc import Iterator

_AGAIN = "then run it again"
_CURES = {
    errno.ENOSPC: f"the disk is full: make room, {_AGAIN}",
    errno.EDQUOT: f"this user's quota is used up: make room, {_AGAIN}",
    errno.EFBIG: f"a file may not grow that large: raise `ulimit -f`, {_AGAIN}",
    errno.EROFS: "the disk is read-only: mount it to be written, or set BACKFILL_WAREHOUSE to "
    f"another place, {_AGAIN}",
    errno.EIO: f"the disk does not work: mend it, or restore what was on it elsewhere, {_AGAIN}",
    errno.EACCES: f"this user has no right to a file: give it that, {_AGAIN}",
    errno.EMFILE: f"too many files are open: raise `ulimit -n`, {_AGAIN}",
    errno.EISDIR: f"a folder is in the place of a file: move it away, {_AGAIN}",
    errno.ENOTDIR: f"a file is in the place of a folder: move it away, {_AGAIN}",
    errno.ELOOP: f"symbolic links lead in a circle: mend them, {_AGAIN}",
}
_CURES_BY_NUMBER = {
    # Their words may be part of any sentence.
    errno.EPERM: f"this user has no right to a file: give it that, {_AGAIN}",
    errno.EEXIST: f"a file is in the place of a folder: move it away, {_AGAIN}",
    errno.ENOENT: f"it is gone, or a link leads nowhere: put it back, {_AGAIN}",
}
_DATABASE_CURES = {
    "locked": f"another process keeps it to itself: wait until that is done, {_AGAIN}",
    "full": _CURES[errno.ENOSPC],
    "readonly": f"this user can't write it: give it the right, or mount its disk to be written, "
    f"{_AGAIN}",
    "unable to open": "this user can't open or make it: move away what is in its place, or give it "
    f"the right, {_AGAIN}",
    "disk I/O": f"its disk takes or gives nothing: make room, or mend it, {_AGAIN}",
}
_DAMAGED = (
    "it is damaged: restore it from a copy, or move it away and run `backfill-assets recover`, "
    "which tells Dagster what the tables know"
)
_NO_FOLDER = "No usable temporary directory found"
_LINE_LENGTH = 300


def describe_damage(error: BaseException) -> str | None:
    """Describes in one line what is damaged or lacking, and the cure; None if it is something else.

    Looks at the error and at what it came from, and at what other programs say in their texts.
    """
    for chained in list_chain(error):
        line = _describe_file(chained) or _describe_database(chained, error)
        if line is not None:
            return line
    return None


def list_chain(error: BaseException) -> Iterator[BaseException]:
    """Lists an error and those that it came from."""
    chained: BaseException | None = error
    while chained is not None:
        yield chained
        chained = chained.__cause__ or chained.__context__


def _describe_file(error: BaseException) -> str | None:
    if _NO_FOLDER in str(error):
        return f"{_find_line(str(error), _NO_FOLDER)}: make room there, or set TMPDIR to a folder"
    number = error.errno if isinstance(error, OSError) else None
    cure = {**_CURES, **_CURES_BY_NUMBER}.get(number or 0)
    if cure is not None:
        return f"{_find_line(str(error), os.strerror(number or 0))}: {cure}"
    for number, cure in _CURES.items():
        words = os.strerror(number)
        if words.lower() in str(error).lower():
            return f"{_find_line(str(error), words)}: {cure}"
    return None


def _describe_database(error: BaseException, outermost: BaseException) -> str | None:
    kind = type(error)
    if kind.__module__ == "psycopg2" and kind.__name__ == "OperationalError":
        line = _find_line(str(error), "")
        return f"Dagster's database does not answer ({line}): start it, or mend dagster.yaml"
    if kind not in (sqlite3.DatabaseError, sqlite3.OperationalError):  # others are mistakes in code
        return None
    cures = (cure for words, cure in _DATABASE_CURES.items() if words in str(error))
    return f"{_find_database(outermost)}: {error}: {next(cures, _DAMAGED)}"


def _find_database(error: BaseException) -> str:
    """Finds the file of a database by the calls that failed: SQLite's errors don't name it."""
    from sqlalchemy import Connection, Engine

    for chained in list_chain(error):
        for frame, _ in traceback.walk_tb(chained.__traceback__):
            for value in frame.f_locals.values():
                if isinstance(value, Connection | Engine) and value.engine.url.database:
                    return value.engine.url.database
    return "a database of Dagster"


def _find_line(text: str, words: str) -> str:
    """Finds the first line that holds the words."""
    lines = (line.strip() for line in text.splitlines())
    found = (line for line in lines if line and words.lower() in line.lower())
    return next(found, words)[:_LINE_LENGTH]
