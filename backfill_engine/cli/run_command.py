"""`run`: carries a plan out here and now, in the foreground, without a daemon."""

import signal
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, TextIO

import typer

from backfill_engine.cli.launch_options import PartitionOptions, add_origin, make_plan
from backfill_engine.cli.location import load_catalog, load_graph, open_instance
from backfill_engine.cli.options import AsJson, Yes, spread_options
from backfill_engine.cli.terminal import (
    Grid,
    echo,
    echo_commands,
    echo_lines,
    keep_terminal,
    print_answer,
    print_grid,
    write_text,
)
from backfill_engine.errors import BackfillError
from backfill_engine.orchestration.runs.option_declarations import Launch

if TYPE_CHECKING:
    from dagster import DagsterInstance

    from backfill_engine.orchestration.backfills.foreground import Foreground, RangeRun
    from backfill_engine.orchestration.backfills.outcomes import Verdicts
    from backfill_engine.orchestration.planning.plans import Plan

_CANCELLED_EXIT = 130
_WAITING_EXIT = 3


@spread_options
def run(
    partitions: PartitionOptions, request: Launch, yes: Yes = False, as_json: AsJson = False
) -> None:
    """Show the plan and run it here, without a daemon; then the verdicts.

    What doesn't depend on bad partitions goes on. Refused while other runs work on
    any. Ctrl-C, `backfill cancel` or `pause` end it; what was published stays.

    Exit 0: all is published; 1: something was withheld or failed; 3: what isn't published waits for
    what never came, or it was paused; 130: cancelled.

    Example: backfill-assets run --from 2013-01-10 --to 2013-01-14
    """
    from backfill_engine.cli.plan_commands import agree_on
    from backfill_engine.orchestration.backfills.outcomes import build_idle_verdicts

    request, takes_downstream = partitions.template.fill_in(request), partitions.takes_downstream
    with open_instance() as instance:
        plan = make_plan(instance, partitions, request, recovers=True)
        checked = agree_on(
            plan, request, "run it?", downstream=takes_downstream, yes=yes, as_json=as_json
        )
        if checked is None:
            print_answer(build_idle_verdicts(plan), print_idle, as_json=as_json)
        else:
            carry_out(instance, plan, checked, as_json=as_json)


def carry_out(instance: "DagsterInstance", plan: "Plan", request: Launch, *, as_json: bool) -> None:
    """Carries a plan out, prints the verdicts, and exits as `run` does.

    Raises:
        BackfillError: if no run could be made at all.
        typer.Exit: if not all is published.
    """
    from backfill_engine.cli.job_runs import materialize
    from backfill_engine.orchestration.backfills.foreground import Foreground, build_range_runs
    from backfill_engine.orchestration.backfills.outcomes import find_verdicts
    from backfill_engine.orchestration.instance.dagster_internals import make_new_backfill_id
    from backfill_engine.orchestration.planning.plans import list_planned_partitions

    catalog = load_catalog()
    graph, launch_id = load_graph(), make_new_backfill_id()
    targets = {
        key.to_user_string(): keys for key, keys in list_planned_partitions(catalog, plan).items()
    }
    requests = build_range_runs(catalog, graph, plan, add_origin(request), launch_id=launch_id)
    warehouse, cancelled, error = catalog.warehouse, False, ""
    execute = partial(materialize, instance)
    foreground = Foreground(catalog, instance, graph, warehouse, execute, launch_id, targets)
    with _interrupt_on_termination(), keep_terminal(is_aside=as_json) as terminal:
        try:
            _show(foreground, requests, terminal, is_aside=as_json)
        except KeyboardInterrupt:
            cancelled = True
            echo("cancelling: the run at work ends, what it published stays", file=terminal)
            foreground.cancel()
        except BackfillError as problem:
            if not foreground.runs:
                raise
            error = str(problem)
            foreground.cancel()
    found = find_verdicts(
        catalog, instance, warehouse, foreground, plan, is_cancelled=cancelled, error=error
    )
    print_answer(found, print_verdicts, as_json=as_json)
    if error:
        raise typer.Exit(1)
    if found.state == "cancelled":
        raise typer.Exit(_CANCELLED_EXIT)
    if found.state != "published":
        waits = found.only_waits or found.state == "paused"
        raise typer.Exit(_WAITING_EXIT if waits else 1)


def _show(
    foreground: "Foreground", requests: "Iterable[RangeRun]", terminal: TextIO, *, is_aside: bool
) -> None:
    """Carries runs out, and shows how they come on: bars on a terminal, else a line a change."""
    from backfill_engine.cli.progress_lines import show_progress
    from backfill_engine.orchestration.backfills.progress_reader import ProgressReader

    reader = ProgressReader(foreground.catalog, foreground.instance)
    states = foreground.carry_out(requests)
    begun = next(states)
    with show_progress(begun, as_json=False, is_aside=is_aside, file=terminal) as display:
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


_LISTED = 7
_COLOURS = {"withheld": "red", "failed": "red"}


def print_verdicts(found: "Verdicts") -> None:
    """Prints a row for what was published of each table, and one for each reason it was not.

    The last line says how much was published, and how much was left as up to date.
    """
    if found.tables:
        print_grid(build_grid(found))
    for error in found.errors:
        echo_lines(error, err=True)
    if not found.run_id:
        echo("cancelled before a run was made; nothing was published")
        return
    echo(f"`backfill-assets proof certificate {found.run_id[:8]}` has what was done")
    if found.state == "paused":
        again = "the same command again; what is published stays as it is"
        echo_commands("to go on:", [*found.commands, again])
    else:
        echo_commands("next, once the cause is mended:", found.commands)
    counts = ", ".join(
        f"{table.published:,} of {table.partitions:,} of {table.table}" for table in found.tables
    )
    state = "published:" if found.state == "published" else f"{found.state}: published"
    echo(f"{state} {counts}{_describe_left(found)}")


def print_idle(found: "Verdicts") -> None:
    """Prints that nothing is to be run, and how much is up to date, where somebody looked."""
    echo(f"nothing is to be run{_describe_left(found)}")


def _describe_left(found: "Verdicts") -> str:
    return f"; {found.up_to_date:,} left as up to date" if found.up_to_date else ""


def _list_warnings(warned: Mapping[str, str]) -> str:
    from backfill_engine.orchestration.instance.ranges import shorten

    lines = [f"{key}: {warnings}" for key, warnings in warned.items()]
    return "\n".join(shorten(lines, _LISTED))


def build_grid(found: "Verdicts") -> Grid:
    """Builds the grid: table, verdict, how many partitions, and which or why."""
    from backfill_engine.orchestration.instance.ranges import shorten

    grid = Grid("table", "verdict", ">count", "~which, and why")
    left = "published before from the same inputs by the same code, left as they are"
    for table in found.tables:
        published = ", ".join(shorten(table.published_ranges, _LISTED))
        rows = [
            (write_text("published", "green"), table.published, published),
            (write_text("up to date"), table.up_to_date, left),
            (write_text("warned", "yellow"), len(table.warned), _list_warnings(table.warned)),
        ]
        for held in table.held_back:
            verdict = write_text(held["status"], _COLOURS.get(held["status"], "yellow"))
            rows.append((verdict, held["partitions"], "\n".join(held["reasons"])))
        name = table.table
        for verdict, count, why in rows:
            if count:
                grid.add_row(name, verdict, f"{count:,}", why)
                name = ""
    return grid
