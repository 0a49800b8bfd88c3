"""The jobs of the once-flows that are active: each asks for what is left of its history."""

from collections.abc import Callable
from datetime import UTC, datetime

from dagster import Config, JobDefinition, OpExecutionContext, in_process_executor, job, op
from pydantic import Field

from backfill_engine.catalog import Catalog
from backfill_engine.orchestration.instance.own_runs import OWN_STEP
from backfill_engine.orchestration.instance.processes import DAEMON_COMMANDS, NO_DAEMON
from backfill_engine.orchestration.planning.launching import request_planned
from backfill_engine.orchestration.planning.once_flows import (
    build_flow_launch,
    list_flow_keys,
    plan_flow,
    read_flow_state,
)
from backfill_engine.orchestration.planning.planning import open_planner
from backfill_engine.orchestration.records.failures import fail_with_message
from backfill_engine.tables.declarations import Table
from backfill_engine.tables.once_flows import ONCE_TAG, OnceFlow

ONCE_JOB = "once_"
"""Beginning of the names of the jobs; the flow's is the rest."""


class OnceConfig(Config):
    """How a once-flow is taken in."""

    full_refresh: bool = Field(
        default=False, description="Compute all of it again, though it is published."
    )
    reason: str = Field(default="", description="Why, for whoever looks at the backfill later.")


def request_once_flow(
    catalog: Catalog, context: OpExecutionContext, config: OnceConfig, table: Table, name: str
) -> str:
    """Asks for a backfill of what is left of a once-flow; returns what was done, in a line."""
    assert context.repository_def is not None
    instance, graph = context.instance, context.repository_def.asset_graph
    planner = open_planner(instance, graph, catalog, now=datetime.now(tz=UTC))
    plan = plan_flow(catalog, planner, name, full_refresh=config.full_refresh)
    state = read_flow_state(catalog, name, planner.logs[table.key])
    if plan is None:
        return str(state)
    launch = build_flow_launch(
        catalog, name, full_refresh=config.full_refresh, reason=config.reason
    )
    launched = request_planned(catalog, instance, graph, plan, launch)
    if not launched.has_daemon:
        context.log.warning(f"{NO_DAEMON}: it waits for {DAEMON_COMMANDS}")
    return f"{state}; requested backfill {launched.backfill_id}: {launched.title}"


def _build_compute(
    catalog: Catalog, table: Table, flow: OnceFlow
) -> Callable[[OpExecutionContext, OnceConfig], str]:
    def take_in(context: OpExecutionContext, config: OnceConfig) -> str:
        with fail_with_message(context):
            done = request_once_flow(catalog, context, config, table, flow.name)
        context.log.info(done)
        return done

    return take_in


def _build_job(catalog: Catalog, table: Table, flow: OnceFlow) -> JobDefinition:
    compute = op(name=catalog.prefix(f"take_in_{flow.name}"), tags=OWN_STEP)(
        _build_compute(catalog, table, flow)
    )
    keys = list_flow_keys(catalog, flow.name)
    days = f"{keys[0]}...{keys[-1]}"

    @job(
        name=catalog.prefix(f"{ONCE_JOB}{flow.name}"),
        executor_def=in_process_executor,
        tags={ONCE_TAG: flow.name},
        description=(
            f"Takes in the history `{flow.name}` of {table.key}, {days}, from `{flow.source}` of "
            "the landing zone: requests a backfill of what of it isn't published yet, and nothing "
            "once all is, unless told to refresh it: docs/once-flows.md."
        ),
    )
    def once() -> None:
        compute()

    return once


def build_once_jobs(catalog: Catalog) -> list[JobDefinition]:
    """Builds the jobs, one for each once-flow that is active."""
    return [
        _build_job(catalog, catalog.find_table(key), flow)
        for key, history in catalog.histories.items()
        for flow in history.flows
    ]
