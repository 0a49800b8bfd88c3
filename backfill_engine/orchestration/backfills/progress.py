"""How far a backfill has come, by table."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from dagster import DagsterRunStatus

from backfill_engine.orchestration.backfills.backfills import Backfill

QUEUED = (DagsterRunStatus.QUEUED, DagsterRunStatus.NOT_STARTED)
"""Statuses of a run that works on nothing yet."""


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
                run.status in QUEUED for run in self.backfill.unfinished_runs
            ):
                return "paused"
            waits = all(run.status in QUEUED for run in self.backfill.chain.runs)
            return "requested" if waits else "running"
        if self.partitions and self.published == self.partitions:
            return "published"
        if self.backfill.is_cancelled:
            return "cancelled"
        if self.why_paused:
            return "paused"
        return "failed" if self.backfill.error else "held back"
