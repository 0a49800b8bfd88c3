"""What the last reconciliations found, which they leave as tags of their runs."""

import datetime as dt
from dataclasses import dataclass

from dagster import DagsterInstance, RunsFilter

COMPARED_TAG = "backfill_assets/compared"
"""Tag of a run that reconciles: how many partitions it compared."""

DIFFERENT_TAG = "backfill_assets/different"
"""Likewise: how many of them differ."""


@dataclass(frozen=True)
class Reconciliation:
    """One that came to its end.

    Attributes:
        ended_at: when, UTC.
        run_id: the run.
        compared: partitions.
        different: of these, the ones that don't agree with their source.
    """

    ended_at: dt.datetime
    run_id: str
    compared: int
    different: int


def note_reconciliation(
    instance: DagsterInstance, run_id: str, *, compared: int, different: int
) -> None:
    """Tags a run with what it found."""
    tags = {COMPARED_TAG: str(compared), DIFFERENT_TAG: str(different)}
    instance.add_run_tags(run_id, tags)


def find_reconciliations(instance: DagsterInstance, *, most: int) -> list[Reconciliation]:
    """Finds the last ones that ended, newest first."""
    records = instance.get_run_records(RunsFilter(job_name="reconcile"), limit=most)
    return [
        Reconciliation(
            dt.datetime.fromtimestamp(record.end_time, tz=dt.UTC),
            record.dagster_run.run_id,
            int(record.dagster_run.tags[COMPARED_TAG]),
            int(record.dagster_run.tags[DIFFERENT_TAG]),
        )
        for record in records
        if record.end_time and DIFFERENT_TAG in record.dagster_run.tags
    ]
