"""Asks Dagster for what a plan says: a backfill of its own, on the Backfills page of the UI."""

import getpass
import time
from dataclasses import dataclass

from dagster import DagsterInstance

from backfill_assets.errors import BackfillError
from backfill_assets.orchestration.dagster_internals import AssetGraph
from backfill_assets.orchestration.downstream import request_backfill
from backfill_assets.orchestration.plans import Plan, list_planned_partitions
from backfill_assets.orchestration.run_options import REASON_TAG

LAUNCHED_BY_TAG = "backfill_assets/launched_by"
"""Tag of a backfill and its runs: the user of the machine who launched it."""


_SILENT_SECONDS = 300  # after which Dagster's own pages call a daemon not running


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


def request_planned(
    instance: DagsterInstance, graph: AssetGraph, plan: Plan, *, reason: str, priority: int
) -> Launched:
    """Asks for a backfill of the partitions of a plan.

    Args:
        instance: the Dagster instance.
        graph: of all assets.
        plan: what to run; something.
        reason: why, in a person's words; empty if nobody said.
        priority: of its runs in the queue.

    Raises:
        BackfillError: if runs are at work on partitions of it.
    """
    busy = [f"{one.table} {', '.join(one.at_work)}" for one in plan.tables if one.at_work]
    if busy:
        raise BackfillError(
            f"runs are at work on {'; '.join(busy)}: wait for them, cancel them, or choose others "
            "with --only; nothing was launched"
        )
    tables = [one for one in plan.tables if one.partitions]
    first = min(start for one in tables for start, _ in one.ranges)
    last = max(end for one in tables for _, end in one.ranges)
    title = f"{', '.join(one.table for one in tables)} {first}...{last}"
    title += f": {reason}" if reason else ""
    tags = {
        LAUNCHED_BY_TAG: getpass.getuser(),
        **({REASON_TAG: reason} if reason else {}),
        **({"dagster/priority": str(priority)} if priority else {}),
    }
    backfill_id = request_backfill(
        instance, graph, list_planned_partitions(plan), title=title, tags=tags
    )
    return Launched(backfill_id, title, _has_daemon(instance))


def _has_daemon(instance: DagsterInstance) -> bool:
    beat = instance.get_daemon_heartbeats().get("BACKFILL")
    return beat is not None and time.time() - beat.timestamp < _SILENT_SECONDS
