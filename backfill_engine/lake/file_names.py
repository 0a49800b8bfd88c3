"""What may name a file or a folder below the warehouse."""

import re

from backfill_engine.errors import SettingsError
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
