"""A run in chunks ends between two of them where one of higher priority waits for its place.

Dagster's queue goes by priority, and takes no place from a run that has one. So what comes first,
such as the daily run, waits for one chunk of a backfill at most.
"""

from collections.abc import Sequence

from dagster import DagsterInstance, DagsterRun, DagsterRunStatus, RunsFilter

from backfill_engine.orchestration.instance.own_runs import is_ours
from backfill_engine.orchestration.runs.run_tags import AT_MOST_TAG, FOREGROUND_TAG, PRIORITY_TAG

_WITH_A_PLACE = [
    DagsterRunStatus.NOT_STARTED,
    DagsterRunStatus.STARTING,
    DagsterRunStatus.STARTED,
    DagsterRunStatus.CANCELING,
]


def find_why_giving_way(instance: DagsterInstance, run: DagsterRun) -> str:
    """Finds which run of ours waits for the place of this one, in words; empty if none does.

    One that waits though there is a place waits for something else.
    """
    if FOREGROUND_TAG in run.tags:
        return ""  # It has no place in the queue.
    at_work = instance.get_runs(RunsFilter(statuses=_WITH_A_PLACE))
    queued = [
        one
        for one in instance.get_runs(RunsFilter(statuses=[DagsterRunStatus.QUEUED]))
        if is_ours(one.tags) and not _waits_for_its_own(one, at_work)
    ]
    first = max(queued, key=find_priority, default=None)
    if first is None or find_priority(first) <= find_priority(run):
        return ""
    config = instance.get_concurrency_config().run_queue_config
    places = config.max_concurrent_runs if config is not None else -1
    if places < 0 or len(at_work) < places:
        return ""
    return f"run {first.run_id[:8]} comes first, by its priority, and had no place"


def _waits_for_its_own(run: DagsterRun, at_work: Sequence[DagsterRun]) -> bool:
    """Tells whether a run waits for runs of the same launch, which bounds how many there are."""
    bounds = [(tag, value) for tag, value in run.tags.items() if tag.startswith(AT_MOST_TAG)]
    return any(
        sum(other.tags.get(tag) == value for other in at_work) >= int(tag[len(AT_MOST_TAG) :])
        for tag, value in bounds
    )


def find_priority(run: DagsterRun) -> int:
    """Finds the priority of a run in the queue; 0 where its tag is no number."""
    text = run.tags.get(PRIORITY_TAG, "0")
    return int(text) if text.lstrip("+-").isdigit() else 0
