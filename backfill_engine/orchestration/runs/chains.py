"""Runs at work, and runs that belong together: of a backfill, retries, and those that go on after.

What a person asked for once is one chain, however many runs Dagster made of it. Beside that, why a
run left partitions unpublished, as far as no certificate says so.

Dagster limits how many runs of one launch are at work at once. A limit of Dagster's is about a tag
and is declared in `dagster.yaml`. So that file has one for each number that can be asked for, and a
launch tags its runs with one of these and a value of its own.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from dagster import (
    AssetKey,
    DagsterEventType,
    DagsterInstance,
    DagsterRun,
    DagsterRunStatus,
    RunRecord,
    RunsFilter,
)

from backfill_engine.errors import PartitionRangeError, SettingsError
from backfill_engine.orchestration.due.readiness import get_partitions_def
from backfill_engine.orchestration.instance.dagster_internals import (
    AUTO_RETRY_RUN_ID_TAG,
    BACKFILL_TAG,
    BULK_ACTION_TERMINAL_STATUSES,
    ROOT_RUN_ID_TAG,
    WILL_RETRY_TAG,
    AssetGraph,
    BulkActionStatus,
    find_run_assets,
)
from backfill_engine.orchestration.instance.own_runs import is_ours
from backfill_engine.orchestration.instance.recovered_runs import RECOVERED_TAG
from backfill_engine.orchestration.runs.run_tags import (
    AT_MOST_TAG,
    BACKGROUND_TAG,
    CHAIN_TAG,
    DROPPED,
    FOREGROUND_TAG,
    PAUSED,
    PAUSED_AT_TAG,
    PAUSED_TAG,
    WENT_ON,
    WITHHELD_TAG,
    find_chain,
    find_run_range,
    is_paused,
    was_dropped,
)
from backfill_engine.orchestration.selecting.selections import find_keys_in_range
from backfill_engine.proof.certificates import CertifiedPartition
from backfill_engine.tables.declarations import Table

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
    limits = (
        {limit["key"]: limit["limit"] for limit in config.tag_concurrency_limits} if config else {}
    )
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


WITHHELD, FAILED, HELD_UP, CANCELLED = "withheld", "failed", "held up", "cancelled"
PAUSED_STATUS = "paused"

_LINE_LENGTH = 300

_RETRY_SECONDS = 600.0
"""After how long a retry that was announced and didn't come isn't waited for any more."""

_REST_SECONDS = 600.0
"""Likewise what a sensor is to request of a backfill that was paused: it may be switched off."""

_TICK = timedelta(seconds=1)
"""Dagster's filter takes what was changed after a time, and not at it."""

SETTLE_SECONDS = 30.0
"""After its last run a chain may go on: the daemon's sensors and retries take some seconds."""


@dataclass(frozen=True)
class Chain:
    """Runs that belong together.

    Attributes:
        id: the backfill, or the first run.
        last_failed: the id of the run that failed last; empty if nobody asked for it.
        records: of all its runs, in the order in which they were made.
    """

    id: str
    last_failed: str
    records: tuple[RunRecord, ...]

    @property
    def runs(self) -> list[DagsterRun]:
        """Its runs, in the order in which they were made."""
        return [record.dagster_run for record in self.records]

    @property
    def kind(self) -> str:
        """`backfill`, `chain` of several runs, or `run`."""
        if any(run.tags.get(BACKFILL_TAG) == self.id for run in self.runs):
            return "backfill"
        return "chain" if len(self.records) > 1 else "run"

    @property
    def begun_at(self) -> datetime:
        """When its first run was made, UTC."""
        return _to_utc(min(record.create_timestamp for record in self.records))

    @property
    def ended_at(self) -> datetime:
        """When the last of its runs ended, UTC."""
        return max(map(find_end, self.records))


def find_end(record: RunRecord) -> datetime:
    """Finds when a run ended, UTC; of one that has no such time, when it was changed last."""
    if record.end_time is not None:
        return datetime.fromtimestamp(record.end_time, tz=UTC)
    return _to_utc(record.update_timestamp)


def find_failed_chains(instance: DagsterInstance, since: datetime) -> dict[str, list[RunRecord]]:
    """Finds the chains in which runs of ours failed, by id, with those runs, by their ends.

    A run that was cancelled, also while it was paused, did not fail.

    Args:
        instance: knows all runs.
        since: UTC; failures that ended before are left out.
    """
    records = instance.get_run_records(
        RunsFilter(statuses=[DagsterRunStatus.FAILURE], updated_after=since - _TICK)
    )
    found: dict[str, list[RunRecord]] = {}
    for record in sorted(records, key=find_end):
        run = record.dagster_run
        # What was cancelled while it was paused Dagster calls failed: it has no other word.
        is_told = RECOVERED_TAG not in run.tags and run.tags.get(PAUSED_TAG) != DROPPED
        if find_end(record) >= since and is_told and is_ours(run.tags):
            found.setdefault(find_chain(run), []).append(record)
    return found


def read_chain(
    instance: DagsterInstance, chain_id: str, last_failed: RunRecord | None = None
) -> Chain:
    """Reads all runs of a chain, of which the one that failed last may be known."""
    members = [RunsFilter(run_ids=[chain_id])] + [
        RunsFilter(tags={tag: chain_id}) for tag in (BACKFILL_TAG, CHAIN_TAG, ROOT_RUN_ID_TAG)
    ]
    known = {last_failed.dagster_run.run_id: last_failed} if last_failed else {}
    records = known | {
        record.dagster_run.run_id: record
        for member in members
        for record in instance.get_run_records(member)
        if find_chain(record.dagster_run) == chain_id
    }
    in_order = sorted(records.values(), key=lambda record: record.storage_id)
    return Chain(chain_id, next(iter(known), ""), tuple(in_order))


def find_touched_since(
    instance: DagsterInstance, run_ids: Collection[str], since: datetime
) -> set[str]:
    """Finds those of some runs that were made, at work, or ended since a time, UTC."""
    if not run_ids:
        return set()
    changed = RunsFilter(run_ids=sorted(run_ids), updated_after=since)
    return {run.run_id for run in instance.get_runs(changed)}


def find_why_unfinished(instance: DagsterInstance, chain: Chain, *, now: datetime) -> str:
    """Finds why a chain is not at its end yet; empty if it is."""
    why = find_why_at_work(instance, chain, now=now)
    if not why and awaits_rest(chain, now=now):
        return "it was paused, and what no run was requested for is to be looked at"
    return why


def awaits_rest(chain: Chain, *, now: datetime) -> bool:
    """Tells whether a sensor is to look at what Dagster requested of a backfill no run for.

    Dagster takes a paused run for a failed one, and what reads from it for lost.
    """
    silent_seconds = (now - chain.ended_at).total_seconds() if chain.records else 0
    went_on = any(run.tags.get(PAUSED_TAG) == WENT_ON for run in chain.runs)
    return chain.kind == "backfill" and went_on and silent_seconds < _REST_SECONDS


def find_why_at_work(instance: DagsterInstance, chain: Chain, *, now: datetime) -> str:
    """Finds why anything is at work, paused or about to go on of a chain; empty if nothing is."""
    backfill = instance.get_backfill(chain.id) if chain.kind == "backfill" else None
    if backfill is not None and backfill.status not in BULK_ACTION_TERMINAL_STATUSES:
        return f"the backfill is {backfill.status.value.lower()}"
    unfinished = [run.run_id for run in chain.runs if run.status in UNFINISHED]
    if unfinished:
        return f"{len(unfinished)} of its runs have not ended"
    if any(is_paused(run) for run in chain.runs):
        return "it is paused"
    silent_seconds = (now - chain.ended_at).total_seconds()
    if silent_seconds < SETTLE_SECONDS:
        return "it ended a moment ago, and may go on"
    if silent_seconds < _RETRY_SECONDS and _awaits_retry(chain.runs):
        return "a retry is to come"
    return ""


def _awaits_retry(runs: Sequence[DagsterRun]) -> bool:
    retried = {run.parent_run_id for run in runs}
    return any(
        run.status is DagsterRunStatus.FAILURE
        and run.tags.get(WILL_RETRY_TAG) == "true"
        and AUTO_RETRY_RUN_ID_TAG not in run.tags
        and run.run_id not in retried
        for run in runs
    )


def _to_utc(time: datetime) -> datetime:
    return time if time.tzinfo else time.replace(tzinfo=UTC)


def is_left_by_pause(run: DagsterRun, table: Table, row: CertifiedPartition) -> bool:
    """Tells whether a step did not come to a partition, as its run paused there.

    The run's certificate records the pause as an error, and can't know what became of the pause.
    """
    ended = is_paused(run) or was_dropped(run)
    return ended and row.status == FAILED and table.key in run.tags[PAUSED_AT_TAG].split(",")


@dataclass(frozen=True)
class FailureReasons:
    """Why runs left partitions unpublished that no certificate explains; each run is read once."""

    instance: DagsterInstance
    known: dict[str, str] = field(default_factory=dict)

    def find(self, run: DagsterRun) -> tuple[str, str]:
        """Finds the status of what a run left unpublished, and the reason."""
        if run.status is DagsterRunStatus.CANCELED:
            return CANCELLED, "its run was cancelled"
        if was_dropped(run):
            return CANCELLED, "its run was cancelled while it was paused"
        if run.status is DagsterRunStatus.SUCCESS:
            return FAILED, "its run ended without it"
        if WITHHELD_TAG in run.tags:
            return HELD_UP, f"held up by what was withheld of {run.tags[WITHHELD_TAG]}"
        if is_paused(run):
            return PAUSED_STATUS, "its run is paused"
        return FAILED, f"its run failed: {self.find_error(run)}"

    def find_error(self, run: DagsterRun) -> str:
        """Finds in one line what a run failed with."""
        if run.run_id not in self.known:
            errors = filter(None, self._list_errors(run.run_id))
            text = next(errors, "it says not why")
            self.known[run.run_id] = text.splitlines()[0][:_LINE_LENGTH]
        return self.known[run.run_id]

    def _list_errors(self, run_id: str) -> Iterator[str]:
        for entry in self.instance.all_logs(run_id, of_type=DagsterEventType.STEP_FAILURE):
            step = entry.get_dagster_event().step_failure_data
            if step.user_failure_data and step.user_failure_data.description:
                yield step.user_failure_data.description
            cause = step.error and (step.error.cause or step.error)
            if cause:
                yield cause.message.strip()
        for entry in self.instance.all_logs(run_id, of_type=DagsterEventType.RUN_FAILURE):
            failure = entry.get_dagster_event()
            # It has no data of a run that was marked failed.
            error = failure.event_specific_data and failure.job_failure_data.error
            if error:
                yield error.message.strip()
            yield (failure.message or entry.user_message).strip()
