"""Says what is known of the files that a partition is computed from. It is pure data."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Landed:
    """What the landing zone holds of one partition, beside its records.

    Attributes:
        evidence: what says that it is meant to have no records, in words; empty where nothing does.
        lack: why it may have none without that being meant, in words, where there is no evidence.
        cure: what would be evidence, in words.
        not_read: what lies there and isn't read, each with the reason.
        repeated: files that hold the same content as another, each with that.
        unfinished: why more of it is yet to land; empty if it is all there.
        bytes: of its files, by suffix; only of files that are wholly the partition's.
    """

    evidence: str = ""
    lack: str = ""
    cure: str = ""
    not_read: tuple[str, ...] = ()
    repeated: tuple[str, ...] = ()
    unfinished: str = ""
    bytes: Mapping[str, int] = field(default_factory=dict)

    @property
    def why_empty(self) -> str:
        """Why there are no records any more: the evidence; else what is lacking, and the cure."""
        accept = "or accept partition_is_complete with a reason"
        return self.evidence or f"{self.why_never_landed}, {accept}"

    @property
    def why_never_landed(self) -> str:
        """Why nothing was ever consumed: what is lacking, and the cure."""
        not_read = f" ({list_some(self.not_read)})" if self.not_read else ""
        return f"{self.lack}{not_read}: {self.cure}"


def list_some(names: tuple[str, ...] | list[str], most: int = 10) -> str:
    """Joins names for a message; of very many the first, and how many more there are."""
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
