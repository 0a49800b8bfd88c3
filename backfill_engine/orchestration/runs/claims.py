"""Which process works on a run of ours, and which are dead: unfinished, and nobody works on them.

Dagster keeps a run that was killed with -9 unfinished for ever, and its partitions in progress. So
whoever creates a run, and whoever works on it, notes on it which process that is.

A tag says in words what a run or a backfill is about, as the UI's lists of runs show no title, and
whoever launches a backfill in the UI can't give it one.
"""

import datetime as dt
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from threading import Event, Thread
from typing import Any

from dagster import (
    AssetKey,
    DagsterInstance,
    DagsterRun,
    DagsterRunStatus,
    JobDefinition,
    RunRecord,
    RunsFilter,
)

from backfill_engine.orchestration.instance.batching_instance import BatchingInstance
from backfill_engine.orchestration.instance.dagster_internals import (
    BACKFILL_TAG,
    HIDDEN_TAG_PREFIX,
    JobSnap,
    PartitionBackfill,
    RemoteJob,
)
from backfill_engine.orchestration.instance.own_runs import (
    TAG_PREFIX,
    find_own_assets,
    has_own_step,
    is_ours,
)
from backfill_engine.orchestration.instance.processes import identify_own_process, is_alive
from backfill_engine.orchestration.runs.run_tags import (
    ABOUT_TAG,
    IN_BACKGROUND,
    PAUSED_AT_TAG,
    PAUSED_TAG,
    find_tagged_range,
)

PROCESS_TAG = f"{HIDDEN_TAG_PREFIX}{TAG_PREFIX}process"
"""Tag of a run: the process that works on it."""

CREATOR_TAG = f"{HIDDEN_TAG_PREFIX}{TAG_PREFIX}created_by"
"""Tag of a run: the process that created it, which is the one that works on it for a command."""

_HEARTBEAT_SECONDS = 30.0
_MAY_BE_DEAD = [
    # Not those in the queue: they are Dagster's, and wait without a process.
    DagsterRunStatus.NOT_STARTED,
    DagsterRunStatus.STARTING,
    DagsterRunStatus.STARTED,
    DagsterRunStatus.CANCELING,
]


class ClaimingInstance(BatchingInstance):
    """A Dagster instance that notes on each run of ours who creates it, before it stores the plan.

    It also gives these runs and backfills a title, and puts the runs of backfills that are told no
    priority, as those of the UI, behind the daily run. Runs without an op of ours stay as they are.

    `dagster.yaml` names it. With an instance of Dagster's own, a run that was killed before its
    first step is not known to be ours, its events are stored one by one, which takes longer, and
    the UI's backfills don't wait behind the daily run.
    """

    def create_run(
        self,
        *,
        job_name: str,
        tags: Mapping[str, Any] | None,
        job_snapshot: JobSnap | None,
        **run: Any,
    ) -> DagsterRun:
        """Creates a run, as Dagster does."""
        if has_own_step(job_snapshot):
            tags = _note(job_name, run.get("asset_selection"), tags)
        return super().create_run(job_name=job_name, tags=tags, job_snapshot=job_snapshot, **run)

    def create_run_for_job(
        self, job_def: JobDefinition, *args: Any, tags: Mapping[str, str] | None = None, **run: Any
    ) -> DagsterRun:
        """Creates a run that this process will execute, as Dagster does."""
        assets = run.get("asset_selection")
        chosen = job_def.get_subset(asset_selection=assets) if assets else job_def
        if has_own_step(chosen):
            tags = _note(job_def.name, assets, tags)
        return super().create_run_for_job(job_def, *args, tags=tags, **run)

    def create_reexecuted_run(
        self,
        *,
        parent_run: DagsterRun,
        remote_job: RemoteJob,
        extra_tags: Mapping[str, Any] | None = None,
        **reexecution: Any,
    ) -> DagsterRun:
        """Creates a run that does again what another has left, as Dagster does.

        Nobody works on it yet: with the claim of a run that was killed it would count as dead.
        """
        if has_own_step(remote_job.job_snapshot):
            noted = _note(parent_run.job_name, parent_run.asset_selection, parent_run.tags)
            own = {name: noted[name] for name in (ABOUT_TAG, CREATOR_TAG)}
            parent_run, extra_tags = parent_run.with_tags(noted), {**(extra_tags or {}), **own}
        return super().create_reexecuted_run(
            parent_run=parent_run, remote_job=remote_job, extra_tags=extra_tags, **reexecution
        )

    def add_backfill(self, partition_backfill: PartitionBackfill) -> None:
        """Stores a backfill that somebody asks for, as Dagster does."""
        super().add_backfill(add_title(partition_backfill, find_own_assets(self)))


def _note(
    job_name: str, assets: Collection[AssetKey] | None, tags: Mapping[str, Any] | None
) -> dict[str, Any]:
    """Notes what a run is about, who creates it, and that a backfill comes after the daily run.

    A retry has the tags of the run before, and nobody works on it.
    """
    of_another = (PROCESS_TAG, PAUSED_TAG, PAUSED_AT_TAG)
    kept = {name: value for name, value in (tags or {}).items() if name not in of_another}
    if BACKFILL_TAG in kept:
        kept = {**IN_BACKGROUND, **kept}  # the UI tells only what a person adds
    title = build_run_title(job_name, assets, kept)
    return {**kept, ABOUT_TAG: title, CREATOR_TAG: identify_own_process()}


@contextmanager
def keep_claim(instance: DagsterInstance, run_id: str) -> Iterator[None]:
    """Notes on the run that this process works on it, and again and again while it does.

    The time of the last note is a sign of life for those who can't see the process.
    """
    claim = {PROCESS_TAG: identify_own_process()}
    instance.add_run_tags(run_id, claim)
    done = Event()

    def repeat() -> None:
        while not done.wait(_HEARTBEAT_SECONDS):
            with suppress(Exception):  # whatever a busy storage raises: it gets the next one
                instance.add_run_tags(run_id, claim)

    heartbeat = Thread(target=repeat, name=f"claim of run {run_id}", daemon=True)
    heartbeat.start()
    try:
        yield
    finally:
        done.set()
        heartbeat.join()


def find_dead_runs(
    instance: DagsterInstance, *, now: dt.datetime, silent_seconds: int
) -> dict[str, str]:
    """Finds the dead among the unfinished runs of ours, by id, and how that is known.

    Args:
        instance: the Dagster instance.
        now: UTC.
        silent_seconds: after how long without a sign of life a run is dead whose process can't be
            seen from here.
    """
    dead: dict[str, str] = {}
    for record in instance.get_run_records(RunsFilter(statuses=_MAY_BE_DEAD)):
        run = record.dagster_run
        if not is_ours(run.tags):
            continue
        claim = find_worker(run)
        alive = is_alive(claim) if claim else None
        if alive is False:
            dead[run.run_id] = f"its process {claim} is gone: killed"
        elif alive is None and (silent := _measure_silence(record, now)) > silent_seconds:
            dead[run.run_id] = (
                f"its process {claim or '(unknown)'} can't be seen from here, and gave no sign of "
                f"life for {silent:.0f} s"
            )
    return dead


def find_worker(run: DagsterRun) -> str | None:
    """Finds the process that works on a run; None if none has said so.

    A run of a code location is executed by another process than the one that creates it.
    """
    if claim := run.tags.get(PROCESS_TAG):
        return claim
    works = run.remote_job_origin is None or run.status is DagsterRunStatus.NOT_STARTED
    return run.tags.get(CREATOR_TAG) if works else None


def _measure_silence(record: RunRecord, now: dt.datetime) -> float:
    last = record.update_timestamp
    last = last if last.tzinfo else last.replace(tzinfo=dt.UTC)
    return (now - last).total_seconds()


def fail_dead_runs(
    instance: DagsterInstance, *, now: dt.datetime, silent_seconds: int
) -> dict[str, str]:
    """Marks dead runs failed, so that they hold no slot and no partition.

    Returns:
        As `find_dead_runs`.
    """
    dead = find_dead_runs(instance, now=now, silent_seconds=silent_seconds)
    for run_id, why in dead.items():
        run = instance.get_run_by_id(run_id)
        assert run is not None
        instance.report_run_failed(run, why)
    return dead


def build_run_title(
    job_name: str, assets: Collection[AssetKey] | None, tags: Mapping[str, Any]
) -> str:
    """Builds the title of a run: its assets, else its job, and the ends of its range.

    Args:
        job_name: of the run.
        assets: that were chosen; None and none mean all of the job.
        tags: of the run.
    """
    what = _list_assets(assets) if assets else job_name
    ends = find_tagged_range(tags)
    return what if ends is None else f"{what} {_write_range(ends)}"


def add_title(backfill: PartitionBackfill, own_assets: Collection[AssetKey]) -> PartitionBackfill:
    """Returns a backfill of ours with its title, or one that it gets, as a tag; others as is.

    Args:
        backfill: that somebody asks for.
        own_assets: the assets that are known to be ours.
    """
    title = backfill.title or _build_backfill_title(backfill)
    if not title or not (is_ours(backfill.tags or {}) or _is_of(backfill, own_assets)):
        return backfill
    return backfill._replace(tags={**(backfill.tags or {}), ABOUT_TAG: title})


def _is_of(backfill: PartitionBackfill, assets: Collection[AssetKey]) -> bool:
    """Tells whether a backfill is of any of some assets; of a job's nobody knows: it counts."""
    data = backfill.asset_backfill_data
    return data is None or not data.target_subset.asset_keys.isdisjoint(assets)


def _build_backfill_title(backfill: PartitionBackfill) -> str:
    """Builds the title of one that has none: of its assets, or of its job."""
    if backfill.partition_names:
        return f"{backfill.job_name} {_write_ends(backfill.partition_names)}"
    data = backfill.asset_backfill_data
    if data is None:
        return _list_assets(backfill.asset_selection or ())
    subsets = data.target_subset.partitions_subsets_by_asset_key
    keys = [key for subset in subsets.values() for key in subset.get_partition_keys()]
    what = _list_assets(data.target_subset.asset_keys)
    return f"{what} {_write_ends(keys)}" if keys else what


def _list_assets(assets: Collection[AssetKey]) -> str:
    return ", ".join(sorted(key.to_user_string() for key in assets))


def _write_ends(keys: Sequence[str]) -> str:
    return _write_range((min(keys), max(keys)))


def _write_range(ends: tuple[str, str]) -> str:
    first, last = ends
    return first if first == last else f"{first}...{last}"
