"""A statement of a certificate, and whether it holds."""

from collections.abc import Sequence
from dataclasses import dataclass

_LISTED = 10


@dataclass(frozen=True)
class VerifiedLine:
    """One statement of a certificate.

    Attributes:
        statement: what it says.
        holds: whether it still does; None if that can't be told any more.
        found: what was found instead, or what has come since; empty if there is nothing to say.
    """

    statement: str
    holds: bool | None
    found: str = ""


def shorten(texts: Sequence[str]) -> str:
    """Lists a few of many."""
    listed = ", ".join(texts[:_LISTED])
    return listed if len(texts) <= _LISTED else f"{listed} and {len(texts) - _LISTED} more"
