"""`once`: the once-flows and how far they are; takes them in."""

import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Annotated

import typer

from backfill_engine.cli.location import find_module, load_catalog, load_graph
from backfill_engine.cli.options import (
    AsJson,
    OverrideProtection,
    Reason,
    Yes,
    confirm,
    open_instance,
    prepare_planner,
    print_grid,
    print_json,
    recover_dead_runs,
)
from backfill_engine.cli.terminal import echo
from backfill_engine.errors import SettingsError

if TYPE_CHECKING:
    from dagster import DagsterInstance

    from backfill_engine.cli.terminal import Grid
    from backfill_engine.orchestration.planning.once_flows import FlowState
    from backfill_engine.orchestration.planning.plans import Plan
    from backfill_engine.orchestration.runs.option_declarations import Launch

FullRefresh = Annotated[
    bool, typer.Option("--full-refresh", help="Compute them again, though they are published.")
]
ByDaemon = Annotated[
    bool, typer.Option("--launch", help="Leave it to Dagster's daemon: a backfill a flow.")
]

_AT_ONCE = 2
_CALL = "from backfill_engine.cli import main; main()"


def once(
    names: Annotated[
        list[str] | None, typer.Argument(help="Of once-flows; none lists how far all are.")
    ] = None,
    full_refresh: FullRefresh = False,  # noqa: FBT002 (an option)
    launch: ByDaemon = False,  # noqa: FBT002 (an option)
    max_parallel: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Runs that take flows in at once, each by a Spark of its own; 2 if left out, with "
            "--launch as many as there are places.",
        ),
    ] = None,
    reason: Reason = "",
    override_protection: OverrideProtection = None,
    yes: Yes = False,  # noqa: FBT002 (an option)
    as_json: AsJson = False,  # noqa: FBT002 (an option)
) -> None:
    """List the once-flows and how far they are; of those named take in what isn't published yet.

    History that predates what lands daily, declared with its table: docs/once-flows.md. A flow that
    is published is idle: nothing is run, and the exit code is 0. Runs and exit codes are those of
    `run`; of several flows 1 if any is not published.
    """
    flows = list(dict.fromkeys(names or ()))
    if not flows:
        if full_refresh or launch or max_parallel:
            raise SettingsError("name the once-flows that are meant; `once` lists them")
        _print_states(as_json=as_json)
    elif len(flows) == 1 or launch:
        _take_in(
            flows,
            full_refresh=full_refresh,
            launch=launch,
            max_parallel=max_parallel if launch else None,
            reason=reason,
            override_protection=override_protection,
            yes=yes,
            as_json=as_json,
        )
    else:
        _take_in_parallel(
            flows,
            [
                *(["--full-refresh"] if full_refresh else []),
                *(["--reason", reason] if reason else []),
                *(["--override-protection", override_protection] if override_protection else []),
            ],
            max_parallel=max_parallel or _AT_ONCE,
            yes=yes,
            as_json=as_json,
        )


def _read_states(names: Sequence[str] | None = None) -> "list[FlowState]":
    from backfill_engine.lake.table_log import read_log
    from backfill_engine.orchestration.planning.once_flows import find_flow, read_flow_state

    catalog = load_catalog()
    warehouse = catalog.warehouse
    warehouse.check_root()
    for name in names or ():
        find_flow(catalog, name)
    return [
        read_flow_state(catalog, name, read_log(warehouse, catalog.find_table(key)))
        for name, (key, _) in catalog.once_flows.items()
        if names is None or name in names
    ]


def _print_states(*, as_json: bool) -> None:
    states = _read_states()
    if as_json:
        print_json(states)
        return
    print_grid(build_grid(states), width=110)


def build_grid(states: "Sequence[FlowState]") -> "Grid":
    """Builds the grid of flows, of which names alone are broken where there is no room."""
    from rich.box import SIMPLE_HEAD

    from backfill_engine.cli.terminal import Grid

    grid = Grid(box=SIMPLE_HEAD, padding=0)
    for name in ("flow", "table"):
        grid.add_column(name, overflow="fold")
    for name in ("first", "last", "state"):
        grid.add_column(name, no_wrap=True)
    for name in ("published", "rows"):
        grid.add_column(name, justify="right", no_wrap=True)
    for one in states:
        counts = f"{one.published:,} of {one.partitions:,}", f"{one.rows:,}"
        grid.add_row(one.flow, one.table, one.first, one.last, one.state, *counts)
    return grid


def _take_in(
    names: Sequence[str],
    *,
    full_refresh: bool,
    launch: bool,
    max_parallel: int | None,
    reason: str,
    override_protection: str | None,
    yes: bool,
    as_json: bool,
) -> None:
    """Takes one flow in here, or asks the daemon for one or more."""
    from backfill_engine.cli.plan_command import print_plan
    from backfill_engine.cli.run_command import carry_out
    from backfill_engine.orchestration.instance.dagster_internals import make_new_backfill_id
    from backfill_engine.orchestration.planning.launching import check_launch, request_planned
    from backfill_engine.orchestration.planning.once_flows import build_flow_launch

    catalog = load_catalog()
    with open_instance() as instance:
        recover_dead_runs(instance)
        plans: list[tuple[Plan, Launch]] = []
        for name, plan in _plan(instance, names, full_refresh=full_refresh, as_json=as_json):
            launched = build_flow_launch(catalog, name, full_refresh=full_refresh, reason=reason)
            told = launched.model_copy(
                update={"override_protection": override_protection, "max_parallel": max_parallel}
            )
            if not as_json:
                print_plan(plan, downstream=False)
            plans.append((plan, check_launch(catalog, plan, told)))
        if not plans:
            return
        if not yes:
            confirm("launch it?" if launch else "run it?", is_aside=as_json)
        if not launch:
            ((plan, told),) = plans
            carry_out(instance, plan, told, as_json=as_json)
            return
        together = make_new_backfill_id()
        requested = [
            request_planned(catalog, instance, load_graph(), *one, bounded_with=together)
            for one in plans
        ]
    if as_json:
        print_json(requested)
        return
    from backfill_engine.orchestration.instance.processes import DAEMON_COMMANDS, NO_DAEMON

    for one in requested:
        echo(f"requested backfill {one.backfill_id}: {one.title}")
    if not requested[-1].has_daemon:
        echo(f"{NO_DAEMON}: they wait for {DAEMON_COMMANDS}", err=True)


def _plan(
    instance: "DagsterInstance", names: Sequence[str], *, full_refresh: bool, as_json: bool
) -> "list[tuple[str, Plan]]":
    """Plans what is left of flows; says of the others that nothing is."""
    catalog = load_catalog()
    states = _read_states(names)
    idle = [one for one in states if not one.missing and not full_refresh]
    if as_json and len(idle) == len(states):
        print_json(idle)
    else:
        for one in idle:
            echo(str(one), err=as_json)
    if len(idle) == len(states):
        return []
    from backfill_engine.orchestration.planning.once_flows import plan_flow

    planner = prepare_planner(instance)
    plans = (
        (one.flow, plan_flow(catalog, planner, one.flow, full_refresh=full_refresh))
        for one in states
    )
    return [(name, plan) for name, plan in plans if plan is not None]


def _take_in_parallel(
    names: Sequence[str], options: Sequence[str], *, max_parallel: int, yes: bool, as_json: bool
) -> None:
    """Takes flows in by a process each, so many at once; they end with the shell's Ctrl-C."""
    states = _read_states(names)
    codes: set[int] = set()
    for one in states:
        echo(str(one), err=as_json)
    if any(one.missing for one in states) or "--full-refresh" in options:
        if not yes:
            confirm("run them?", is_aside=as_json)
        with ThreadPoolExecutor(max_parallel) as pool:
            codes = set(pool.map(lambda name: _run_process(name, options), names))
    if as_json:
        print_json(_read_states(names))
    if failed := codes - {0}:
        raise typer.Exit(failed.pop() if len(failed) == 1 else 1)


def _run_process(name: str, options: Sequence[str]) -> int:
    """Runs `once NAME`, and prints its lines with the name before each; returns its exit code."""
    process = subprocess.Popen(
        [sys.executable, "-c", _CALL, "-m", find_module(), "once", name, "--yes", *options],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert process.stdout is not None
    for line in process.stdout:
        echo(f"{name}: {line.rstrip()}", err=True)
    return process.wait()
