"""In what the input of a partition, or its code, is another one than when it was published.

And why a person lets the code be another one.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar

from backfill_engine.lake.commits import RESTORED, Consumed, Publish
from backfill_engine.publishing.hooks import PublishHook
from backfill_engine.publishing.results import PartitionResult

NEW_CODE = "new_code"
"""Feature of a publish: why it went by other code or options than its backfill before it."""

_LISTED = 3


@dataclass(frozen=True)
class NewCodeHook(PublishHook):
    """Keeps why a run goes by other code or options than the runs of its backfill before it.

    Attributes:
        reason: a person's.
    """

    name: ClassVar[str] = NEW_CODE
    reason: str

    def describe(self) -> str:
        """Describes why."""
        return self.reason


def list_differences(before: Publish, now: Consumed, *, code_version: str) -> list[str]:
    """Lists in words what differs; nothing where input and code are the same.

    Args:
        before: the partition's last publish.
        now: what it would be, or was, computed from.
        code_version: by what.
    """
    differences = [*_compare_landed(before.consumed, now)]
    for table, window in now.upstream.items():
        then = before.consumed.upstream.get(table, {})
        if then and (changed := [key for key in window if window[key] != then.get(key)]):
            listed = ", ".join(changed[:_LISTED])
            more = f" and {len(changed) - _LISTED} more" if len(changed) > _LISTED else ""
            differences.append(f"{table} {listed}{more} changed")
    if before.record.code_version != code_version:
        differences.append("the code changed")
    return differences


def explain_change(before: Publish | None, result: PartitionResult, *, code_version: str) -> str:
    """Says why a published partition that was final holds other contents than before.

    Empty if it doesn't, or came back by a rollback. One that was provisional was announced to
    change.

    Args:
        before: its publish before; None if there was none.
        result: of the partition, published.
        code_version: what it was computed by.
    """
    if before is None or before.checksum == result.measures.checksum:
        return ""
    if before.key in before.record.provisional or not result.is_written or RESTORED in result.notes:
        return ""
    reasons = list_differences(before, result.consumed, code_version=code_version)
    if not reasons:
        reasons = _compare_versions(before.record.input_versions, result.input_versions)
    return "; ".join(reasons) or "computed otherwise: another write mode, filter or acceptance"


def _compare_versions(before: Mapping[str, int | str], now: Mapping[str, int | str]) -> list[str]:
    """Compares versions of inputs, for rows that are read beyond the window of the mapping."""
    return [
        f"rows for it moved in {table}, version {before[table]} to {version}"
        for table, version in now.items()
        if table in before and isinstance(version, int) and before[table] != version
    ]


def _compare_landed(before: Consumed, now: Consumed) -> Iterator[str]:
    if before.landed is None or now.landed is None:
        return
    if before.landed.fingerprint != now.landed.fingerprint:
        then, files = before.landed.files, now.landed.files
        if not then and not files:
            yield "its source changed"
            return
        counts = "" if then == files else f": {then} then, {files} now"
        yield f"its landed files changed{counts}"
