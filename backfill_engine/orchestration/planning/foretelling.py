"""What a backfill's plan said, kept with it; and how that compares with what came of it."""

import json
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

from dagster import DagsterInstance, RunsFilter

from backfill_engine.errors import SettingsError
from backfill_engine.health.outcomes import Outcome
from backfill_engine.orchestration.instance.dagster_internals import (
    BACKFILL_TAG,
    BULK_ACTION_TERMINAL_STATUSES,
)
from backfill_engine.orchestration.planning.plans import Plan
from backfill_engine.orchestration.runs.run_tags import (
    LAUNCHED_CODE_TAG,
    PLAN_TAG,
    read_json_tag,
)

_NEWEST = 20
"""Of so many backfills: what was foretold long ago says little of the next."""


def build_plan_tags(plan: Plan) -> dict[str, str]:
    """Builds the tags by which a backfill says what its plan said, and by which code."""
    planned = [one for one in plan.tables if one.partitions]
    said = {
        one.table: {
            "partitions": one.partitions - one.stands,
            "runs": len(one.ranges),
            "chunks": one.chunks,
            "rows": one.rows,
            "seconds": round(one.seconds.seconds, 1) if one.seconds else None,
        }
        for one in planned
    }
    code = {one.table: one.code_version for one in planned}
    return {PLAN_TAG: json.dumps(said), LAUNCHED_CODE_TAG: json.dumps(code)}


def find_foretold(instance: DagsterInstance, outcomes: Iterable[Outcome]) -> dict[str, list[float]]:
    """Finds how many times as long as their plans said backfills took, by table, newest first.

    Only of backfills that have ended, and of tables all of whose partitions had their turn.

    Args:
        instance: the Dagster instance.
        outcomes: of the steps of all runs that count.
    """
    by_run: dict[str, list[Outcome]] = {}
    for outcome in outcomes:
        by_run.setdefault(outcome.run_id, []).append(outcome)
    found: dict[str, list[float]] = {}
    for backfill in instance.get_backfills(limit=_NEWEST) if by_run else ():
        said: dict[str, Any] = {}
        with suppress(SettingsError):
            said = read_json_tag(backfill.tags or {}, PLAN_TAG)
        if not said or backfill.status not in BULK_ACTION_TERMINAL_STATUSES:
            continue
        runs = instance.get_run_ids(RunsFilter(tags={BACKFILL_TAG: backfill.backfill_id}))
        steps = [step for run_id in runs for step in by_run.get(run_id, ())]
        for table, planned in said.items():
            of_table = [step for step in steps if step.table == table]
            turns = sum(one.published + one.withheld for one in of_table)
            if turns and planned["seconds"] and turns == planned["partitions"]:
                took = sum(one.seconds for one in of_table)
                found.setdefault(table, []).append(took / planned["seconds"])
    return found
