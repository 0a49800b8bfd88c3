"""Carries a plan out as runs, one after the other, for a shell that waits; without a daemon.

The runs are Dagster's like any other, in the shell's process. All that is known of them is in the
instance: whoever looks there sees the same.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from threading import Event, Thread
from time import monotonic
from typing import Any

from dagster import AssetKey, DagsterInstance, DagsterRun, DagsterRunStatus, RunsFilter

from backfill_engine.catalog import Catalog
from backfill_engine.errors import BackfillError
from backfill_engine.lake.warehouse import Warehouse
from backfill_engine.orchestration.backfills.backfills import Backfill
from backfill_engine.orchestration.backfills.resuming import group_tables
from backfill_engine.orchestration.instance.dagster_internals import AssetGraph
from backfill_engine.orchestration.planning.launching import build_launch_tags
from backfill_engine.orchestration.planning.plans import Plan
from backfill_engine.orchestration.records.failures import describe_in_a_line, describe_known_cause
from backfill_engine.orchestration.runs.chains import read_chain
from backfill_engine.orchestration.runs.option_declarations import Launch
from backfill_engine.orchestration.runs.pausing import find_continuation
from backfill_engine.orchestration.runs.run_options import build_asset_config
from backfill_engine.orchestration.runs.run_tags import (
    CHAIN_TAG,
    CONTINUES_TAG,
    FOREGROUND_CANCELLED_TAG,
    FOREGROUND_ENDED_TAG,
    FOREGROUND_TAG,
    RANGE_END_TAG,
    RANGE_START_TAG,
    WITHHELD_TAG,
    is_paused,
)
from backfill_engine.resources import interrupt_sessions

_LOOK_AGAIN_SECONDS = 0.5
_CANCEL_SECONDS = 60.0
_CANCELLED = "cancelled at the shell"
_ENDED_BY_ITSELF = (DagsterRunStatus.SUCCESS, DagsterRunStatus.CANCELED)

# A daemon that is there, too, would start a run that crashed again, behind the back of who waits.
_NO_RETRIES = {"dagster/max_retries": "0"}


@dataclass(frozen=True)
class RangeRun:
    """A run that is to be made.

    Attributes:
        assets: keys of its assets, `layer/name`, upstream ones first.
        first: first partition key, of each of them.
        last: last partition key, included.
        tags: of the run, beside those of its range.
        config: of the run.
    """

    assets: tuple[str, ...]
    first: str
    last: str
    tags: Mapping[str, str] = field(default_factory=dict)
    config: Mapping[str, Any] = field(default_factory=dict)

    @property
    def all_tags(self) -> dict[str, str]:
        """All tags of the run."""
        return {**self.tags, RANGE_START_TAG: self.first, RANGE_END_TAG: self.last}


def build_range_runs(
    catalog: Catalog, graph: AssetGraph, plan: Plan, launch: Launch, *, launch_id: str
) -> list[RangeRun]:
    """Builds the runs of a plan, in an order in which each finds what it reads.

    A table goes with those that it reads in one run, where they have the same ranges of the same
    grain: one session does for all.

    Args:
        catalog: of the code location.
        graph: of all assets.
        plan: what to run.
        launch: what else they are told.
        launch_id: a word of its own, by which the runs are found.
    """
    tags = {**build_launch_tags(launch), FOREGROUND_TAG: launch_id, **_NO_RETRIES}
    ranges = {
        table_plan.table: table_plan.ranges for table_plan in plan.tables if table_plan.partitions
    }
    return [
        RangeRun(tables, first, last, tags)
        for tables in group_tables(catalog, graph, ranges)
        for first, last in ranges[tables[0]]
    ]


class Execution(Thread):
    """Executes a run, so that the shell's thread can show how it comes on and hear Ctrl-C.

    Dagster takes the signals of the thread that executes a run if that is the main one, and calls
    a run failed that was interrupted before the instance knows that somebody cancels it.

    Attributes:
        error: what kept the run from being made; what fails within a run, the instance knows.
        has_ended: is waited for in place of `join`, after which, if Ctrl-C interrupts it, Python
            takes the thread for ended (bpo-45274).
    """

    def __init__(self, execute: Callable[[RangeRun], None], request: RangeRun) -> None:
        super().__init__(daemon=True)
        self._execute, self._request = execute, request
        self.error: BaseException | None = None
        self.has_ended = Event()

    def run(self) -> None:
        """Executes the run; overrides the thread's own method."""
        try:
            self._execute(self._request)
        except BaseException as error:  # the shell's thread asks for it
            self.error = error
        finally:
            self.has_ended.set()

    def interrupt(self) -> None:
        """Ends what Spark computes for the run, until the run has ended; a minute at most."""
        deadline = monotonic() + _CANCEL_SECONDS
        while not self.has_ended.is_set() and monotonic() < deadline:
            interrupt_sessions()
            self.has_ended.wait(_LOOK_AGAIN_SECONDS)


@dataclass
class Foreground:
    """Runs that are carried out while a shell waits.

    Attributes:
        catalog: of the code location.
        instance: the Dagster instance.
        graph: of all assets.
        warehouse: the tables.
        execute: makes a run and executes it.
        launch_id: by which they are found.
        targets: the partitions that they are to publish, by table key.
        runs: those that were made, by id; the first names their chain.
        execution: the last one that was begun.
    """

    catalog: Catalog
    instance: DagsterInstance
    graph: AssetGraph
    warehouse: Warehouse
    execute: Callable[[RangeRun], None]
    launch_id: str
    targets: Mapping[str, Sequence[str]]
    runs: dict[str, DagsterRun] = field(default_factory=dict)
    execution: Execution | None = None

    def carry_out(self, requests: Iterable[RangeRun]) -> Iterator[Backfill]:
        """Executes runs in their order, and what goes on after those that withheld something.

        It stops at a run that paused, or that somebody cancelled elsewhere. Who looks from
        elsewhere is told by a tag that no more runs are to come.

        Yields:
            What there is of them, again and again; from the first run on.

        Raises:
            BackfillError: if no run can be made.
        """
        try:
            yield from self._carry_out(deque(requests))
        finally:
            for run_id in [*self.runs][-1:]:
                self.instance.add_run_tags(run_id, {FOREGROUND_ENDED_TAG: "true"})

    def _carry_out(self, waiting: "deque[RangeRun]") -> Iterator[Backfill]:
        while waiting and not self._is_cancelled():
            request = waiting.popleft()
            if self.runs:
                chain = {CHAIN_TAG: next(iter(self.runs))}
                request = replace(request, tags={**request.tags, **chain})
            self.execution = Execution(self.execute, request)
            self.execution.start()
            run = None
            while run is None or not run.is_finished:
                self.execution.has_ended.wait(_LOOK_AGAIN_SECONDS)
                if self._is_cancelled():
                    self.cancel()
                    return
                run = self._look(self.execution)
                if run is not None:
                    yield self.read(goes_on=True)
            if is_paused(run) or run.status is DagsterRunStatus.CANCELED:
                return
            waiting.extendleft(reversed(self._find_continuing(run, request)))
            self.execution.has_ended.wait()  # it lets go of what the run had

    def _find_continuing(self, run: DagsterRun, done: RangeRun) -> list[RangeRun]:
        """Finds the runs that go on where a run withheld partitions, as the sensor does."""
        withheld = run.tags.get(WITHHELD_TAG)
        if withheld is None or run.status is not DagsterRunStatus.FAILURE:
            return []
        found = find_continuation(
            self.catalog,
            self.instance,
            self.graph,
            AssetKey.from_user_string(withheld),
            run,
            warehouse=self.warehouse,
        )
        assets = tuple(key.to_user_string() for key in found.assets)
        tags = {**done.tags, CONTINUES_TAG: run.run_id}
        config = build_asset_config(run, found.assets)
        return [RangeRun(assets, first, last, tags, config) for first, last in found.ranges]

    def read(self, *, goes_on: bool = False) -> Backfill:
        """Reads what there is of the runs; at least one was made."""
        chain = read_chain(self.instance, next(iter(self.runs)))
        return Backfill(chain, None, self.targets, goes_on=goes_on)

    def cancel(self) -> None:
        """Ends the run that works, and waits until it has; what it published stays whole.

        A second Ctrl-C doesn't wait for it. It counts as cancelled if the signal has ended what it
        computed, so that it failed, before it is told.
        """
        if self.execution is None:
            return
        run = self._find_run()
        with suppress(KeyboardInterrupt):
            if run is not None and not run.is_finished:
                self.instance.report_run_canceling(run, _CANCELLED)
            self.execution.interrupt()
        run = self.instance.get_run_by_id(run.run_id) if run else self._find_run()
        if run is not None and run.status not in _ENDED_BY_ITSELF:
            self.instance.report_run_canceled(run, _CANCELLED)

    def _look(self, execution: Execution) -> DagsterRun | None:
        """Looks at the run that works, until it has ended; None if it isn't made yet."""
        has_ended = execution.has_ended.is_set()  # before looking, to miss nothing that it did last
        run = self._find_run()
        if not has_ended or (run is not None and run.is_finished):
            return run
        error = execution.error or RuntimeError("it came to no end")
        why = describe_known_cause(error) or describe_in_a_line(error)
        if run is None:
            raise BackfillError(f"no run could be made: {why}")
        self.instance.report_run_failed(run, why)
        return self._find_run()

    def _find_run(self) -> DagsterRun | None:
        """Finds the run that works, or has ended since the last look."""
        known = {run_id for run_id, run in self.runs.items() if run.is_finished}
        found = self.instance.get_runs(RunsFilter(tags={FOREGROUND_TAG: self.launch_id}))
        run = next((run for run in found if run.run_id not in known), None)
        if run is not None:
            self.runs[run.run_id] = run
        return run

    def _is_cancelled(self) -> bool:
        """Tells whether somebody cancelled them elsewhere, while no run was at work."""
        first = self.instance.get_run_by_id(next(iter(self.runs), ""))
        return first is not None and FOREGROUND_CANCELLED_TAG in first.tags
