"""How far a backfill has come, by what the Dagster instance knows at this moment.

Dagster's own count of a backfill is made anew every 30 s, and leaves out the runs that continue it.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum

from dagster import AssetKey, DagsterEventType, DagsterInstance, DagsterRun, DagsterRunStatus

from backfill_engine.catalog import Catalog
from backfill_engine.orchestration.backfills.backfills import (
    Backfill,
    awaits_shell,
    find_last_requested,
    read_backfill,
)
from backfill_engine.orchestration.instance.materializations import (
    find_latest_materializations,
    find_planning_runs,
)
from backfill_engine.orchestration.instance.processes import has_daemon
from backfill_engine.orchestration.runs.chains import (
    awaits_rest,
    find_touched_since,
    find_why_unfinished,
)
from backfill_engine.orchestration.runs.pausing import find_why_none_may_go, list_paused_at
from backfill_engine.orchestration.runs.run_tags import REFUSED_TAG, is_paused

_QUEUED = (DagsterRunStatus.QUEUED, DagsterRunStatus.NOT_STARTED)
_MAY_GO_ON = "until the sensor go_on_after_pause asks for the rest, as it may now"


class State(StrEnum):
    """Where a partition of a backfill stands."""

    PUBLISHED = "published"
    """By one of its runs, or by another one since."""
    HELD_BACK = "held back"
    """Withheld, failed, cancelled, refused as protected, or never requested."""
    AT_WORK = "at work"
    WAITING = "waiting"
    """For its run to be requested, to leave the queue, or to go on after a pause."""


@dataclass(frozen=True)
class TableProgress:
    """How far a table has come, in partitions.

    Attributes:
        table: `layer/name`.
        partitions: how many the backfill is to publish.
        published: of these.
        held_back: withheld, failed, cancelled, refused or never requested, at the end of their run.
        at_work: a run works on them.
        waiting: for their run, or for it to go on.
    """

    table: str
    partitions: int
    published: int
    held_back: int
    at_work: int
    waiting: int

    @property
    def done(self) -> int:
        """Those of which nothing more is to be expected."""
        return self.published + self.held_back


@dataclass(frozen=True)
class Progress:
    """How far a backfill has come.

    Attributes:
        backfill: the backfill, as it was read for this.
        states: of each partition, by table key.
        at_work: why it isn't over; empty if it is.
        has_daemon: whether a daemon is there to carry it out.
        read_at: when, UTC.
        why_paused: until when it is paused, and what ends that; empty if none of its runs is.
    """

    backfill: Backfill
    states: Mapping[str, Mapping[str, State]]
    at_work: str
    has_daemon: bool
    read_at: datetime
    why_paused: str = ""

    @property
    def is_over(self) -> bool:
        """Whether nothing more is to be expected."""
        return not self.at_work

    @property
    def tables(self) -> list[TableProgress]:
        """By table, in the order of the pipelines."""
        return [
            TableProgress(key, len(states), *(count[state] for state in State))
            for key, states in self.states.items()
            for count in [Counter(states.values())]
        ]

    @property
    def partitions(self) -> int:
        """How many it is to publish, over all tables."""
        return sum(map(len, self.states.values()))

    @property
    def done(self) -> int:
        """Those of which nothing more is to be expected."""
        return sum(table.done for table in self.tables)

    @property
    def published(self) -> int:
        """Those that are published."""
        return sum(table.published for table in self.tables)

    @property
    def per_minute(self) -> float:
        """Partitions a minute, since the first run began to work; 0 as long as none is done."""
        begun = self.backfill.started_at
        seconds = (self.read_at - begun).total_seconds() if begun else 0
        return 60 * self.done / seconds if seconds > 0 else 0.0

    @property
    def seconds_left(self) -> float | None:
        """At the pace so far; None as long as that is not known."""
        left = self.partitions - self.done
        return 60 * left / self.per_minute if self.per_minute else None

    @property
    def state(self) -> str:
        """What to call it, in a word or two."""
        backfill = self.backfill
        if self.is_over and self.partitions and self.published == self.partitions:
            return "published"
        if backfill.is_cancelled:
            return "cancelled" if self.is_over else "being cancelled"
        if self.why_paused and _all_wait(backfill.unfinished_runs):
            return "paused"
        if self.is_over:
            return "failed" if backfill.error else "held back"
        return "requested" if _all_wait(backfill.chain.runs) else "running"

    def find_unpublished(self, table: str) -> list[str]:
        """Finds the partitions of a table, `layer/name`, that are not published."""
        states = self.states.get(table, {})
        return [key for key, state in states.items() if state is not State.PUBLISHED]


def _all_wait(runs: Iterable[DagsterRun]) -> bool:
    return all(run.status in _QUEUED for run in runs)


@dataclass
class _Judged:
    """Partitions of a run by table key that it has told a check, as far as its events were read.

    A step records what is good of a chunk before it tells any check of it. So what was judged, and
    is not materialized when that is looked up afterwards, is held back, and stays so in this run.
    """

    cursor: str | None = None
    by_table: dict[str, set[str]] = field(default_factory=dict)

    def read(self, instance: DagsterInstance, run_id: str) -> None:
        """Reads what the run has told since the last look."""
        of_type = DagsterEventType.ASSET_CHECK_EVALUATION
        found = instance.get_records_for_run(run_id, self.cursor, of_type)
        self.cursor = found.cursor
        for record in found.records:
            check = record.event_log_entry.get_dagster_event().asset_check_evaluation_data
            if check.partition is not None:
                table = check.asset_key.to_user_string()
                self.by_table.setdefault(table, set()).add(check.partition)


@dataclass(frozen=True)
class ProgressReader:
    """Reads progress again and again; what doesn't change is read once.

    Attributes:
        catalog: of the code location.
        instance: knows it.
        planners: by table, which run was the last to plan what is not published since. To be kept
            only by who looks at several backfills at one moment; what runs at work have withheld
            counts for that one at their end.
        requested: what runs were to publish, by run id.
        judged: what runs at work have judged, by run id.
        earlier: by backfill and table, what of its runs have ended, and what these published last.
    """

    catalog: Catalog
    instance: DagsterInstance
    planners: dict[str, Mapping[str, str]] | None = None
    requested: dict[str, dict[str, list[str]]] = field(default_factory=dict)
    judged: dict[str, _Judged] = field(default_factory=dict)
    earlier: dict[tuple[str, str], tuple[set[str], set[str]]] = field(default_factory=dict)

    def read(self, backfill_id: str, *, now: datetime) -> Progress:
        """Reads how far a backfill has come."""
        backfill = read_backfill(self.catalog, self.instance, backfill_id)
        return self.measure(replace(backfill, goes_on=awaits_shell(backfill, now=now)), now=now)

    def measure(self, backfill: Backfill, *, now: datetime) -> Progress:
        """Measures how far a backfill had come when it was read."""
        alive, runs = has_daemon(self.instance), backfill.chain.runs
        is_to_go_on = backfill.record is not None and (
            any(map(is_paused, runs)) or (alive and awaits_rest(backfill.chain, now=now))
        )
        has_ended = not backfill.unfinished_runs and (
            backfill.is_cancelled or (backfill.ended_at is not None and not is_to_go_on)
        )
        if self.planners is None:  # before who planned what is looked up
            for run in runs:
                if run.status is DagsterRunStatus.STARTED:
                    self.judged.setdefault(run.run_id, _Judged()).read(self.instance, run.run_id)
        requested = find_last_requested(self.catalog, self.instance, runs, known=self.requested)
        states = {
            table: self._find_states(backfill, table, requested.get(table, {}), has_ended=has_ended)
            for table in backfill.targets
        }
        found = {state for by_key in states.values() for state in by_key.values()}
        all_published = found == {State.PUBLISHED}
        why_paused = "" if all_published else self._find_why_paused(backfill, now=now)
        progress = Progress(backfill, states, "", alive, now, why_paused)
        at_work = self._find_why_at_work(progress, all_published=all_published)
        return replace(progress, at_work=at_work)

    def _find_states(
        self,
        backfill: Backfill,
        table: str,
        requested: Mapping[str, DagsterRun],
        *,
        has_ended: bool,
    ) -> dict[str, State]:
        """Finds the states of partitions of a table by the run of the backfill that came last."""
        runs = {run.run_id: run for run in backfill.chain.runs}
        planned_by = self._find_planners(table)
        states: dict[str, State] = {}
        unknown: list[str] = []
        for key in backfill.targets[table]:
            planner, run = planned_by.get(key), requested.get(key)
            if planner in runs:
                states[key] = self._find_state(runs[planner], table, key)
            elif run is None and not has_ended:
                states[key] = State.WAITING
            elif run is None or planner is not None or REFUSED_TAG in run.tags:
                # None of its runs was the last at it, or what it had refused was entered again.
                unknown.append(key)
                states[key] = State.HELD_BACK
            else:
                # A run that has just been made may not have planned its partitions yet.
                states[key] = State.WAITING if run.status in _QUEUED else State.PUBLISHED
        published = self._find_published_since(backfill, table, unknown)
        if not {State.AT_WORK, State.WAITING}.isdisjoint(states.values()):
            # A run that goes on plans all of its range, and comes to what stands in its turn.
            earlier = self._find_published_earlier(backfill, table)
            published |= {key for key in earlier if states[key] is not State.HELD_BACK}
        return {**states, **dict.fromkeys(published, State.PUBLISHED)}

    def _find_state(self, run: DagsterRun, table: str, key: str) -> State:
        """Finds the state of what a run was the last to plan, and has not published."""
        if run.status in _QUEUED or is_paused(run):
            return State.WAITING
        judged = self.judged.get(run.run_id)
        is_judged = judged is not None and key in judged.by_table.get(table, ())
        return State.HELD_BACK if run.is_finished or is_judged else State.AT_WORK

    def _find_published_since(
        self, backfill: Backfill, table: str, keys: Collection[str]
    ) -> set[str]:
        """Finds what a run of a backfill, or one at work since it was asked for, published last.

        The time of a materialization doesn't tell where an old one was entered again.
        """
        asset_key = AssetKey.from_user_string(table)
        latest = find_latest_materializations(self.instance, asset_key, keys)
        run_ids = {record.run_id for record in latest.values()}
        good = {run.run_id for run in backfill.chain.runs}
        good |= find_touched_since(self.instance, run_ids - good, backfill.requested_at)
        return {key for key, record in latest.items() if record.run_id in good}

    def _find_published_earlier(self, backfill: Backfill, table: str) -> set[str]:
        """Finds what its runs that have ended published last; anew once another one has ended."""
        ended = {run.run_id for run in backfill.chain.runs if run.is_finished}
        known, found = self.earlier.get((backfill.id, table), (set[str](), set[str]()))
        if ended != known:
            latest = find_latest_materializations(
                self.instance, AssetKey.from_user_string(table), backfill.targets[table]
            )
            found = {key for key, record in latest.items() if record.run_id in ended}
            self.earlier[backfill.id, table] = ended, found
        return found

    def _find_planners(self, table: str) -> Mapping[str, str]:
        if self.planners is not None and table in self.planners:
            return self.planners[table]
        found = find_planning_runs(self.instance, AssetKey.from_user_string(table))
        if self.planners is not None:
            self.planners[table] = found
        return found

    def _find_why_paused(self, backfill: Backfill, *, now: datetime) -> str:
        """Finds why a run is paused that none went on with; empty if there is no such run."""
        paused = [run for run in backfill.chain.runs if is_paused(run)]
        if not paused:
            return ""
        # The sensor marks what it went on with a moment later: who planned last is known at once.
        last = {run for table in backfill.targets for run in self._find_planners(table).values()}
        run = next((run for run in paused if run.run_id in last), None)
        if run is None:
            return ""
        return find_why_none_may_go(self.instance, run, list_paused_at(run), now=now) or _MAY_GO_ON

    def _find_why_at_work(self, progress: Progress, *, all_published: bool) -> str:
        backfill = progress.backfill
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
        if progress.why_paused:
            return f"it is paused: {progress.why_paused}"
        failed = any(run.status is DagsterRunStatus.FAILURE for run in backfill.chain.runs)
        if not (failed and progress.has_daemon):
            return ""  # Only a daemon's sensors and retries go on after a run that failed.
        return find_why_unfinished(self.instance, backfill.chain, now=progress.read_at)
