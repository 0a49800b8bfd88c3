"""What may name a file or a folder below the warehouse, and how a person names a run by its id."""

import re
from collections.abc import Iterable

from backfill_engine.errors import HistoryError, SettingsError
from backfill_engine.uris import join_uri

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
        HistoryError: if `wanted` is no whole id and too short to be the beginning of one, or if
            several ids begin with it.
    """
    known = set(ids)
    if wanted in known:
        return wanted
    refuse_short_id(wanted)
    found = sorted(known_id for known_id in known if known_id.startswith(wanted))
    if len(found) > 1:
        raise HistoryError(f"{wanted} is the beginning of {' and '.join(found)}: say more")
    return found[0] if found else None


def refuse_short_id(wanted: str) -> None:
    """Refuses what is too short to name a run or a backfill.

    Raises:
        HistoryError: naming the cure.
    """
    if len(wanted) < _ENOUGH:
        raise HistoryError(
            f"'{wanted}' names no run or backfill: give the whole id, or {_ENOUGH} characters or "
            "more of its beginning (`backfill-assets backfill list` lists backfills, "
            "`backfill-assets history TABLE` the runs of a table)"
        )
