"""`run`: carries a plan out here and now, in the foreground, without a daemon."""

import signal
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import chain
from typing import TYPE_CHECKING

import typer

from backfill_engine.cli.launch_options import Asked, HowToRun, Yes, make_plan
from backfill_engine.cli.location import load_catalog, load_graph
from backfill_engine.cli.options import (
    AsJson,
    confirm,
    open_instance,
    print_json,
    recover_dead_runs,
)
from backfill_engine.cli.spread_options import spread_options
from backfill_engine.cli.terminal import echo
from backfill_engine.errors import BackfillError

if TYPE_CHECKING:
    from dagster import DagsterInstance

    from backfill_engine.orchestration.backfills.backfill_outcomes import Verdicts
    from backfill_engine.orchestration.backfills.foreground import Foreground, RangeRun
    from backfill_engine.orchestration.planning.launching import Launch
    from backfill_engine.orchestration.planning.plans import Plan

_CANCELLED_EXIT = 130
_WAITING_EXIT = 3


@spread_options
def run(
    asked: Asked,
    how: HowToRun,
    yes: Yes = False,  # noqa: FBT002 (an option)
    as_json: AsJson = False,  # noqa: FBT002 (an option)
) -> None:
    """Show the plan and run it here, without a daemon: progress by table, then the verdicts.

    The runs are Dagster's, as the UI shows them: tables with those that they read in one, where
    their ranges are the same. What does not depend on withheld or failed partitions goes on.
    Refused while other runs are at work on any of the partitions. Ctrl-C ends it, and so does a
    `cancel` or a `pause` from elsewhere; what was published stays whole. With --json the verdicts
    are printed as JSON, progress goes to stderr.

    Exit 0: all is published; 1: something was withheld or failed; 3: what isn't published waits for
    what never came, or it was paused; 130: cancelled.
    """
    from backfill_engine.cli.plan_grid import print_plan
    from backfill_engine.cli.verdict_grid import print_idle
    from backfill_engine.orchestration.backfills.backfill_outcomes import build_idle_verdicts
    from backfill_engine.orchestration.planning.launching import check_launch

    catalog = load_catalog()
    how = how.fill_in(asked.template)
    with open_instance() as instance:
        recover_dead_runs(instance)
        plan = make_plan(instance, asked, how)
        if not as_json:
            print_plan(plan, downstream=asked.takes_downstream)
        told = check_launch(catalog, plan, how.build_launch())
        if not any(table.partitions for table in plan.tables):
            if as_json:
                print_json(build_idle_verdicts(plan))
            else:
                print_idle(build_idle_verdicts(plan))
            return
        if not yes:
            confirm("run it?", is_aside=as_json)
        carry_out(instance, plan, told, as_json=as_json)


def carry_out(instance: "DagsterInstance", plan: "Plan", told: "Launch", *, as_json: bool) -> None:
    """Carries a plan out, prints the verdicts, and exits as `run` does.

    Raises:
        BackfillError: if no run could be made at all.
        typer.Exit: if not all is published.
    """
    from backfill_engine.cli.verdict_grid import print_verdicts

    found, is_broken = _carry_out(instance, plan, told, as_json=as_json)
    if as_json:
        print_json(found)
    else:
        print_verdicts(found)
    if is_broken:
        raise typer.Exit(1)
    if found.state == "cancelled":
        raise typer.Exit(_CANCELLED_EXIT)
    if found.state != "published":
        waits = found.only_waits or found.state == "paused"
        raise typer.Exit(_WAITING_EXIT if waits else 1)


def _carry_out(
    instance: "DagsterInstance", plan: "Plan", told: "Launch", *, as_json: bool
) -> "tuple[Verdicts, bool]":
    """Returns the verdicts, and whether an error ended it."""
    from backfill_engine.cli.worker_process import open_worker
    from backfill_engine.orchestration.backfills.backfill_outcomes import find_verdicts
    from backfill_engine.orchestration.backfills.foreground import Foreground, build_range_runs
    from backfill_engine.orchestration.instance.dagster_internals import make_new_backfill_id
    from backfill_engine.orchestration.planning.plans import list_planned_partitions

    catalog = load_catalog()
    graph, launch_id = load_graph(), make_new_backfill_id()
    targets = {
        key.to_user_string(): keys for key, keys in list_planned_partitions(catalog, plan).items()
    }
    requests = build_range_runs(catalog, graph, plan, told, launch_id=launch_id)
    warehouse, cancelled, error = catalog.warehouse, False, ""
    with open_worker() as worker, _interrupt_on_termination():
        foreground = Foreground(catalog, instance, graph, warehouse, worker, launch_id, targets)
        try:
            _show(foreground, requests, as_json=as_json)
        except KeyboardInterrupt:
            cancelled = True
            echo("cancelling: the run at work ends, what it published stays", err=True)
            foreground.cancel()
        except BackfillError as problem:
            if not foreground.runs:
                raise
            error = str(problem)
            foreground.cancel()
    found = find_verdicts(
        catalog, instance, warehouse, foreground, plan, is_cancelled=cancelled, error=error
    )
    return found, bool(error)


def _show(foreground: "Foreground", requests: "Iterable[RangeRun]", *, as_json: bool) -> None:
    """Carries runs out, and shows how they come on: bars on a terminal, else a line a change."""
    from backfill_engine.cli.progress_lines import show_progress
    from backfill_engine.orchestration.backfills.progress_reader import ProgressReader

    catalog = load_catalog()
    reader = ProgressReader(catalog, foreground.instance)
    states = foreground.carry_out(requests)
    begun = next(states)
    with show_progress(begun, as_json=False, is_aside=as_json) as display:
        for backfill in chain([begun], states):
            display.show(reader.measure(backfill, now=datetime.now(tz=UTC)))
        display.show(reader.measure(foreground.read(), now=datetime.now(tz=UTC)))


@contextmanager
def _interrupt_on_termination() -> Iterator[None]:
    """Takes the end of the shell's session, and `kill`, as Ctrl-C, so that the run ends with it."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    names = (signal.SIGTERM, signal.SIGHUP)
    before = {name: signal.signal(name, interrupt) for name in names}
    try:
        yield
    finally:
        for name, handler in before.items():
            signal.signal(name, handler)
