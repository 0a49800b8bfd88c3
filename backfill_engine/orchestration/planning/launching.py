"""Asks Dagster for what a plan says: a backfill of its own, on the Backfills page of the UI."""

import getpass
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from dagster import DagsterInstance

from backfill_engine.catalog import Catalog
from backfill_engine.errors import BackfillError, ProtectedError, SettingsError
from backfill_engine.filters.row_filters import combine_filters
from backfill_engine.grains.grain import Grain
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
    build_plan_tags,
    list_planned_partitions,
)
from backfill_engine.orchestration.runs.run_options import check_tags
from backfill_engine.orchestration.runs.run_tags import (
    ALLOW_NEW_CODE_TAG,
    LAUNCHED_BY_TAG,
    OVERRIDE_TAG,
    PRIORITY_TAG,
    REASON_TAG,
    REHEARSAL_TAG,
)
from backfill_engine.orchestration.runs.runs_at_work import build_limit_tag
from backfill_engine.spark.remotes import SPARK_REMOTE_TAG, check_tagged_remote

_LISTED = 7


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


@dataclass(frozen=True, kw_only=True)
class Launch:
    """What a launch is told beside its plan.

    Attributes:
        reason: why, in a person's words; empty if nobody said.
        priority: of its runs in the queue; None for that of what names none.
        options: of the runs, by the names of `PublishConfig`; None counts as not asked for.
        max_parallel: runs of it that are at work at once; None for as many as there are places.
        override_protection: why protected partitions are to be published; empty if they aren't.
        allow_new_code: why a deploy meanwhile needn't stop its runs; empty if it does.
        spark_remote: the Spark Connect server of its runs; None for that of where they run.
        rehearsal: of which just what was shown is published; empty for what is computed.
    """

    reason: str = ""
    priority: int | None = None
    options: Mapping[str, str | bool | None] = field(default_factory=dict)
    max_parallel: int | None = None
    override_protection: str = ""
    allow_new_code: str = ""
    spark_remote: str | None = None
    rehearsal: str = ""

    def build_tags(self) -> dict[str, str]:
        """Builds the tags by which runs say who launched them, why, and what they are told."""
        reasons = {
            REASON_TAG: self.reason,
            OVERRIDE_TAG: self.override_protection,
            ALLOW_NEW_CODE_TAG: self.allow_new_code,
            PRIORITY_TAG: "" if self.priority is None else str(self.priority),
            SPARK_REMOTE_TAG: self.spark_remote or "",
            REHEARSAL_TAG: self.rehearsal,
        }
        options = {
            f"{TAG_PREFIX}{name}": str(value).lower() if isinstance(value, bool) else value
            for name, value in self.options.items()
            if value is not None
        }
        said = {tag: text for tag, text in reasons.items() if text}
        return {LAUNCHED_BY_TAG: getpass.getuser(), **said, **options}


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
    tags = {**launch.build_tags(), **build_plan_tags(plan), **limit}
    backfill_id = request_backfill(
        instance, graph, list_planned_partitions(catalog, plan), title=title, tags=tags
    )
    return Launched(backfill_id, title, has_daemon(instance))


def check_launch(catalog: Catalog, plan: Plan, launch: Launch) -> Launch:
    """Checks that runs of a plan may be made, and that all of its tables can honour their options.

    Returns:
        What they are told: a reason to override protection only where something is protected, as it
        is no licence for what will be later; and that only the rows of the plan count.

    Raises:
        SettingsError: if one can't, or no run may name such a Spark.
        FilterError: if the filter is unreadable.
        ProtectedError: if partitions of it are protected, without a reason to override that.
        BackfillError: if runs are at work on partitions of it, or requested.
    """
    if launch.spark_remote is not None:
        check_tagged_remote(launch.spark_remote, named_by="--spark-remote")
    if plan.row_filter:
        launch = _bound_rows(catalog, plan, launch)
    tags = launch.build_tags()
    for one in plan.tables:
        check_tags(catalog.find_table(one.table), tags)
    protected = [f"{one.table} {text}" for one in plan.tables for text in one.protected]
    if protected and not launch.override_protection:
        raise ProtectedError(
            f"protected: {'; '.join(shorten(protected, _LISTED))}: choose others, lift it with "
            "`backfill-assets unprotect`, or say why with --override-protection; nothing was "
            "launched"
        )
    _refuse_at_work(plan)
    return launch if protected else replace(launch, override_protection="")


def _bound_rows(catalog: Catalog, plan: Plan, launch: Launch) -> Launch:
    """Lets only the rows of a plan count, of those that the launch itself would let.

    Raises:
        SettingsError: if runs wouldn't merge them.
        FilterError: if the launch's own filter is unreadable.
    """
    tables = [catalog.find_table(one.table) for one in plan.tables]
    told = launch.options.get("filter")
    for table in tables:
        if (launch.options.get("write_mode") or table.write_mode) != "merge":
            raise SettingsError(
                f"{table.key}: with --column only some rows of a partition are computed, which "
                "must not replace the others: add --write-mode merge; nothing was launched"
            )
    texts = (told if isinstance(told, str) else None, plan.row_filter)
    combined = [combine_filters(table, *texts) for table in tables]
    return replace(launch, options={**launch.options, "filter": combined[0] and combined[0].text})


def _refuse_at_work(plan: Plan) -> None:
    busy = [f"{one.table} {', '.join(one.at_work)}" for one in plan.tables if one.at_work]
    if busy:
        raise BackfillError(
            f"runs are at work on {'; '.join(busy)}, or requested: wait for them, cancel them "
            "(`backfill-assets backfills` lists them), or choose others with --only; nothing was "
            "launched"
        )


def describe_planned(catalog: Catalog, plan: Plan) -> str:
    """Says in one line what a plan would run: tables, and first and last key of each grain."""
    by_grain: dict[Grain, list[TablePlan]] = {}
    for one in plan.tables:
        if one.partitions:
            by_grain.setdefault(catalog.find_table(one.table).grain, []).append(one)
    return "; ".join(
        f"{', '.join(one.table for one in tables)} "
        f"{min(start for one in tables for start, _ in one.ranges)}..."
        f"{max(end for one in tables for _, end in one.ranges)}"
        for tables in by_grain.values()
    )
