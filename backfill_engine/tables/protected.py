"""Partitions that no run publishes unless a person says why: declared with their table."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Protected:
    """A range of partitions, or all of a table.

    Attributes:
        reason: why; whoever is refused reads it.
        first: key of the first partition; None for all up to `last`.
        last: key of the last one, included; None for all from `first` on.
    """

    reason: str
    first: str | None = None
    last: str | None = None
