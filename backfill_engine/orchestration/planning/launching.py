"""Asks Dagster for what a plan says: a backfill of its own, on the Backfills page of the UI."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeVar

from dagster import DagsterInstance

from backfill_engine.catalog import Catalog
from backfill_engine.errors import BackfillError, ProtectedError, SettingsError
from backfill_engine.filters.row_filters import combine_filters
from backfill_engine.grains.grain import Grain
from backfill_engine.lake.origins import Origin, find_user
from backfill_engine.orchestration.due.downstream import request_backfill
from backfill_engine.orchestration.instance.dagster_internals import (
    AssetGraph,
    make_new_backfill_id,
)
from backfill_engine.orchestration.instance.own_runs import TAG_PREFIX
from backfill_engine.orchestration.instance.processes import has_daemon
from backfill_engine.orchestration.instance.ranges import shorten
from backfill_engine.orchestration.planning.plans import (
    Plan,
    TablePlan,
    list_planned_partitions,
)
from backfill_engine.orchestration.runs.chains import build_limit_tag
from backfill_engine.orchestration.runs.option_declarations import Launch, RunOptions
from backfill_engine.orchestration.runs.run_options import choose_run_options
from backfill_engine.orchestration.runs.run_tags import (
    LAUNCHED_CODE_TAG,
    PRIORITY_TAG,
    tag_origin,
)
from backfill_engine.spark.remotes import check_tagged_remote
from backfill_engine.tables.declarations import Table

_LISTED = 7
Options = TypeVar("Options", bound=RunOptions)


@dataclass(frozen=True)
class Launched:
    """A backfill that was asked for.

    Attributes:
        backfill_id: Dagster's.
        title: as the UI shows it.
        has_daemon: whether a daemon is there to carry it out.
    """

    backfill_id: str
    title: str
    has_daemon: bool


def build_launch_tags(launch: Launch) -> dict[str, str]:
    """Builds the tags by which runs say who launched them, why, and what they are told."""
    fields = launch.model_dump(exclude={"priority", "max_parallel"}, exclude_none=True)
    tags = {
        f"{TAG_PREFIX}{name}": str(value).lower() if isinstance(value, bool) else value
        for name, value in fields.items()
        if value != ""
    }
    if launch.priority is not None:
        tags[PRIORITY_TAG] = str(launch.priority)
    return {**tag_origin(Origin(by=find_user())), **tags}


def request_planned(
    catalog: Catalog,
    instance: DagsterInstance,
    graph: AssetGraph,
    plan: Plan,
    launch: Launch,
) -> Launched:
    """Asks for a backfill of the partitions of a plan.

    Args:
        catalog: of the code location.
        instance: the Dagster instance.
        graph: of all assets.
        plan: what to run; something.
        launch: what else it is told.

    Raises:
        BackfillError: as `check_launch`; or if the instance can't bound its runs so.
    """
    launch = check_launch(catalog, plan, launch)
    title = describe_planned(catalog, plan) + (f": {launch.reason}" if launch.reason else "")
    limit = build_limit_tag(instance, launch.max_parallel, value=make_new_backfill_id())
    code = {table.table: table.code_version for table in plan.tables if table.partitions}
    tags = {**build_launch_tags(launch), LAUNCHED_CODE_TAG: json.dumps(code), **limit}
    backfill_id = request_backfill(
        instance, graph, list_planned_partitions(catalog, plan), title=title, tags=tags
    )
    return Launched(backfill_id, title, has_daemon(instance))


def check_launch(catalog: Catalog, plan: Plan, launch: Launch) -> Launch:
    """Checks that runs of a plan may be made, and that all of its tables can honour their options.

    Returns:
        What they are told: a reason to override protection only where something is protected, as it
        is no licence for what will be later; that only the rows of the plan count; and what kind of
        runs they are.

    Raises:
        SettingsError: if one can't, or no run may name such a Spark.
        FilterError: if the filter is unreadable.
        ProtectedError: if partitions of it are protected, without a reason to override that.
        BackfillError: if runs are at work on partitions of it, or requested.
    """
    if plan.row_filter:
        launch = bound_rows(catalog, plan, launch)
    check_options((catalog.find_table(table_plan.table) for table_plan in plan.tables), launch)
    protected = [
        f"{table_plan.table} {text}" for table_plan in plan.tables for text in table_plan.protected
    ]
    if protected and not launch.override_protection:
        raise ProtectedError(
            f"protected: {'; '.join(shorten(protected, _LISTED))}: choose others, lift it with "
            "`backfill-assets protect --lift`, or say why with --override-protection; nothing was "
            "launched"
        )
    _refuse_at_work(plan)
    found = {"operation": launch.operation or plan.operation}
    return launch.model_copy(update=found if protected else {**found, "override_protection": None})


def check_options(tables: Iterable[Table], launch: Launch) -> None:
    """Checks that tables can honour the options of runs, whatever these would find.

    Raises:
        SettingsError: if one can't, or no run may name such a Spark.
        FilterError: if the filter is unreadable.
    """
    if launch.spark_remote is not None:
        check_tagged_remote(launch.spark_remote, named_by="--spark-remote")
    for table in tables:
        choose_run_options(table, launch)


def bound_rows(catalog: Catalog, plan: Plan, options: Options) -> Options:
    """Lets only the rows of a plan count, of those that the options themselves would let.

    Raises:
        SettingsError: if runs wouldn't merge them.
        FilterError: if the filter of the options is unreadable.
    """
    tables = [catalog.find_table(table_plan.table) for table_plan in plan.tables]
    for table in tables:
        if (options.write_mode or table.write_mode) != "merge":
            raise SettingsError(
                f"{table.key}: with --column only some rows of a partition are computed, which "
                "must not replace the others: add --write-mode merge; nothing was launched"
            )
    combined = [combine_filters(table, options.filter, plan.row_filter) for table in tables]
    return options.model_copy(update={"filter": combined[0].text if combined[0] else None})


def _refuse_at_work(plan: Plan) -> None:
    busy = [
        f"{table_plan.table} {', '.join(table_plan.at_work)}"
        for table_plan in plan.tables
        if table_plan.at_work
    ]
    if busy:
        raise BackfillError(
            f"runs are at work on {'; '.join(busy)}, or requested: wait for them, cancel them "
            "(`backfill-assets backfill list` lists them), or choose others with --only; nothing "
            "was launched"
        )


def describe_planned(catalog: Catalog, plan: Plan) -> str:
    """Says in one line what a plan would run: tables, and first and last key of each grain."""
    by_grain: dict[Grain, list[TablePlan]] = {}
    for table_plan in plan.tables:
        if table_plan.partitions:
            by_grain.setdefault(catalog.find_table(table_plan.table).grain, []).append(table_plan)
    return "; ".join(
        f"{', '.join(table_plan.table for table_plan in tables)} "
        f"{min(start for table_plan in tables for start, _ in table_plan.ranges)}..."
        f"{max(end for table_plan in tables for _, end in table_plan.ranges)}"
        for tables in by_grain.values()
    )
