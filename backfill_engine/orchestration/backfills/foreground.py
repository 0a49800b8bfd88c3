"""Carries a plan out as runs, one after the other, for a shell that waits; without a daemon.

They are Dagster's runs like any other, in a process of their own, and all that is known of them is
in the instance: whoever looks there sees the same.
"""

import time
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from dagster import AssetKey, DagsterInstance, DagsterRun, DagsterRunStatus, RunsFilter
from pydantic import TypeAdapter

from backfill_engine.catalog import Catalog
from backfill_engine.errors import BackfillError
from backfill_engine.lake.warehouse import Warehouse
from backfill_engine.orchestration.backfills.backfills import Backfill
from backfill_engine.orchestration.backfills.remainders import group_tables
from backfill_engine.orchestration.instance.dagster_internals import AssetGraph
from backfill_engine.orchestration.planning.launching import build_launch_tags
from backfill_engine.orchestration.planning.plans import Plan
from backfill_engine.orchestration.runs.chains import read_chain
from backfill_engine.orchestration.runs.continuation import find_continuation
from backfill_engine.orchestration.runs.option_declarations import Launch
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

_LOOK_AGAIN_SECONDS = 0.5
_CANCEL_SECONDS = 60.0
_CANCELLED = "cancelled at the shell"

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

    def continue_chain(self, chain_id: str) -> "RangeRun":
        """Returns the same run as one of a chain that another began."""
        return replace(self, tags={**self.tags, CHAIN_TAG: chain_id})

    @property
    def all_tags(self) -> dict[str, str]:
        """All tags of the run."""
        return {**self.tags, RANGE_START_TAG: self.first, RANGE_END_TAG: self.last}

    def __str__(self) -> str:
        """Names assets and range."""
        return f"{', '.join(self.assets)} {self.first}...{self.last}"

    def to_json(self) -> str:
        """Writes it as one line of JSON."""
        return _RANGE_RUNS.dump_json(self).decode()

    @classmethod
    def from_json(cls, text: str) -> "RangeRun":
        """Reads what `to_json` wrote."""
        return _RANGE_RUNS.validate_json(text)


_RANGE_RUNS = TypeAdapter(RangeRun)


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
    tags = {
        **build_launch_tags(launch),
        FOREGROUND_TAG: launch_id,
        **_NO_RETRIES,
    }
    ranges = {one.table: one.ranges for one in plan.tables if one.partitions}
    return [
        RangeRun(tables, first, last, tags)
        for tables in group_tables(catalog, graph, ranges)
        for first, last in ranges[tables[0]]
    ]


def find_continuing_runs(
    catalog: Catalog,
    instance: DagsterInstance,
    graph: AssetGraph,
    warehouse: Warehouse,
    run: DagsterRun,
    done: RangeRun,
) -> list[RangeRun]:
    """Finds the runs that go on where a run withheld partitions, as the sensor does elsewhere.

    Args:
        catalog: of the code location.
        catalog: of the code location.
        instance: the Dagster instance.
        graph: of all assets.
        warehouse: the tables.
        run: as it ended.
        done: as it was asked for.
    """
    withheld = run.tags.get(WITHHELD_TAG)
    if withheld is None or run.status is not DagsterRunStatus.FAILURE:
        return []
    found = find_continuation(
        catalog,
        instance,
        graph,
        AssetKey.from_user_string(withheld),
        run,
        warehouse=warehouse,
        first=done.first,
        last=done.last,
    )
    return [
        replace(
            done,
            assets=tuple(key.to_user_string() for key in found.assets),
            first=first,
            last=last,
            tags={**done.tags, CONTINUES_TAG: run.run_id},
            config=build_asset_config(run, found.assets),
        )
        for first, last in found.ranges
    ]


class Worker(Protocol):
    """A process that executes runs, one after the other."""

    def start(self, request: RangeRun) -> None:
        """Begins a run; the one before it has ended."""
        ...

    def is_alive(self) -> bool:
        """Tells whether the process is there."""
        ...

    def interrupt(self) -> None:
        """Interrupts the run, as Ctrl-C does."""
        ...

    def kill(self) -> None:
        """Ends the process at once."""
        ...

    def describe_end(self) -> str:
        """Says how the process ended, and its last words."""
        ...


@dataclass
class Foreground:
    """Runs that are carried out while a shell waits.

    Attributes:
        catalog: of the code location.
        instance: the Dagster instance.
        graph: of all assets.
        warehouse: the tables.
        worker: the process for them.
        launch_id: by which they are found.
        targets: the partitions that they are to publish, by table key.
        runs: those that were made, by id; the first names their chain.
    """

    catalog: Catalog
    instance: DagsterInstance
    graph: AssetGraph
    warehouse: Warehouse
    worker: Worker
    launch_id: str
    targets: Mapping[str, Sequence[str]]
    runs: dict[str, DagsterRun] = field(default_factory=dict)

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
            chain_id = next(iter(self.runs), None)
            self.worker.start(request.continue_chain(chain_id) if chain_id else request)
            run = None
            while run is None or not run.is_finished:
                time.sleep(_LOOK_AGAIN_SECONDS)
                if self._is_cancelled():
                    self.cancel()
                    return
                run = self._look()
                if run is not None:
                    yield self.read(goes_on=True)
            if is_paused(run) or run.status is DagsterRunStatus.CANCELED:
                return
            next_runs = find_continuing_runs(
                self.catalog, self.instance, self.graph, self.warehouse, run, request
            )
            waiting.extendleft(reversed(next_runs))

    def read(self, *, goes_on: bool = False) -> Backfill:
        """Reads what there is of the runs; at least one was made."""
        chain = read_chain(self.instance, next(iter(self.runs)))
        return Backfill(chain, None, self.targets, goes_on=goes_on)

    def cancel(self) -> None:
        """Ends the run that works, and waits until it has; what it published stays whole.

        A second Ctrl-C doesn't wait for it.
        """
        run = self._find_unfinished()
        if run is None:
            self.worker.kill()  # it may be about to make one
            run = self._find_unfinished()
        if run is None:
            return
        self.runs[run.run_id] = run
        try:
            self.instance.report_run_canceling(run, _CANCELLED)
            self.worker.interrupt()
            deadline = time.monotonic() + _CANCEL_SECONDS
            while self._find_unfinished() and self.worker.is_alive():
                if time.monotonic() >= deadline:
                    break
                time.sleep(_LOOK_AGAIN_SECONDS)
        except KeyboardInterrupt:
            pass
        if self._find_unfinished():
            self.worker.kill()
            self.instance.report_run_canceled(run, _CANCELLED)

    def _look(self) -> DagsterRun | None:
        """Looks at the run that works, until it has ended; None if it isn't made yet."""
        alive = self.worker.is_alive()  # before looking: what it did last is not to be missed
        known = {run_id for run_id, run in self.runs.items() if run.is_finished}
        found = self.instance.get_runs(RunsFilter(tags={FOREGROUND_TAG: self.launch_id}))
        run = next((one for one in found if one.run_id not in known), None)
        if run is None and not alive:
            raise BackfillError(f"no run could be made: {self.worker.describe_end()}")
        if run is not None and not run.is_finished and not alive:
            self.instance.report_run_failed(run, f"its process ended: {self.worker.describe_end()}")
            run = self.instance.get_run_by_id(run.run_id)
        if run is not None:
            self.runs[run.run_id] = run
        return run

    def _is_cancelled(self) -> bool:
        """Tells whether somebody cancelled them elsewhere, while no run was at work."""
        first = self.instance.get_run_by_id(next(iter(self.runs), ""))
        return first is not None and FOREGROUND_CANCELLED_TAG in first.tags

    def _find_unfinished(self) -> DagsterRun | None:
        found = self.instance.get_runs(RunsFilter(tags={FOREGROUND_TAG: self.launch_id}))
        return next((run for run in found if not run.is_finished), None)
