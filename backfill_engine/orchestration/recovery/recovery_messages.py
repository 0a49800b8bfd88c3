"""What a recovery says to people: what a Dagster home was not told of. It loads without Spark."""

from collections.abc import Mapping

from backfill_engine.orchestration.instance.ranges import shorten
from backfill_engine.orchestration.recovery.recovery import Recovery

_LISTED = 50


def describe_dead_runs(dead: Mapping[str, str], *, done: bool = True) -> list[str]:
    """Describes dead runs, by id and how that is known; `done`: whether they are marked failed."""
    state = "was dead and is marked failed" if done else "is dead"
    return [f"run {run_id} {state}: {why}" for run_id, why in dead.items()]


def describe_recovery(recovery: Recovery, *, done: bool = True) -> list[str]:
    """Describes what the instance was not told of; nothing if there is nothing of it.

    Args:
        recovery: what was found.
        done: whether it has been recorded.
    """
    key, verb = recovery.log.table.key, "recorded" if done else "to be recorded:"
    messages: list[str] = []
    if recovery.is_new:
        messages.append(
            f"{key}: this Dagster home shows nothing of the table at {recovery.log.uri}, of which "
            f"{len(recovery.log.publishes)} partitions are published"
        )
    if recovery.published:
        found = [result.key for result in recovery.published]
        messages.append(
            f"{key}: {verb} {len(found)} partitions that were published, of which this Dagster "
            f"home has no events ({found[0]} … {found[-1]})"
        )
    if recovery.doubtful:
        listed = shorten([f"{name}: {why}" for name, why in recovery.doubtful.items()], _LISTED)
        messages.append(f"{key}: published, but to be run again: {'; '.join(listed)}")
    if recovery.changed:
        listed = shorten([f"{name} {why}" for name, why in recovery.changed.items()], _LISTED)
        messages.append(
            f"{key}: {'; '.join(listed)}: run these again, or accept them as they are with "
            f"`backfill-assets accept {key} --from … --to … --reason …`"
        )
    if recovery.log.lacks_commits:
        messages.append(
            f"{key}: the log begins with version {recovery.log.begins_with}; what was published "
            "before is to be read from certificates"
        )
    messages += recovery.withheld.unreadable
    for withheld in recovery.withheld.runs:
        messages.append(
            f"{key}: {verb} {', '.join(shorten(withheld.keys, _LISTED))} as withheld by run "
            f"{withheld.certificate.run_id}"
        )
    return messages
