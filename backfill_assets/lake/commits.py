"""The audit record that every commit carries in its `userMetadata`."""

import dataclasses
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class WriteMode(StrEnum):
    """How a commit came by the rows of its partitions."""

    OVERWRITE = "overwrite"
    """Computed from the inputs."""
    MERGE = "merge"
    """Computed from the inputs, beside rows of other natural keys that were there and stay."""
    APPEND_ONCE = "append_once"
    """A batch computed from the inputs, beside all rows that were there."""
    ROLLBACK = "rollback"
    """A person took them back to an earlier version."""
    TAKE_BACK = "take_back"
    """A run took back what it had just published and could not read as it was audited."""


@dataclass(frozen=True)
class CommitRecord:
    """What a commit published, from what, by which code.

    Attributes:
        commit_id: unique for each attempt to publish; finds the commit in the log again.
        run_id: the Dagster run.
        asset_key: `layer/name`.
        partition_start: first partition key published.
        partition_end: last partition key published.
        code_version: hash of the transform's source, the table declaration and the lock.
        input_versions: Delta version per input table; for the landing zone, a fingerprint of the
            files.
        write_mode: how the partitions were written.
        predicate: the rows that the commit replaced.
        rows: rows per partition key; its keys are exactly the partitions replaced.
        checksums: content checksum per partition key.
        profiles: per partition key, what later partitions are compared with.
        accepted: failed checks that a person let pass: check, partition and reason of each.
        row_filter: the run's filter of what was computed; empty if none.
        batches: of an append, the batch by partition key.
    """

    commit_id: str
    run_id: str
    asset_key: str
    partition_start: str
    partition_end: str
    code_version: str
    input_versions: Mapping[str, int | str]
    write_mode: str
    predicate: str
    rows: Mapping[str, int]
    checksums: Mapping[str, str]
    profiles: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    accepted: Sequence[Mapping[str, str]] = ()
    row_filter: str = ""
    batches: Mapping[str, str] = field(default_factory=dict)

    def to_json(self) -> str:
        """One line of JSON, keys in field order."""
        return json.dumps(dataclasses.asdict(self), separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str | None) -> "CommitRecord | None":
        """The record, or None for a commit that isn't this project's (maintenance, or by hand)."""
        try:
            fields: Any = json.loads(text or "")
            known = {name: fields[name] for name in _FIELD_NAMES if name in fields}
            return cls(**{**known, "accepted": tuple(known.get("accepted", ()))})
        except (ValueError, TypeError, KeyError):
            return None


_FIELD_NAMES = tuple(field.name for field in dataclasses.fields(CommitRecord))
