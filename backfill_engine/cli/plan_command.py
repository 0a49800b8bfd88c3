"""`plan`: what a backfill would do, before anything runs; `launch`: asks Dagster for just that."""

from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Annotated

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
from backfill_engine.cli.plan_grid import print_plan
from backfill_engine.cli.plan_options import Chunk, Restart
from backfill_engine.cli.spread_options import spread_options
from backfill_engine.cli.terminal import echo

if TYPE_CHECKING:
    from backfill_engine.orchestration.planning.plans import Plan

_LISTED = 20


@spread_options
def plan(
    asked: Asked,
    chunk: Chunk = None,
    restart: Restart = None,
    as_json: AsJson = False,  # noqa: FBT002 (an option)
) -> None:
    """Show what a backfill would do: partitions and why, runs, commits, bytes, time, conflicts.

    Nothing is written and nothing runs. Durations are those of earlier runs, by their certificates
    of the last 90 days. With --chunk, what stands is told apart and not counted.
    """
    how = HowToRun(chunk=chunk, restart=restart).fill_in(asked.template)
    with open_instance() as instance:
        found = make_plan(instance, asked, how)
    if as_json:
        print_json(found)
        return
    print_plan(found, downstream=asked.takes_downstream)
    _print_commands(found, {"chunk": how.chunk, "restart": how.restart or None})


@spread_options
def launch(
    asked: Asked,
    how: HowToRun,
    max_parallel: Annotated[
        int | None, typer.Option(min=1, help="Runs of it that are at work at once.")
    ] = None,
    priority: Annotated[
        int | None, typer.Option(help="In the run queue; -1 if left out: the daily run has 0.")
    ] = None,
    yes: Yes = False,  # noqa: FBT002 (an option)
    as_json: AsJson = False,  # noqa: FBT002 (an option)
) -> None:
    """Show the plan, and ask Dagster for a backfill of just these partitions.

    It is on the Backfills page of the UI then, and Dagster's daemon carries it out: the tables that
    others read first, one run for each contiguous range of a table. Refused while other runs are at
    work on any of the partitions, or requested, and if any is protected (docs/protection.md). With
    --json its id and the plan are printed as JSON, the question goes to stderr.
    """
    from backfill_engine.orchestration.instance.daemons import DAEMON_COMMANDS, NO_DAEMON
    from backfill_engine.orchestration.planning.launching import check_launch, request_planned
    from backfill_engine.orchestration.runs.run_tags import BEHIND_THE_DAILY_RUN

    catalog = load_catalog()
    ranks = (priority, asked.template.priority, BEHIND_THE_DAILY_RUN)
    how = how.fill_in(asked.template)
    told = replace(
        how.build_launch(),
        priority=next(rank for rank in ranks if rank is not None),
        max_parallel=max_parallel or asked.template.max_parallel,
    )
    with open_instance() as instance:
        recover_dead_runs(instance)
        found = make_plan(instance, asked, how)
        if not as_json:
            print_plan(found, downstream=asked.takes_downstream)
        check_launch(catalog, found, told)
        launched = None
        if any(table.partitions for table in found.tables):
            if not yes:
                confirm("launch it?", is_aside=as_json)
            launched = request_planned(catalog, instance, load_graph(), found, told)
    if as_json:
        print_json(
            {
                "backfill_id": launched.backfill_id if launched else "",
                "title": launched.title if launched else "",
                "plan": asdict(found),
            }
        )
    elif launched:
        echo(f"requested backfill {launched.backfill_id}: {launched.title}")
    if launched and not launched.has_daemon:
        echo(f"{NO_DAEMON}: it waits for {DAEMON_COMMANDS}", err=True)


def _print_commands(found: "Plan", pace: Mapping[str, str | bool | None]) -> None:
    from backfill_engine.orchestration.instance.ranges import build_command, join_tables, shorten
    from backfill_engine.orchestration.runs.run_options import build_options_config

    catalog = load_catalog()
    options = {**pace}
    if found.row_filter:
        options |= {"write_mode": "merge", "filter": found.row_filter}
    commands = [
        build_command(catalog, keys, start, end, build_options_config(keys, options))
        for keys, ranges in join_tables({one.table: one.ranges for one in found.tables})
        for start, end in ranges
    ]
    if not commands:
        echo("nothing is to be run")
        return
    echo("to run it:")
    for command in shorten(commands, _LISTED):
        echo(f"  {command}")
