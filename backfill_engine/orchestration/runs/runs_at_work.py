"""Partitions that unfinished runs of ours and backfills are to materialize, whoever asked.

Dagster limits how many runs of one launch are at work at once. A limit of Dagster's is about a tag
and is declared in `dagster.yaml`. So that file has one for each number that can be asked for, and a
launch tags its runs with one of these and a value of its own.
"""

from collections.abc import Mapping

from dagster import AssetKey, DagsterInstance, DagsterRun, DagsterRunStatus, RunsFilter

from backfill_engine.errors import PartitionRangeError, SettingsError
from backfill_engine.orchestration.due.readiness import get_partitions_def
from backfill_engine.orchestration.instance.dagster_internals import (
    AssetGraph,
    BulkActionStatus,
    find_run_assets,
)
from backfill_engine.orchestration.instance.own_runs import is_ours
from backfill_engine.orchestration.runs.run_tags import (
    AT_MOST_TAG,
    BACKGROUND_TAG,
    FOREGROUND_TAG,
    PAUSED,
    PAUSED_TAG,
    find_run_range,
)
from backfill_engine.orchestration.selecting.selections import find_keys_in_range

UNFINISHED = [
    DagsterRunStatus.QUEUED,
    DagsterRunStatus.NOT_STARTED,
    DagsterRunStatus.STARTING,
    DagsterRunStatus.STARTED,
    DagsterRunStatus.CANCELING,
]


def find_partitions_at_work(
    instance: DagsterInstance, graph: AssetGraph
) -> Mapping[AssetKey, frozenset[str]]:
    """Finds them by asset; of a run that doesn't say which partitions, all of its assets.

    A paused run counts, too, as another goes on with it by itself; one that a shell began doesn't.
    So does what a backfill is to request yet: Dagster's daemon looks every 30 s only.
    """
    found = _find_to_be_requested(instance)
    paused = RunsFilter(statuses=[DagsterRunStatus.FAILURE], tags={PAUSED_TAG: PAUSED})
    waiting = (run for run in instance.get_runs(paused) if FOREGROUND_TAG not in run.tags)
    unfinished = instance.get_runs(RunsFilter(statuses=UNFINISHED))
    for run in (*(run for run in unfinished if is_ours(run.tags)), *waiting):
        for key in find_run_assets(instance, run):
            if graph.has(key) and graph.get(key).partitions_def is not None:
                keys = _find_keys(run, graph, key)
                found[key] = found.get(key, frozenset()) | keys
    return found


def _find_to_be_requested(instance: DagsterInstance) -> dict[AssetKey, frozenset[str]]:
    """Finds what is to be requested of backfills of assets; those of a job request all at once."""
    found: dict[AssetKey, frozenset[str]] = {}
    for backfill in instance.get_backfills(status=BulkActionStatus.REQUESTED):
        data = backfill.asset_backfill_data
        if data is None:
            continue
        left = data.target_subset - data.requested_subset - data.failed_and_downstream_subset
        for key, subset in left.partitions_subsets_by_asset_key.items():
            found[key] = found.get(key, frozenset()) | frozenset(subset.get_partition_keys())
    return found


def _find_keys(run: DagsterRun, graph: AssetGraph, key: AssetKey) -> frozenset[str]:
    partitions_def = get_partitions_def(graph, key)
    ends = find_run_range(run)
    if ends is None:
        return frozenset(partitions_def.get_partition_keys())
    try:
        return frozenset(find_keys_in_range(partitions_def, first=ends[0], last=ends[1]))
    except PartitionRangeError:
        return frozenset()  # Its step will say so.


def build_limit_tag(
    instance: DagsterInstance, max_parallel: int | None, *, value: str
) -> dict[str, str]:
    """Builds the tag that keeps the runs of a launch to so many at once; none where that is so.

    Args:
        instance: whose queue it is.
        max_parallel: how many; None for as many as the instance has places for backfills.
        value: that no other launch has.

    Raises:
        SettingsError: if the instance has no such limit.
    """
    if max_parallel is None:
        return {}
    config = instance.get_concurrency_config().run_queue_config
    limits = {one["key"]: one["limit"] for one in config.tag_concurrency_limits} if config else {}
    places = [config.max_concurrent_runs if config else -1, limits.get(BACKGROUND_TAG, -1)]
    if any(0 <= count <= max_parallel for count in places):
        return {}
    tag = f"{AT_MOST_TAG}{max_parallel}"
    if limits.get(tag) != max_parallel:
        raise SettingsError(
            f"--max-parallel {max_parallel}: the dagster.yaml of this home has no limit for the "
            f"tag {tag} below concurrency, runs, tag_concurrency_limits: add it there, as the one "
            "for 1 is, or leave the option out"
        )
    return {tag: value}
