"""Reads how far a backfill has come, by what the Dagster instance knows at this moment.

Dagster's own count of a backfill is made anew every 30 s, and leaves out the runs that continue it.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from dagster import (
    AssetKey,
    AssetRecordsFilter,
    DagsterEventType,
    DagsterInstance,
    DagsterRun,
    DagsterRunStatus,
    RunsFilter,
)

from backfill_engine.catalog import Catalog
from backfill_engine.orchestration.backfills.backfills import (
    Backfill,
    awaits_shell,
    find_requested,
    read_backfill,
)
from backfill_engine.orchestration.backfills.progress import QUEUED, Progress, State
from backfill_engine.orchestration.instance.materializations import (
    find_latest_materializations,
    find_planning_runs,
)
from backfill_engine.orchestration.instance.processes import has_daemon
from backfill_engine.orchestration.runs.chains import (
    SETTLE_SECONDS,
    awaits_rest,
    find_why_unfinished,
)
from backfill_engine.orchestration.runs.pausing import find_why_none_may_go, list_paused_at
from backfill_engine.orchestration.runs.run_tags import REFUSED_TAG, is_paused
from backfill_engine.orchestration.runs.runs_at_work import UNFINISHED

_MAY_GO_ON = "until the sensor go_on_after_pause asks for the rest, as it may now"


_PAGE = 1000


@dataclass
class _Judged:
    """Partitions of a run by table key, as far as its events were read."""

    cursor: str | None = None
    by_table: dict[str, set[str]] = field(default_factory=dict)


@dataclass(frozen=True)
class JudgedPartitions:
    """Reads of which partitions runs at work have told a check; each event once.

    A step records what is good of a chunk before it tells any check of it. So what was judged, and
    is not materialized when that is looked up afterwards, is held back, and stays so in this run.
    """

    by_run: dict[str, _Judged] = field(default_factory=dict)

    def read(self, instance: DagsterInstance, runs: Iterable[DagsterRun]) -> None:
        """Reads what those of the runs that are at work have told since."""
        for run in runs:
            if run.status is DagsterRunStatus.STARTED:
                _read(instance, run.run_id, self.by_run.setdefault(run.run_id, _Judged()))

    def find(self, run_id: str, table: str) -> Collection[str]:
        """Finds those of a table, `layer/name`, that a run has judged, as far as it was read."""
        judged = self.by_run.get(run_id)
        return judged.by_table.get(table, ()) if judged else ()


def _read(instance: DagsterInstance, run_id: str, judged: _Judged) -> None:
    has_more = True
    while has_more:
        page = instance.get_records_for_run(
            run_id, judged.cursor, DagsterEventType.ASSET_CHECK_EVALUATION, _PAGE
        )
        judged.cursor, has_more = page.cursor, page.has_more
        for record in page.records:
            event = record.event_log_entry.get_dagster_event()
            check = event.asset_check_evaluation_data
            if check.partition is not None:
                table = check.asset_key.to_user_string()
                judged.by_table.setdefault(table, set()).add(check.partition)


_COMMITS_PAGE = 1000


def find_published_since(
    instance: DagsterInstance, table: str, keys: Collection[str], *, since: datetime
) -> set[str]:
    """Finds those partitions of a table, `layer/name`, that any run published since."""
    found: set[str] = set()
    listed = sorted(keys)
    for first in range(0, len(listed), _COMMITS_PAGE):
        page = listed[first : first + _COMMITS_PAGE]
        wanted = AssetRecordsFilter(
            AssetKey.from_user_string(table),
            asset_partitions=page,
            after_timestamp=since.timestamp(),
        )
        records = instance.fetch_materializations(wanted, limit=10 * _COMMITS_PAGE).records
        found |= {record.partition_key for record in records if record.partition_key}
    return found


@dataclass(frozen=True)
class EarlierRuns:
    """Finds what runs that have ended published of what others of their backfill go over again.

    It is looked up again once another one has ended.
    """

    known: dict[tuple[str, str], tuple[frozenset[str], Collection[str]]] = field(
        default_factory=dict
    )

    def find_published(
        self,
        instance: DagsterInstance,
        backfill_id: str,
        table: str,
        keys: Collection[str],
        ended: Collection[str],
    ) -> Collection[str]:
        """Finds partitions of a table, `layer/name`, that runs which have ended published last.

        Args:
            instance: the Dagster instance.
            backfill_id: of the backfill.
            table: the table.
            keys: all that the backfill is to publish of it.
            ended: ids of the runs.
        """
        run_ids = frozenset(ended)
        at, found = self.known.get((backfill_id, table), (frozenset(), ()))
        if run_ids != at:
            asset_key = AssetKey.from_user_string(table)
            latest = find_latest_materializations(instance, asset_key, keys)
            found = {key for key, record in latest.items() if record.run_id in run_ids}
            self.known[backfill_id, table] = run_ids, found
        return found


def find_published_by(
    instance: DagsterInstance,
    table: str,
    keys: Collection[str],
    run_ids: Collection[str],
    *,
    since: datetime,
) -> set[str]:
    """Finds those that one of some runs, or a run that was made since, was the last to publish.

    The time of a materialization doesn't tell where an old one was entered again.
    """
    latest = find_latest_materializations(instance, AssetKey.from_user_string(table), keys)
    others = {record.run_id for record in latest.values()} - set(run_ids)
    good = set(run_ids)
    if others:
        made_since = RunsFilter(run_ids=sorted(others), created_after=since)
        good |= {run.run_id for run in instance.get_runs(made_since)}
    return {key for key, record in latest.items() if record.run_id in good}


@dataclass(frozen=True)
class ProgressReader:
    """Reads progress again and again; what a run was to publish is read once.

    Attributes:
        catalog: of the code location.
        instance: knows it.
        requested: what runs were to publish, by run id.
        judged: what runs at work have judged; read before who planned what.
        planners: by table, which run was the last to plan what is not published since. To be kept
            only by who looks at several backfills at one moment.
        earlier: what runs that have ended published of what others go over again.
    """

    catalog: Catalog
    instance: DagsterInstance
    requested: dict[str, dict[str, list[str]]] = field(default_factory=dict)
    judged: JudgedPartitions = field(default_factory=JudgedPartitions)
    planners: dict[str, dict[str, str]] | None = None
    earlier: EarlierRuns = field(default_factory=EarlierRuns)

    def read(self, backfill_id: str, *, now: datetime) -> Progress:
        """Reads how far a backfill has come."""
        backfill = read_backfill(self.catalog, self.instance, backfill_id)
        return self.measure(replace(backfill, goes_on=awaits_shell(backfill, now=now)), now=now)

    def measure(self, backfill: Backfill, *, now: datetime) -> Progress:
        """Measures how far a backfill had come when it was read."""
        runs = {run.run_id: run for run in backfill.chain.runs}
        alive = has_daemon(self.instance)
        is_to_go_on = backfill.record is not None and (
            any(map(is_paused, runs.values())) or (alive and awaits_rest(backfill.chain, now=now))
        )
        is_settled = backfill.ended_at is not None and not is_to_go_on
        has_ended = is_settled or (backfill.is_cancelled and not backfill.unfinished_runs)
        self.judged.read(self.instance, runs.values())
        states = {
            table: self._find_states(backfill, runs, table, keys, has_ended=has_ended)
            for table, keys in backfill.targets.items()
        }
        all_published = bool(states) and all(
            state is State.PUBLISHED for found in states.values() for state in found.values()
        )
        why_paused = "" if all_published else self._find_why_paused(backfill, now=now)
        at_work = self._find_why_at_work(
            backfill,
            all_published=all_published,
            has_daemon=alive,
            why_paused=why_paused,
            now=now,
        )
        counted = {
            table: self._count_earlier(backfill, table, found) for table, found in states.items()
        }
        return Progress(backfill, counted, at_work, alive, now, why_paused)

    def _count_earlier(
        self, backfill: Backfill, table: str, states: Mapping[str, State]
    ) -> Mapping[str, State]:
        """Counts as published what a run of it published that goes on, or is tried again.

        The run that does so plans all of its range, and comes to what stands already in its turn.
        """
        ended = [run.run_id for run in backfill.chain.runs if run.is_finished]
        to_come = [key for key, one in states.items() if one in (State.AT_WORK, State.WAITING)]
        if not (ended and to_come):
            return states
        found = self.earlier.find_published(self.instance, backfill.id, table, states, ended)
        return {**states, **{key: State.PUBLISHED for key in to_come if key in found}}

    def _find_states(
        self,
        backfill: Backfill,
        runs: Mapping[str, DagsterRun],
        table: str,
        keys: Sequence[str],
        *,
        has_ended: bool,
    ) -> dict[str, State]:
        any_judged = any(self.judged.find(run_id, table) for run_id in runs)
        planned_by = self._find_planners(table, afresh=any_judged)
        asked: dict[str, DagsterRun] = {}
        for run in runs.values():
            if run.run_id not in self.requested:
                self.requested[run.run_id] = find_requested(self.catalog, self.instance, run)
            asked |= dict.fromkeys(self.requested[run.run_id].get(table, ()), run)
        states: dict[str, State] = {}
        unknown: set[str] = set()
        refused: set[str] = set()
        for key in keys:
            # A run that has just been made may not have planned its partitions yet.
            planner = runs.get(planned_by.get(key, ""))
            if key not in asked and not has_ended:
                states[key] = State.WAITING
            elif key not in asked or (key in planned_by and planner is None):
                # None of its runs was the last at it: another one may have published it since.
                unknown.add(key)
                states[key] = State.HELD_BACK
            elif planner is None and REFUSED_TAG in asked[key].tags:
                # What was published before was entered again, so that it shows as published.
                refused.add(key)
                states[key] = State.HELD_BACK
            elif planner is None and asked[key].status not in QUEUED:
                states[key] = State.PUBLISHED
            else:
                run = planner or asked[key]
                state = _find_state(run)
                is_judged = key in self.judged.find(run.run_id, table)
                states[key] = State.HELD_BACK if state is State.AT_WORK and is_judged else state
        since = backfill.requested_at
        for key in (
            *find_published_since(self.instance, table, unknown, since=since),
            *find_published_by(self.instance, table, refused, runs, since=since),
        ):
            states[key] = State.PUBLISHED
        return states

    def _find_planners(self, table: str, *, afresh: bool = False) -> Mapping[str, str]:
        asset_key = AssetKey.from_user_string(table)
        if self.planners is None or afresh:
            return find_planning_runs(self.instance, asset_key)
        if table not in self.planners:
            self.planners[table] = find_planning_runs(self.instance, asset_key)
        return self.planners[table]

    def _find_why_paused(self, backfill: Backfill, *, now: datetime) -> str:
        """Finds why a run is paused that none went on with; empty if there is no such run."""
        paused = {run.run_id: run for run in backfill.chain.runs if is_paused(run)}
        if not paused:
            return ""
        # The sensor marks what it went on with a moment later: who planned last is known at once.
        last = {run for table in backfill.targets for run in self._find_planners(table).values()}
        for run_id, run in paused.items():
            if run_id in last:
                tables = list_paused_at(run)
                return find_why_none_may_go(self.instance, run, tables, now=now) or _MAY_GO_ON
        return ""

    def _find_why_at_work(
        self,
        backfill: Backfill,
        *,
        all_published: bool,
        has_daemon: bool,
        why_paused: str,
        now: datetime,
    ) -> str:
        if backfill.unfinished_runs:
            return f"{len(backfill.unfinished_runs)} of its runs have not ended"
        if backfill.is_cancelled:
            return "the shell that makes its runs has not ended" if backfill.goes_on else ""
        if backfill.goes_on:
            return "more of its runs are to come, from the shell that makes them"
        if all_published:
            return ""
        if backfill.record is not None and not backfill.is_settled:
            return f"the backfill is {backfill.record.status.value.lower()}"
        if why_paused:
            return f"it is paused: {why_paused}"
        failed = any(run.status is DagsterRunStatus.FAILURE for run in backfill.chain.runs)
        if not (failed and has_daemon):
            return ""  # Only a daemon's sensors and retries go on after a run that failed.
        return find_why_unfinished(
            self.instance, backfill.chain, now=now, settle_seconds=SETTLE_SECONDS
        )


def _find_state(run: DagsterRun) -> State:
    """Finds the state of what a run was the last to plan, and has not published."""
    if run.status in QUEUED or is_paused(run):
        return State.WAITING
    return State.AT_WORK if run.status in UNFINISHED else State.HELD_BACK
