"""A run that waits in the queue behind others doesn't wait for ever.

Dagster's queue goes by priority first, then by age, and no run gets older there: where what comes
first never ends, as with a daily run and late data on a machine that is too small, a backfill would
never begin.
"""

import datetime as dt

from dagster import DagsterInstance, DagsterRun, DagsterRunStatus, RunsFilter

from backfill_engine.orchestration.instance.own_runs import is_ours
from backfill_engine.orchestration.runs.giving_way import find_priority
from backfill_engine.orchestration.runs.run_tags import PRIORITY_TAG

LONGEST_WAIT = dt.timedelta(hours=6)
"""After which a run comes first as the daily run does, and before those that were made later."""


def put_forward_waited(instance: DagsterInstance, *, now: dt.datetime) -> list[DagsterRun]:
    """Gives runs of ours that have waited for so long the priority of a run that names none.

    Args:
        instance: the Dagster instance.
        now: UTC.

    Returns:
        The runs.
    """
    queued = RunsFilter(statuses=[DagsterRunStatus.QUEUED], created_before=now - LONGEST_WAIT)
    waited = [
        run for run in instance.get_runs(queued) if is_ours(run.tags) and find_priority(run) < 0
    ]
    for run in waited:
        instance.add_run_tags(run.run_id, {PRIORITY_TAG: "0"})
    return waited
