"""A run in chunks ends between two of them where one of higher priority waits for its place.

Dagster's queue goes by priority, and takes no place from a run that has one. So what comes first,
such as the daily run, waits for one chunk of a backfill at most.
"""

from dagster import DagsterInstance, DagsterRun, DagsterRunStatus, RunsFilter

from backfill_assets.orchestration.run_options import PRIORITY_TAG

_WITH_A_PLACE = [
    DagsterRunStatus.NOT_STARTED,
    DagsterRunStatus.STARTING,
    DagsterRunStatus.STARTED,
    DagsterRunStatus.CANCELING,
]


def find_why_giving_way(instance: DagsterInstance, run: DagsterRun) -> str:
    """Finds which run waits for the place of this one, in words; empty if none does.

    One that waits though there is a place waits for something else.
    """
    queued = instance.get_runs(RunsFilter(statuses=[DagsterRunStatus.QUEUED]))
    first = max(queued, key=_find_priority, default=None)
    if first is None or _find_priority(first) <= _find_priority(run):
        return ""
    config = instance.get_concurrency_config().run_queue_config
    places = config.max_concurrent_runs if config is not None else -1
    if places < 0 or instance.get_runs_count(RunsFilter(statuses=_WITH_A_PLACE)) < places:
        return ""
    return f"run {first.run_id[:8]} comes first, by its priority, and had no place"


def _find_priority(run: DagsterRun) -> int:
    text = run.tags.get(PRIORITY_TAG, "0")
    return int(text) if text.lstrip("+-").isdigit() else 0
