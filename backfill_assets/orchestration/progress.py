"""How far a backfill has come, by table, told by what the Dagster instance knows at this moment.

Dagster's own count of a backfill is made anew every 30 s, and leaves out the runs that continue it.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from dagster import (
    AssetKey,
    AssetRecordsFilter,
    DagsterInstance,
    DagsterRun,
    DagsterRunStatus,
)

from backfill_assets.orchestration.alerting import SETTLE_SECONDS
from backfill_assets.orchestration.backfills import Backfill, find_requested, read_backfill
from backfill_assets.orchestration.chains import find_why_unfinished
from backfill_assets.orchestration.daemons import has_daemon
from backfill_assets.orchestration.materializations import find_planning_runs
from backfill_assets.orchestration.runs_at_work import UNFINISHED

_QUEUED = (DagsterRunStatus.QUEUED, DagsterRunStatus.NOT_STARTED)
_PAGE = 1000


class State(StrEnum):
    """Where a partition of a backfill stands."""

    PUBLISHED = "published"
    """By one of its runs, or by another one since."""
    HELD_BACK = "held back"
    """Withheld, failed, cancelled, or never requested as what it reads was held back."""
    AT_WORK = "at work"
    WAITING = "waiting"
    """For its run to be requested, or to leave the queue."""


@dataclass(frozen=True)
class TableProgress:
    """How far a table has come, in partitions.

    Attributes:
        table: `layer/name`.
        partitions: how many the backfill is to publish.
        published: of these.
        held_back: withheld, failed, cancelled or never requested, at the end of their run.
        at_work: a run works on them.
        waiting: for their run.
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
    """

    backfill: Backfill
    states: Mapping[str, Mapping[str, State]]
    at_work: str
    has_daemon: bool
    read_at: datetime

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
            waits = all(run.status in _QUEUED for run in self.backfill.chain.runs)
            return "requested" if waits else "running"
        if self.partitions and self.published == self.partitions:
            return "published"
        if self.backfill.is_cancelled:
            return "cancelled"
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
        at_work = self._find_why_at_work(
            backfill, all_published=all_published, has_daemon=alive, now=now
        )
        return Progress(backfill, states, at_work, alive, now)

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
        for key in keys:
            # A run that has just been made may not have planned its partitions yet.
            planner = runs.get(planned_by.get(key, ""))
            if key not in asked and not has_ended:
                states[key] = State.WAITING
            elif key not in asked or (key in planned_by and planner is None):
                # None of its runs was the last at it: another one may have published it since.
                unknown.add(key)
                states[key] = State.HELD_BACK
            elif planner is None and asked[key].status not in _QUEUED:
                states[key] = State.PUBLISHED
            else:
                run = planner or asked[key]
                at_work = State.WAITING if run.status in _QUEUED else State.AT_WORK
                states[key] = at_work if run.status in UNFINISHED else State.HELD_BACK
        since = backfill.requested_at.timestamp()
        for key in self._find_published(table, unknown, since=since):
            states[key] = State.PUBLISHED
        return states

    def _find_planners(self, table: str) -> Mapping[str, str]:
        asset_key = AssetKey.from_user_string(table)
        if self.planners is None:
            return find_planning_runs(self.instance, asset_key)
        if table not in self.planners:
            self.planners[table] = find_planning_runs(self.instance, asset_key)
        return self.planners[table]

    def _find_published(self, table: str, keys: Collection[str], *, since: float) -> set[str]:
        """Finds those that any run published since."""
        found: set[str] = set()
        listed = sorted(keys)
        for first in range(0, len(listed), _PAGE):
            page = listed[first : first + _PAGE]
            wanted = AssetRecordsFilter(
                AssetKey.from_user_string(table), asset_partitions=page, after_timestamp=since
            )
            records = self.instance.fetch_materializations(wanted, limit=10 * _PAGE).records
            found |= {record.partition_key for record in records if record.partition_key}
        return found

    def _find_why_at_work(
        self, backfill: Backfill, *, all_published: bool, has_daemon: bool, now: datetime
    ) -> str:
        if backfill.unfinished_runs:
            return f"{len(backfill.unfinished_runs)} of its runs have not ended"
        if all_published or backfill.is_cancelled:
            return ""
        if not backfill.is_settled:
            if backfill.record is None:
                return "more of its runs are to come"
            return f"the backfill is {backfill.record.status.value.lower()}"
        failed = any(run.status is DagsterRunStatus.FAILURE for run in backfill.chain.runs)
        if not (failed and has_daemon):
            return ""  # Only a daemon's sensors and retries go on after a run that failed.
        return find_why_unfinished(
            self.instance, backfill.chain, now=now, settle_seconds=SETTLE_SECONDS
        )
