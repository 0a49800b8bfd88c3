"""How far a backfill has come, by table, told by what the Dagster instance knows at this moment.

Dagster's own count of a backfill is made anew every 30 s, and leaves out the runs that continue it.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from dagster import AssetKey, DagsterInstance, DagsterRun, DagsterRunStatus

from backfill_assets.orchestration.alerts.alerting import SETTLE_SECONDS
from backfill_assets.orchestration.backfills.backfills import (
    Backfill,
    find_requested,
    read_backfill,
)
from backfill_assets.orchestration.backfills.publications import (
    find_published_by,
    find_published_since,
)
from backfill_assets.orchestration.instance.daemons import has_daemon
from backfill_assets.orchestration.instance.materializations import find_planning_runs
from backfill_assets.orchestration.runs.chains import find_why_unfinished
from backfill_assets.orchestration.runs.pausing import describe_pause
from backfill_assets.orchestration.runs.run_tags import REFUSED_TAG, is_paused
from backfill_assets.orchestration.runs.runs_at_work import UNFINISHED

_QUEUED = (DagsterRunStatus.QUEUED, DagsterRunStatus.NOT_STARTED)


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
        return sum(len(states) for states in self.states.values())

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
        if not self.is_over:
            if self.backfill.is_cancelled:
                return "being cancelled"
            if self.why_paused and all(
                run.status in _QUEUED for run in self.backfill.unfinished_runs
            ):
                return "paused"
            waits = all(run.status in _QUEUED for run in self.backfill.chain.runs)
            return "requested" if waits else "running"
        if self.partitions and self.published == self.partitions:
            return "published"
        if self.backfill.is_cancelled:
            return "cancelled"
        if self.why_paused:
            return "paused"
        return "failed" if self.backfill.error else "held back"


@dataclass(frozen=True)
class ProgressReader:
    """Reads progress again and again; what a run was to publish is read once.

    Attributes:
        instance: knows it.
        requested: what runs were to publish, by run id.
        planners: by table, which run was the last to plan what is not published since. To be kept
            only by who looks at several backfills at one moment.
    """

    instance: DagsterInstance
    requested: dict[str, dict[str, list[str]]] = field(default_factory=dict)
    planners: dict[str, dict[str, str]] | None = None

    def read(self, backfill_id: str, *, now: datetime) -> Progress:
        """Reads how far a backfill has come."""
        return self.measure(read_backfill(self.instance, backfill_id), now=now)

    def measure(self, backfill: Backfill, *, now: datetime) -> Progress:
        """Measures how far a backfill had come when it was read."""
        runs = {run.run_id: run for run in backfill.chain.runs}
        has_ended = backfill.ended_at is not None or (
            backfill.is_cancelled and not backfill.unfinished_runs
        )
        states = {
            table: self._find_states(backfill, runs, table, keys, has_ended=has_ended)
            for table, keys in backfill.targets.items()
        }
        alive = has_daemon(self.instance)
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
        return Progress(backfill, states, at_work, alive, now, why_paused)

    def _find_states(
        self,
        backfill: Backfill,
        runs: Mapping[str, DagsterRun],
        table: str,
        keys: Sequence[str],
        *,
        has_ended: bool,
    ) -> dict[str, State]:
        planned_by = self._find_planners(table)
        asked: dict[str, DagsterRun] = {}
        for run in runs.values():
            if run.run_id not in self.requested:
                self.requested[run.run_id] = find_requested(self.instance, run)
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
            elif planner is None and asked[key].status not in _QUEUED:
                states[key] = State.PUBLISHED
            else:
                states[key] = _find_state(planner or asked[key])
        since = backfill.requested_at
        for key in (
            *find_published_since(self.instance, table, unknown, since=since),
            *find_published_by(self.instance, table, refused, runs, since=since),
        ):
            states[key] = State.PUBLISHED
        return states

    def _find_planners(self, table: str) -> Mapping[str, str]:
        asset_key = AssetKey.from_user_string(table)
        if self.planners is None:
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
                return describe_pause(self.instance, run, now=now)
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
        if all_published or backfill.is_cancelled:
            return ""
        if not backfill.is_settled:
            if backfill.record is None:
                return "more of its runs are to come"
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
    if run.status in _QUEUED or is_paused(run):
        return State.WAITING
    return State.AT_WORK if run.status in UNFINISHED else State.HELD_BACK
