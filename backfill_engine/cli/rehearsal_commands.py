"""`rehearse`: what publishing partitions would change; `apply`: publishes just what it showed."""

from typing import TYPE_CHECKING, Annotated

import typer

from backfill_engine.cli.launch_options import PartitionOptions, RangeOptions, make_plan
from backfill_engine.cli.location import (
    load_catalog,
    open_instance,
    prepare_planner,
    recover_dead_runs,
)
from backfill_engine.cli.options import (
    Accept,
    AsJson,
    DryRun,
    MaxPsi,
    OverrideProtection,
    Reason,
    Yes,
    spread_options,
)
from backfill_engine.cli.terminal import (
    Grid,
    echo,
    print_answer,
    print_grid,
    print_json,
    write_text,
)
from backfill_engine.errors import RehearsalError
from backfill_engine.orchestration.runs.option_declarations import Launch

if TYPE_CHECKING:
    from dagster import DagsterInstance
    from rich.text import Text

    from backfill_engine.extras.rehearsal.records import (
        Rehearsal,
        RehearsedPartition,
        RehearsedTable,
    )
    from backfill_engine.orchestration.planning.plans import Plan

_LISTED = 31


@spread_options
def rehearse(
    partitions: RangeOptions,
    keep: Annotated[
        bool, typer.Option("--keep", help="Keep the rehearsed tables, to look into them.")
    ] = False,
    max_changed_share: Annotated[
        float | None, typer.Option(min=0, max=1, help="Most of a partition's rows that may differ.")
    ] = None,
    max_psi: MaxPsi = None,
    reason: Reason = "",
    as_json: AsJson = False,
) -> None:
    """Compute and audit partitions as a run would, and show what would change.

    What isn't rehearsed is read as it is published. Nothing is published, and Dagster's view of the
    partitions stays as it is. `apply` publishes just what was shown.

    Exit 1: something would be withheld, or differs beyond the gates.

    Example: backfill-assets rehearse --from 2013-01-10 --to 2013-01-14 --downstream
    """
    from backfill_engine.cli.job_runs import run_job
    from backfill_engine.extras.rehearsal.records import read_rehearsal

    with open_instance() as instance:
        plan = make_plan(instance, PartitionOptions(**partitions.model_dump()))
    ranges = {
        table.table: [list(ends) for ends in table.ranges] for table in plan.tables if table.ranges
    }
    if not ranges:
        raise RehearsalError("none of these partitions is to be run: there is nothing to rehearse")
    gates = {"max_changed_share": max_changed_share, "max_psi": max_psi}
    config = {"ranges": ranges, "reason": reason, "keep": keep, **gates}
    rehearsal_id = run_job("rehearse", "rehearse_partitions", config)
    rehearsal = read_rehearsal(load_catalog().warehouse, rehearsal_id)
    print_answer(rehearsal, print_rehearsal, as_json=as_json)
    rehearsed = [partition for table in rehearsal.tables for partition in table.partitions]
    if rehearsal.exceeded or any(partition.withheld for partition in rehearsed):
        raise typer.Exit(1)


def apply(
    rehearsal: Annotated[str, typer.Argument(help="Its id, or the beginning of it.")],
    accept: Accept = "",
    override_protection: OverrideProtection = None,
    reason: Reason = "",
    dry_run: DryRun = False,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Publish what a rehearsal has shown, here and now, and nothing else.

    Shows the partitions, and asks. They are computed again, audited and published as by `run`. One
    is withheld if it is not as rehearsed, or if what is published is no longer what it was compared
    with. After a crash the same command goes on.

    Exit as `run`.

    Example: backfill-assets apply 0a1b2c3d --accept "as the airline says"
    """
    from backfill_engine.cli.plan_commands import agree_on
    from backfill_engine.cli.run_command import carry_out
    from backfill_engine.extras.rehearsal.records import read_rehearsal

    shown = read_rehearsal(load_catalog().warehouse, rehearsal)
    if shown.exceeded and not accept.strip():
        raise RehearsalError(
            f"rehearsal {shown.rehearsal_id[:8]} is beyond its gates in {len(shown.exceeded)} "
            f"places, {shown.exceeded[0]} for one: say why it is right with --accept, or rehearse "
            "with others; nothing was published"
        )
    request = Launch(
        reason=reason or accept or shown.reason,
        override_protection=override_protection,
        rehearsal=shown.rehearsal_id,
    )
    with open_instance() as instance:
        recover_dead_runs(instance)
        plan = _plan_rest(instance, shown)
        if plan is None:
            echo("it is applied already, all of it", err=as_json)
            return
        checked = agree_on(
            plan,
            request,
            "publish it?",
            downstream=False,
            yes=yes or dry_run,
            as_json=as_json,
        )
        if dry_run and as_json:
            print_json(plan)
        elif checked is not None and not dry_run:
            carry_out(instance, plan, checked, as_json=as_json)


def _plan_rest(instance: "DagsterInstance", rehearsal: "Rehearsal") -> "Plan | None":
    """Plans what was shown and isn't applied yet; None if that is nothing."""
    from backfill_engine.extras.rehearsal.applying import list_unapplied

    catalog, planner = load_catalog(), prepare_planner(instance)
    tables = [catalog.find_table(table.table) for table in rehearsal.tables]
    left = {table.key: list_unapplied(rehearsal, planner.logs[table.key]) for table in tables}
    ranges = {
        table: (left[table.key][0], left[table.key][-1]) for table in tables if left[table.key]
    }
    return planner.plan(ranges, among=left) if ranges else None


def print_rehearsal(rehearsal: "Rehearsal") -> None:
    """Prints a grid for each table, what is beyond the gates, and what to do next."""
    from backfill_engine.orchestration.instance.ranges import shorten

    for table in rehearsal.tables:
        _print_table(table)
    for excess in shorten(list(rehearsal.exceeded), _LISTED):
        echo(f"beyond the gates: {excess}")
    if rehearsal.kept:
        echo(f"the rehearsed tables are below {rehearsal.kept}")
    if any(partition.differs for table in rehearsal.tables for partition in table.partitions):
        echo(f"to publish just this: backfill-assets apply {rehearsal.rehearsal_id[:8]}")
    else:
        echo("publishing it would change nothing")


def _print_table(table: "RehearsedTable") -> None:
    from backfill_engine.extras.rehearsal.records import describe_columns

    listed = [
        partition for partition in table.partitions if partition.differs or partition.withheld
    ]
    same = len(table.partitions) - len(listed)
    title = f"{table.table}: {len(table.partitions)} partitions, {same} as published"
    if not listed:
        echo(title)
        return
    heads = (">rows before", ">rows", ">added", ">removed", ">changed", "~changed most")
    grid = Grid("partition", *heads, title=title, title_justify="left")
    for partition in listed[:_LISTED]:
        most = partition.withheld or describe_columns(partition)
        grid.add_row(partition.partition, *_format_counts(partition), most)
    print_grid(grid)
    if len(listed) > _LISTED:
        echo(f"and {len(listed) - _LISTED} more: --json lists all")


def _format_counts(partition: "RehearsedPartition") -> "list[str | Text]":
    diff = partition.diff
    if diff is None:
        return ["", write_text("withheld", "red"), "", "", ""]
    counts = (diff.rows_before, diff.rows_after, diff.added, diff.removed, diff.changed)
    return [f"{count:,}" for count in counts]
