"""In what the input of a partition, or its code, is another one than when it was published."""

from collections.abc import Iterable, Iterator, Mapping

from backfill_assets.lake.commits import Publish
from backfill_assets.lake.consumed import Consumed
from backfill_assets.lake.table_log import TableLog
from backfill_assets.publishing.results import PartitionResult

_LISTED = 3


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


def describe_changed_finals(
    before: TableLog, results: Iterable[PartitionResult], *, code_version: str
) -> dict[str, str]:
    """Says why published partitions that were final hold other contents than before, by key.

    Those that were provisional were announced to change.

    Args:
        before: log of the table, as it was before these were published.
        results: of a run, or of a chunk of it.
        code_version: what they were computed by.
    """
    publishes = before.publishes
    return {
        result.key: _say_why(publishes[result.key], result, code_version)
        for result in results
        if result.version is not None and not result.repeated_batch and result.key in publishes
        if result.key not in publishes[result.key].record.provisional
        if publishes[result.key].checksum != result.measures.checksum
    }


def _say_why(before: Publish, result: PartitionResult, code_version: str) -> str:
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
        counts = (
            ""
            if before.landed.files == now.landed.files
            else (f": {before.landed.files} then, {now.landed.files} now")
        )
        yield f"its landed files changed{counts}"
