"""`rehearse`: what publishing partitions would change; `apply`: publishes just what it showed."""

from typing import TYPE_CHECKING, Annotated

import typer

from backfill_engine.cli.launch_options import Asked, AskedRange, make_plan
from backfill_engine.cli.location import load_catalog
from backfill_engine.cli.options import (
    AsJson,
    OverrideProtection,
    Reason,
    Yes,
    confirm,
    open_instance,
    prepare_planner,
    print_json,
    recover_dead_runs,
)
from backfill_engine.cli.spread_options import spread_options
from backfill_engine.cli.terminal import echo
from backfill_engine.errors import RehearsalError
from backfill_engine.orchestration.runs.option_declarations import Launch

if TYPE_CHECKING:
    from dagster import DagsterInstance

    from backfill_engine.extras.rehearsal.records import Rehearsal
    from backfill_engine.orchestration.planning.plans import Plan


@spread_options
def rehearse(
    asked: AskedRange,
    keep: Annotated[  # noqa: FBT002 (an option)
        bool, typer.Option("--keep", help="Keep the rehearsed tables, to look into them.")
    ] = False,
    max_changed_share: Annotated[
        float | None, typer.Option(min=0, max=1, help="Most of a partition's rows that may differ.")
    ] = None,
    max_psi: Annotated[
        float | None, typer.Option(min=0, help="Most that a column with a drift rule may drift.")
    ] = None,
    reason: Reason = "",
    as_json: AsJson = False,  # noqa: FBT002 (an option)
) -> None:
    """Compute and audit partitions as a run would, and show what would change.

    They are computed into tables of their own, from inputs and code as they are now; what isn't
    rehearsed is read as it is published. Nothing is published, and Dagster's view of the partitions
    stays as it is. `apply` publishes just what was shown.

    Exit 1: something would be withheld, or differs beyond the gates.
    """
    from backfill_engine.cli.job_runs import run_job
    from backfill_engine.cli.rehearsal_grids import print_rehearsal
    from backfill_engine.extras.rehearsal.records import read_rehearsal

    catalog = load_catalog()
    with open_instance() as instance:
        plan = make_plan(instance, Asked(**asked.model_dump()))
        config = {
            "ranges": _list_ranges(plan),
            "reason": reason,
            "keep": keep,
            "max_changed_share": max_changed_share,
            "max_psi": max_psi,
        }
        rehearsal_id = run_job(instance, "rehearse", "rehearse_partitions", config)
    found = read_rehearsal(catalog.warehouse, rehearsal_id)
    if as_json:
        print_json(found)
    else:
        print_rehearsal(found)
    if found.exceeded or any(one.withheld for table in found.tables for one in table.partitions):
        raise typer.Exit(1)


def apply(
    rehearsal: Annotated[str, typer.Argument(help="Its id, or the beginning of it.")],
    accept: Annotated[
        str, typer.Option(help="Why it is published though it is beyond the gates.")
    ] = "",
    override_protection: OverrideProtection = None,
    yes: Yes = False,  # noqa: FBT002 (an option)
    as_json: AsJson = False,  # noqa: FBT002 (an option)
) -> None:
    """Publish what a rehearsal has shown, here and now, and nothing else.

    The partitions are computed again, audited and published as by `run`. One is withheld if it is
    not as rehearsed, or if what is published is no longer what it was compared with. What was
    applied already is left, so that the same command goes on after a crash.

    Exit as `run`.
    """
    from backfill_engine.cli.plan_command import print_plan
    from backfill_engine.cli.run_command import carry_out
    from backfill_engine.extras.rehearsal.records import read_rehearsal
    from backfill_engine.orchestration.planning.launching import check_launch

    catalog = load_catalog()
    found = read_rehearsal(catalog.warehouse, rehearsal)
    if found.exceeded and not accept.strip():
        raise RehearsalError(
            f"rehearsal {found.rehearsal_id[:8]} is beyond its gates in {len(found.exceeded)} "
            f"places, {found.exceeded[0]} for one: say why it is right with --accept, or rehearse "
            "with others; nothing was published"
        )
    told = Launch(
        reason=accept or found.reason,
        override_protection=override_protection,
        rehearsal=found.rehearsal_id,
    )
    with open_instance() as instance:
        recover_dead_runs(instance)
        plan = _plan_rest(instance, found)
        if plan is None:
            echo("it is applied already, all of it", err=as_json)
            return
        if not as_json:
            print_plan(plan, downstream=False)
        told = check_launch(catalog, plan, told)
        if not yes:
            confirm("publish it?", is_aside=as_json)
        carry_out(instance, plan, told, as_json=as_json)


def _plan_rest(instance: "DagsterInstance", found: "Rehearsal") -> "Plan | None":
    """Plans what was shown and isn't applied yet; None if that is nothing."""
    from backfill_engine.extras.rehearsal.applying import list_unapplied

    catalog = load_catalog()
    tables = [catalog.find_table(one.table) for one in found.tables]
    planner = prepare_planner(instance)
    left = {one.key: list_unapplied(found, planner.logs[one.key]) for one in tables}
    ranges = {one: (left[one.key][0], left[one.key][-1]) for one in tables if left[one.key]}
    return planner.plan(ranges, among=left) if ranges else None


def _list_ranges(plan: "Plan") -> dict[str, list[list[str]]]:
    ranges = {one.table: [list(ends) for ends in one.ranges] for one in plan.tables if one.ranges}
    if not ranges:
        raise RehearsalError("none of these partitions is to be run: there is nothing to rehearse")
    return ranges
